"""The table of rules: whole, and every rule fires on its failing example and on nothing that is good."""

import re

import pytest
from ruling import FOLDER, files, good

from provstore.graph.rules import formats
from provstore.graph.rules.checking import check
from provstore.graph.rules.examples import Example, examples_of, findings_after, fired
from provstore.graph.rules.rule import ANY, Rule, by_code
from provstore.graph.rules.table import GROUPS, RULES, rules_of

EXAMPLES = examples_of((FOLDER / "failing.toml").read_text())
KNOWN = {value for name, value in vars(formats).items() if name.isupper() and isinstance(value, str)}


def test_codes_are_stable_names_that_are_there_once() -> None:
    codes = [rule.code for rule in RULES]
    assert len(set(codes)) == len(codes)
    assert [code for code in codes if not re.fullmatch(r"[a-z]+(-[a-z]+)*", code)] == []


def test_every_number_of_the_list_of_the_field_has_a_rule() -> None:
    assert {number for rule in RULES for number in rule.numbers} == set(range(1, 61))


def test_every_hole_of_the_list_has_a_rule_without_a_number() -> None:
    holes = {rule.code for rule in RULES if not rule.numbers}
    assert {
        "auxiliary-shape",
        "dimension-mismatch",
        "dimension-unmeasured",
        "projection-identity",
        "projection-workload",
        "closure-selector",
        "prose-number",
        "updated-before-content",
        "part-not-terminal",
        "state-exceeds-evidence",
        "contradicted",
    } <= holes
    assert by_code(RULES, "unresolved-reference").severity == "error"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_says_what_it_asks_for(rule: Rule) -> None:
    assert rule.sentence.endswith(".")
    assert 20 < len(rule.sentence) < 240
    assert rule.formats
    assert set(rule.formats) <= KNOWN | {ANY}


def test_every_module_of_rules_is_in_the_table() -> None:
    assert sum(len(rules_of(module)) for modules in GROUPS.values() for module in modules) == len(RULES)


def test_good_documents_have_no_findings() -> None:
    report = check(list(good().values()), files())
    assert report.findings == ()
    ruled = {document.format for document in report.documents if document.rules}
    assert ruled == {name for rule in RULES for name in rule.formats} - {ANY, formats.PAGE}


def test_there_is_one_example_for_every_rule() -> None:
    assert sorted(example.rule for example in EXAMPLES) == sorted(rule.code for rule in RULES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.rule)
def test_a_rule_fires_on_its_failing_example(example: Example) -> None:
    finding = fired(example, findings_after(example, good(), files()))
    assert finding is not None
    assert finding.severity == by_code(RULES, example.rule).severity
    assert finding.message
    assert finding.expected != finding.found
