"""Places, scope decisions, coverage cells and the life of a claim, from statements alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provstore.errors import UsageError
from provstore.graph.claims import Judged, Signs, Successor, life
from provstore.graph.coverage import Sources, matrix
from provstore.graph.places import Gap, Known, context, covers, equal, gaps, moved, nearest, scalar
from provstore.graph.scope import CLAIM_KINDS, Question, Rule, Standing, asked, decide
from provstore.graph.statements import Cell, Closure, Coverage, Estimate, Measurement, Sample

HERE = {"cards": Known(4), "tp": Known(4), "kv": Known("bfloat16")}
SCALARS = st.one_of(
    st.booleans(), st.integers(-9, 9), st.sampled_from(["4", "4.0", "fp8", "bfloat16", "true"])
)


def point(key: str, selectors: dict[str, str | int | bool], state: str = "lab-measured") -> Measurement:
    return Measurement(
        key=key, state=state, selectors=selectors, samples=(Sample(metric="decode_tok_s", value="1.50"),)
    )


SERIES = Measurement(
    key="f/curve",
    state="lab-screened",
    selectors={"tp": 4, "kv": "bfloat16"},
    axis="prompt_tokens",
    samples=tuple(
        Sample(metric="decode_tok_s", value=v, point_x=x) for x, v in (("1024", "9"), ("4096", "5"))
    ),
)
VIEW = Coverage(
    key="f/view",
    label="depth by TP",
    row_key="prompt_tokens",
    column_key="tp",
    rows=(1024, 4096),
    columns=(2, 4),
    fixed={"kv": "bfloat16"},
    cells=(
        Cell(row=1024, column=2, state="missing", reason="not run"),
        Cell(row=1024, column=4, state="lab-screened", measurement="f/curve", point_x="1024"),
        Cell(row=4096, column=4, state="lab-measured", measurement="f/curve", point_x="4096"),
    ),
)


@given(SCALARS, SCALARS)
def test_equality_is_symmetric_and_never_mixes_truth_with_numbers(
    a: str | int | bool, b: str | int | bool
) -> None:
    assert equal(a, b) == equal(b, a)
    assert equal(a, a)
    if isinstance(a, bool) != isinstance(b, bool):
        assert not equal(a, b)


def test_what_one_place_does_not_state_is_a_gap_and_no_difference() -> None:
    (gap,) = gaps(HERE, {"cards": Known(4)}, ["cards", "kv"])
    assert gap == Gap("kv", "bfloat16", None)
    assert not gap.differs
    assert gaps({}, {}, ["kv"])[0] == Gap("kv", None, None)


@pytest.mark.parametrize("pair", ["cards", "=2", "cards=", "", "x=" + "y" * 2001])
def test_a_context_that_says_nothing_is_refused(pair: str) -> None:
    with pytest.raises(UsageError):
        context([pair])


def test_one_dimension_cannot_have_two_values() -> None:
    assert context(["kv=fp8", "kv=fp8", "a=b=c"]) == {"kv": "fp8", "a": "b=c"}
    with pytest.raises(UsageError):
        context(["kv=fp8", "kv=fp16"])


@pytest.mark.parametrize("kind", ["performance", "exactness", "treatment"])
def test_a_number_does_not_leave_its_own_point(kind: str) -> None:
    named = next(k for k in CLAIM_KINDS if k == kind)
    assert decide(named, asked(HERE, {"cards": 2}), ()).answer == "does-not-transfer"
    assert decide(named, asked(HERE, {"cards": 4}), ()).answer == "transfers"
    assert decide(named, asked(HERE, {"host": "mine"}), ()).answer == "unknown"
    # One known difference decides, whatever else is not known.
    assert decide(named, asked(HERE, {"host": "mine", "kv": "fp8"}), ()).answer == "does-not-transfer"


def test_without_a_rule_nothing_is_known_of_a_way_of_working() -> None:
    found = decide("method", asked(HERE, {"cards": 4}), ())
    assert (found.answer, found.rule) == ("unknown", "no-rule")
    rule = Rule("scope-rule 1", "method", ("kv",), "Works wherever KV is the same.")
    assert decide("method", asked(HERE, {"cards": 2}), [rule]).answer == "transfers"
    assert decide("method", asked(HERE, {"cards": 2}), [rule]).free == ("cards",)
    assert decide("method", asked(HERE, {"kv": "fp8"}), [rule]).answer == "does-not-transfer"
    other = Rule("scope-rule 2", "method", ("cards",), "And on as many cards.")
    assert decide("method", asked(HERE, {"cards": 2}), [rule, other]).rule == "scope-rule 2"


def test_a_dimension_that_nobody_states_is_not_harmless() -> None:
    rule = Rule("scope-rule 1", "performance", ("kv",), "Numbers need the same KV.")
    found = decide("performance", asked(HERE, {"cardz": 2}), [rule])
    assert (found.answer, found.gaps) == ("unknown", (Gap("cardz", None, 2),))


def test_a_whole_place_must_state_what_the_rule_preserves() -> None:
    there = {"cards": Known(4), "kv": Known("bfloat16")}
    found = decide("performance", Question(HERE, there, whole=True), ())
    assert (found.answer, found.gaps) == ("unknown", (Gap("tp", 4, None),))
    assert decide("performance", Question(HERE, HERE, whole=True), ()).answer == "transfers"
    assert decide("performance", Question({}, {}, whole=True), ()).answer == "unknown"
    kept = Rule("scope-rule 1", "performance", ("kv",), "")
    assert decide("performance", Question({}, there, whole=True), [kept]).answer == "unknown"


@pytest.mark.parametrize("relation", ["withdraws", "quarantines", "failed"])
def test_what_no_longer_stands_carries_nowhere(relation: str) -> None:
    question = Question(HERE, {"cards": Known(4)}, whole=False, undone=(Standing(relation, "note:n", "raw"),))
    for kind in CLAIM_KINDS:
        found = decide(kind, question, ())
        assert (found.answer, found.rule) == ("does-not-transfer", "does-not-stand")
        assert "note:n" in found.because
    superseded = question._replace(undone=(Standing("supersedes", "packet:x", ""),))
    assert decide("performance", superseded, ()).answer == "transfers"


@pytest.mark.parametrize("relation", ["withdraws", "quarantines", "fails"])
def test_what_rests_on_something_taken_back_is_not_said_to_transfer(relation: str) -> None:
    fell = (Standing(relation, "note:n", "the host was not idle"),)
    found = decide("performance", Question(HERE, {"cards": Known(4)}, whole=False, shaken=fell), ())
    assert (found.answer, found.rule) == ("unknown", "rests-on-undone")
    assert "note:n: the host was not idle" in found.because
    elsewhere = decide("performance", Question(HERE, {"cards": Known(2)}, whole=False, shaken=fell), ())
    assert elsewhere.answer == "does-not-transfer"


def test_a_dimension_that_documents_disagree_on_is_known_only_to_differ_from_what_none_states() -> None:
    here = {**HERE, "kv": Known("bfloat16", others=("fp8",))}
    for kv in ("bfloat16", "fp8"):
        found = decide("performance", asked(here, {"kv": kv}), ())
        assert (found.answer, found.gaps) == ("unknown", (Gap("kv", None, kv),))
        assert "documents disagree on kv here" in found.because
    assert decide("performance", asked(here, {"kv": "int8"}), ()).answer == "does-not-transfer"
    assert decide("performance", asked(here, {"cards": 4}), ()).answer == "transfers"
    assert decide("performance", Question(here, here, whole=True), ()).answer == "unknown"


@given(st.dictionaries(st.sampled_from("abcd"), SCALARS), st.dictionaries(st.sampled_from("abcd"), SCALARS))
def test_transfers_only_when_nothing_asked_differs(
    here: dict[str, str | int | bool], where: dict[str, str | int | bool]
) -> None:
    stands = {name: Known(value) for name, value in here.items()}
    found = decide("performance", asked(stands, where), ())
    differs = any(name in here and not equal(here[name], value) for name, value in where.items())
    unstated = any(name not in here for name in where)
    expected = "does-not-transfer" if differs else "unknown" if unstated else "transfers"
    assert found.answer == expected


def test_a_closure_covers_only_what_it_selects() -> None:
    closed = Closure(key="f/1", selectors={"cards": (1, 2, 3)}, state="missing", reason="four cards only")
    assert covers(closed, moved(HERE, {"cards": 2}))
    assert not covers(closed, HERE)
    assert not covers(closed, {})
    assert not covers(Closure(key="f/2", selectors={}, state="missing", reason=""), HERE)


def test_the_nearest_point_misses_the_fewest_dimensions() -> None:
    points = [
        point("f/a", {"cards": 4, "tp": 4, "kv": "fp8"}),
        point("f/b", {"cards": 2, "tp": 4, "kv": "bfloat16"}),
        point("f/c", {"cards": 4}),
    ]
    near = nearest(moved(HERE, {"cards": 3}), points, ["cards"])
    assert near is not None
    assert near.measurement.key == "f/c" or near.differing
    exact = nearest(moved(HERE, {"cards": 2}), points, ["cards"])
    assert exact is not None
    assert (exact.measurement.key, exact.differing, exact.unstated) == ("f/b", (), ())
    assert nearest(HERE, [], []) is None
    at = nearest({"tp": Known(4), "prompt_tokens": Known(4000)}, [SERIES], ["prompt_tokens"])
    assert at is not None
    assert at.point_x == "4096"


def test_a_cell_is_what_the_data_says() -> None:
    found = {(cell.row, cell.column): cell for cell in matrix(VIEW, Sources([SERIES]))}
    assert len(found) == 4
    assert found[1024, 4].state == "lab-screened"
    assert found[1024, 4].agrees
    assert [sample.value for sample in found[4096, 4].samples] == ["5"]
    assert not found[4096, 4].agrees  # It says lab-measured where the data is screened.
    assert (found[1024, 2].state, found[1024, 2].reason, found[1024, 2].agrees) == (
        "missing",
        "not run",
        True,
    )
    assert (found[4096, 2].state, found[4096, 2].stated, found[4096, 2].agrees) == ("missing", None, False)


def test_estimates_and_closures_fill_only_what_was_not_measured() -> None:
    guess = Estimate(
        key="f/e", selectors={"prompt_tokens": 1024, "tp": 2, "kv": "bfloat16"}, metric="m", value="3"
    )
    closed = Closure(key="f/c", selectors={"tp": (2, 4)}, state="closed", reason="decided")
    found = {
        (cell.row, cell.column): (cell.state, cell.cites)
        for cell in matrix(VIEW, Sources([SERIES], [guess], [closed]))
    }
    # An estimate made for less than the whole cell does not fill it.
    assert found == {
        (1024, 2): ("estimated", "f/e"),
        (1024, 4): ("lab-screened", "f/curve"),
        (4096, 2): ("closed", ""),
        (4096, 4): ("lab-screened", "f/curve"),
    }


def test_the_gravest_sign_decides_the_state_of_a_claim() -> None:
    passed, failed = Successor("a" * 64, "PASS"), Successor("b" * 64, "FAIL")
    gone = Standing("withdraws", "note:n", "the host was not idle")
    assert life(Signs(successors=[Successor("a" * 64, "")])).state == "reproducing"
    assert life(Signs(successors=[Successor("a" * 64, "INCOMPLETE")])).state == "reproducing"
    assert life(Signs(successors=[passed])).state == "confirmed"
    assert life(Signs(successors=[passed, failed])).state == "refuted"
    assert life(Signs(successors=[passed], undone=[Standing("corrects", "note:m", "")])).state == "adjusted"
    assert life(Signs(successors=[passed], undone=[Standing("supersedes", "packet:p", "")])).state == "stale"
    assert life(Signs(successors=[passed], rests_on_undone=[gone])).state == "stale"
    worst = life(Signs(successors=[failed], undone=[gone]))
    assert worst.state == "withdrawn"
    assert worst.because[0] == "note:n withdraws it: the host was not idle"
    assert len(worst.because) == 2
    own = Judged("c" * 64, "p", "PASS", "PASS")
    assert life(Signs(judged=[own])).state == "submitted"
    assert life(Signs(judged=[own._replace(outcome="INELIGIBLE")])).state == "submitted"


def test_values_as_people_type_them() -> None:
    assert [scalar(text) for text in ("-3", "1e3", "False", "12345678901234567890")] == [
        -3,
        "1e3",
        "False",
        "12345678901234567890",
    ]


def test_how_a_number_was_counted_is_not_preserved_where_nobody_says_it() -> None:
    found = decide("accounting", asked(HERE, {"cards": 2}), ())
    assert (found.answer, found.gaps) == ("unknown", (Gap("convention", None, None),))
    counted = {**HERE, "convention": Known("conventional-intervals")}
    assert decide("accounting", asked(counted, {"cards": 2}), ()).answer == "transfers"
    assert decide("accounting", asked(counted, {"convention": "other"}), ()).answer == "does-not-transfer"
