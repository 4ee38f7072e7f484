"""The policy language: what it refuses, and where it says so; every kind of gate without evidence."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from smallrun import HEAD, POLICY, files, gate, judged

from provstore.errors import NewerFormatError, PolicyError, ProvError
from provstore.gates.evidence import Evidence, Source
from provstore.gates.extracts import EXTRACTS, EntryFacts, Lines
from provstore.gates.policy import MAX_POLICY_BYTES, Policy, load_policy
from provstore.gates.registry import GATES
from provstore.gates.verdict import judge_all

BENCH = '[[extract]]\nname = "bench"\nkind = "bench"\nrole = "run/bench.json"\n'
LINES = (
    '[[extract]]\nname = "marks"\nkind = "lines"\nrole = "run/server.log"\nmarker = "m"\n'
    "pattern = 'TP(?P<tp>\\d+)'\nintegers = [\"tp\"]\n"
)
ZERO = '[[gate]]\nname = "zero"\nkind = "zero"\nrows = "bench"\n'


def load(text: str) -> Policy:
    return load_policy((HEAD + text).encode(), "p.toml")


REFUSED = [
    # what, policy after the four lines of the head, line, words
    ("unknown gate", BENCH + '[[gate]]\nname = "g"\nkind = "zeroes"\n'
    'rows = "bench"\n', 11, "no kind is called 'zeroes'"),
    ("no kind", '[[gate]]\nname = "g"\n', 5, "names no kind"),
    ("unknown extract kind", '[[extract]]\nname = "x"\nkind = "xml"\nrole = "a"\n' + ZERO, 7, "'xml'"),
    ("unknown input", ZERO, 8, "no extract is called 'bench'"),
    ("wrong input", LINES + ZERO.replace("bench", "marks"), 15, "'marks' is lines, rows takes bench"),
    ("unknown fact", LINES + '[[gate]]\nname = "g"\nkind = "equal"\n\nvalues = { "marks:ep" = 1 }\n', 16,
     "gives no fact 'ep'; it gives #lines, #matches, tp"),
    ("unknown extract in a fact", '[[gate]]\nname = "g"\nkind = "equal"\nvalues = { "nobody:x" = 1 }\n', 8,
     "no extract is called 'nobody'"),
    ("no selector", BENCH + '[[gate]]\nname = "g"\nkind = "equal"\n'
    'values = { "bench" = 1 }\n', 12, "extract:key"),
    ("rank set of size zero",
     LINES + '[[gate]]\nname = "g"\nkind = "topology"\nlines = "marks"\nrank = ["tp"]\n'
     'ranks = []\n', 17, "can never fail"),
    ("ranks twice",
     LINES + '[[gate]]\nname = "g"\nkind = "topology"\nlines = "marks"\nrank = ["tp"]\n'
     'ranks = [0, 0]\n', 17, "repeat"),
    ("never fails: equal", '[[gate]]\nname = "g"\nkind = "equal"\nvalues = {}\n', 5, "can never fail"),
    ("never fails: one fact", BENCH + '[[gate]]\nname = "g"\nkind = "consistent"\n'
    'groups = [["bench:/a", "bench:/a"]]\n',
     9, "two different facts"),
    ("never fails: floor of zero", BENCH + '[[gate]]\nname = "g"\nkind = "floor"\nrows = "bench"\n'
    'reference = "0"\n'
     'convention = "wall"\n', 9, "its floor is zero"),
    ("never fails: advisory",
     '[[extract]]\nname = "m"\nkind = "metrics"\nrole = "a"\n'
     '[[gate]]\nname = "g"\nkind = "acceptance-flat"\nrequired = true\ncounters = "m"\n'
     'counter = "c"\n', 12, "only warns"),
    ("never fails: a workload without counts", BENCH + '[[gate]]\nname = "g"\nkind = "workload"\n'
    'rows = "bench"\n', 9,
     "asks for no count"),
    ("unknown field", BENCH + ZERO + "rowz = 1\n", 13, "unknown field `rowz`"),
    ("unknown field of an extract", BENCH + 'colour = "red"\n' + ZERO, 9, "unknown field `colour`"),
    ("wrong type", BENCH + ZERO + "required = 1\n", 13, "Expected `bool"),
    ("missing field", BENCH + '[[gate]]\nname = "zero"\nkind = "zero"\n', 9, "missing required field `rows`"),
    ("gate twice", BENCH + ZERO + ZERO, 14, "gate 'zero' is there twice"),
    ("extract twice", BENCH + BENCH + ZERO, 10, "extract 'bench' is there twice"),
    ("unknown convention", BENCH + '[[gate]]\nname = "g"\nkind = "metric"\nrows = "bench"\n'
    'convention = "fastest"\n', 13,
     "no metric convention"),
    ("bad expression", LINES.replace("TP(?P<tp>\\d+)", "TP(?P<tp>"), 10, "no regular expression"),
    ("exponential expression", LINES.replace("TP(?P<tp>\\d+)", "TP(?P<tp>(a+)+)"), 10, "repetition"),
    ("a group that is not there", LINES.replace('["tp"]', '["ep"]') + ZERO, 10, "no group is named ep"),
    ("bad metric", BENCH + '[[metric]]\nname = "x"\nunit = "s"\nnumerator = "events"\n' + ZERO, 9, "window"),
    ("unsafe role", BENCH.replace("run/", "../") + ZERO, 8, ".."),
    ("no TOML", BENCH + "[[gate]\n", 9, "no TOML"),
    ("text that a decimal should be", BENCH + ZERO + "rule = 1.5\n", 13, "Expected `str`"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "text", "line", "words"), REFUSED, ids=[item[0] for item in REFUSED])
def test_a_bad_policy_is_refused_with_its_line(what: str, text: str, line: int, words: str) -> None:
    with pytest.raises(ProvError) as caught:
        load(text)
    assert caught.value.exit_code == 2
    assert caught.value.message.startswith(f"p.toml:{line}:"), caught.value.message
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff", "not UTF-8"),
        (b"name = 1\n", "needs format"),
        (HEAD.encode(), "at least one [[gate]]"),
        (HEAD.encode() + b"gate = 3\n", "list of tables"),
        (HEAD.replace("2026-07-26", "yesterday").encode() + (BENCH + ZERO).encode(), "needs a name"),
        (HEAD.replace('version = "1"', "version = 1").encode() + (BENCH + ZERO).encode(), "version"),
        (HEAD.encode() + b'colour = "red"\n' + (BENCH + ZERO).encode(), "colour"),
        (b"#" * (MAX_POLICY_BYTES + 1), "larger than any policy"),
        (HEAD.encode() + b"a = " + b"[" * 5000, "no TOML"),
    ],
)
def test_other_things_that_are_no_policy(data: bytes, words: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load_policy(data, "p.toml")
    assert words in caught.value.message


def test_another_version_of_the_format() -> None:
    with pytest.raises(NewerFormatError):
        load_policy(b'format = "provstore/policy/v2"\n', "p.toml")


def test_a_policy_names_itself() -> None:
    policy = load(BENCH + ZERO)
    assert (policy.name, policy.version, policy.date) == ("test", "1", "2026-07-26")
    assert policy.find("zero") is policy.gate[0]
    assert policy.find("other") is None


# Kinds


@pytest.mark.parametrize("kind", GATES)
def test_the_example_of_each_kind_is_a_policy(kind: str) -> None:
    policy = load(GATES[kind].EXAMPLE)
    assert kind in [found.kind for found in policy.gate]


def missing(policy: Policy, absent: str) -> Evidence:
    sources = {e.name: ((Source(e.role, absent=absent),) if absent else ()) for e in policy.extract}
    return Evidence(sources=sources, definitions=())


@pytest.mark.parametrize("absent", ["", "only declared"])
@pytest.mark.parametrize("kind", GATES)
def test_without_evidence_no_kind_passes_or_fails(kind: str, absent: str) -> None:
    policy = load(GATES[kind].EXAMPLE)
    found = judge_all(policy, missing(policy, absent))
    assert found.outcome == "INCOMPLETE"
    for outcome in found.gates:
        if outcome.kind in ("attribution", "readings"):
            continue  # nothing credits anything; readings of nothing are looked at below
        assert outcome.outcome == "UNKNOWN", outcome
        assert {j.outcome for j in outcome.judgements} == {"UNKNOWN"}


def test_readings_of_nothing_are_unknown() -> None:
    policy = load(BENCH + ZERO)
    found = judge_all(policy, missing(policy, "only declared"))
    assert [(g.gate, g.outcome) for g in found.gates] == [("zero", "UNKNOWN"), ("readings", "UNKNOWN")]


def garbage(policy: Policy, data: bytes) -> Evidence:
    sources: dict[str, tuple[Source, ...]] = {}
    for extract in policy.extract:
        if isinstance(extract, EntryFacts | Lines):
            sources[extract.name] = ()
        else:
            sources[extract.name] = (Source(extract.role, reading=extract.read(data), prefix=extract.prefix),)
    return Evidence(sources=sources)


SHAPES = st.one_of(
    st.binary(max_size=80),
    st.sampled_from([b"", b"{}", b"[]", b"null", b'{"rows": [{}]}', b'{"rows": [null, {"token_ids": null}]}',
                     b'{"rows": [{"prompt_index": 0}]}', b"a=b\n", b"status=PASS\nstatus=PASS\n", b"x 1.0\n",
                     b'{"attempts": [{}], "authorizations": [{}]}', b'{"artifacts": [{"bench_status": 1}]}']),
)  # fmt: skip


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(data=SHAPES, kind=st.sampled_from(sorted(GATES)))
def test_garbage_never_passes_and_never_raises(data: bytes, kind: str) -> None:
    policy = load(GATES[kind].EXAMPLE)
    found = judge_all(policy, garbage(policy, data))
    assert found.outcome != "PASS", (kind, data)


def test_required_is_what_decides(tmp_path: Path) -> None:
    broken = files() | {"run/status.txt": b"status=FAIL\n"}
    assert judged(tmp_path / "a", broken).verdict.outcome == "FAIL"
    loose = POLICY.replace(
        'kind = "status"\nstatus = "status"', 'kind = "status"\nrequired = false\nstatus = "status"'
    )
    found = judged(tmp_path / "b", broken, loose)
    assert (found.verdict.outcome, gate(found, "status").outcome) == ("PASS", "FAIL")


def test_without_a_required_gate_it_is_no_pass(tmp_path: Path) -> None:
    policy = BENCH + ZERO + "required = false\n"
    found = judged(tmp_path, files(), policy)
    assert gate(found, "zero").outcome == "PASS"
    assert found.verdict.outcome == "INCOMPLETE"


def test_readings_may_leave_findings_out_but_only_by_name(tmp_path: Path) -> None:
    odd = files()["run/bench.json"].replace(b'"seed": 1', b'"seed": "1"')
    planted = files() | {"run/bench.json": odd}
    strict = judged(tmp_path / "a", planted, BENCH + ZERO)
    assert strict.verdict.outcome == "FAIL"
    named = BENCH + ZERO + '[[gate]]\nname = "r"\nkind = "readings"\nignore = ["wrong-type"]\n'
    assert judged(tmp_path / "b", planted, named).verdict.outcome == "PASS"


def test_every_kind_of_extract_has_a_reader_or_is_special() -> None:
    special = {"lines", "entry"}
    for name, cls in EXTRACTS.items():
        if name in special:
            continue
        extract = cls(name="x", role="a")
        assert extract.read(b"").facts is not None
