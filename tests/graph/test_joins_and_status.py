"""What documents say together: conventions by joins, disagreements, and the status that facts give."""

import json
from typing import Any

import pytest

from graph import documents_of_ours as ours
from graph.documents_of_ours import PAGE, dumped
from provstore.evidence.jsonreader import Value, read
from provstore.graph.documents.disagreeing import Different, Disagreements
from provstore.graph.documents.joining import Conventions, Joined, is_same
from provstore.graph.documents.reading import read_any
from provstore.graph.documents.recipe_status import Parts, derive_status


def joined(*documents: Any) -> list[Joined]:
    conventions = Conventions()
    for index, document in enumerate(documents):
        data = document if isinstance(document, bytes) else dumped(document)
        found = read_any(data, "lab", f"d{index}").understood
        assert found is not None
        conventions.add(found)
    return list(conventions.joined())


def test_a_run_id_tells_the_convention_of_a_sweep() -> None:
    (found,) = joined(ours.sweep("leaderboard"), ours.record())
    assert (found.measurement, found.value, found.location) == ("rec-sweep/0", "50.5", "/rows/0/decode_tok_s")
    assert (found.convention, found.conventional) == ("legacy-inclusive-events", "49.995")
    assert found.source == "lab:d1/prior-approved"
    assert "leaderboard run run-before" in found.reason
    assert "/record/prior_approved_tok_s" in found.reason


def test_a_page_with_fewer_digits_is_the_same_number() -> None:
    record = ours.record()
    record["record"] |= {"prior_approved_tok_s": 50.4961, "delta_vs_approved_tok_s": 101.0 - 50.4961}
    (found,) = joined(PAGE.encode(), record)
    assert (found.value, found.location, found.convention) == ("50.5", "line 28", "legacy-inclusive-events")
    assert "50.4961 with fewer digits" in found.reason


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["record"].update(prior_approved_id="another-run"),
        lambda record: record["record"].update(prior_approved_tok_s=50.4, delta_vs_approved_tok_s=50.6),
        lambda record: record["metric_accounting"].update(timestamped_events=99),
    ],
    ids=["another run", "another number", "counts that disagree"],
)
def test_nothing_else_tells_a_convention(change: Any) -> None:
    record = ours.record()
    change(record)
    assert joined(ours.sweep("leaderboard"), record) == []


def test_evidence_tells_the_convention_of_a_family_and_a_package() -> None:
    family, package = ours.family(), ours.package()
    family["run_measurements"][0] |= {"metrics": {"decode_tok_s": [99.99, 7.0]}, "evidence": "d2"}
    package["library"]["featured_metric"]["evidence"] = "d2"
    found = joined(family, package, ours.record())
    assert [(item.measurement, item.value, item.convention) for item in found] == [
        ("fam/fam-run", "99.99", "conventional-intervals"),
        ("fam-packet/featured", "99.99", "conventional-intervals"),
    ]


@pytest.mark.parametrize(
    ("short", "long", "same"),
    [
        ("94.9", "94.92003934159611", True),
        ("94.90", "94.92003934159611", False),
        ("95", "94.92", False),
        ("0.5", "0.45", True),
        ("0.4", "0.45", True),
        ("1.0", "1", True),
        ("1e2", "100.0", True),
        ("1.0e2", "100.4", False),
        ("", "1", False),
        ("9" * 90, "9" * 90, True),
        ("1e999999", "1e999999", False),
    ],
)
def test_when_two_printed_numbers_are_one(short: str, long: str, same: bool) -> None:
    assert is_same(short, long) is same


def different(*documents: tuple[str, Any]) -> set[tuple[str, str, str, str]]:
    collected = Disagreements()
    for name, document in documents:
        data = document if isinstance(document, bytes) else dumped(document)
        reading = read_any(data, "lab", name)
        assert reading.understood is not None
        collected.add(name, reading.understood.format, reading.value, data)
    found: list[Different] = list(collected.found())
    return {(item.field, item.first_value, item.second_value, item.kind) for item in found}


def test_what_a_page_shows_is_compared_with_the_recipe_and_the_sweep() -> None:
    recipe = ours.recipe("reference")
    recipe["engine"].pop("version")
    sweep = ours.sweep("leaderboard")
    sweep["rows"][0] |= {"decode_tok_s": 50.48, "ttft_ms_p50": 1012.3}
    assert different(("r", recipe), ("s", sweep), ("p", PAGE.encode())) == {
        ("/capabilities/chat", "true", "null", "differs"),
        ("/serving/max_concurrency", "null", "1", "differs"),
        ("/rows/0/concurrency", "null", "1", "differs"),
        ("/rows/0/decode_tok_s", "50.48", "50.5", "rounded"),
        (
            "/source/url",
            "https://board.org/runs/run-before",
            "https://board.org/en/runs/run-before",
            "differs",
        ),
    }


def test_two_versions_of_a_recipe_spell_a_member_in_two_ways() -> None:
    second = ours.recipe()
    second["speed_sweeps_ids"] = second.pop("speed_sweep_ids")
    assert different(("a", ours.recipe()), ("b", second)) == {
        ("/speed_sweep_ids/0", "rec-sweep", "absent", "differs"),
        ("/speed_sweeps_ids/0", "absent", "rec-sweep", "differs"),
    }


def value(document: dict[str, Any]) -> dict[str, Value]:
    found = read(json.dumps(document).encode()).value
    assert isinstance(found, dict)
    return found


def whole() -> Parts:
    return Parts(value(ours.instance()), value(ours.hardware()), [value(ours.sweep())])


def test_a_recipe_that_everything_supports_is_validated() -> None:
    found = derive_status(value(ours.recipe()), whole())
    assert (found.status, found.stated, found.missing) == ("validated", "candidate", ())
    assert len(found.supported_by) == len(found.requirements) == 8


CHANGES: dict[str, tuple[str, Any]] = {
    "source": ("a source that can promise", lambda r: r.update(recipe_source="localmaxxing")),
    "no source": ("a source that can promise", lambda r: r.update(recipe_source=None)),
    "reference": ("an executable launch", lambda r: r["launch"].update(kind="reference")),
    "half a docker": ("an executable launch", lambda r: r["launch"].pop("host_port")),
    "mutable image": ("a pinned runtime", lambda r: r["launch"].update(image="org/engine:latest")),
    "one string": ("arguments", lambda r: r["launch"].update(arguments="--port 1")),
    "other backend": ("hardware that fits", lambda r: r["launch"].update(accelerator_backend="other")),
    "no sweep": ("a measured speed", lambda r: r.update(speed_sweep_ids=[])),
    "another sweep": ("a measured speed", lambda r: r.update(speed_sweep_ids=["gone"])),
    "eager": ("no eager mode", lambda r: r["launch"].update(arguments=["--enforce-eager"])),
    "graphs off": ("no eager mode", lambda r: r["engine"].update(graph_mode="none")),
    "graphs unknown": ("no eager mode", lambda r: r["engine"].update(graph_mode=None)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_requirement_is_needed(name: str) -> None:
    wanted, change = CHANGES[name]
    recipe = ours.recipe()
    change(recipe)
    found = derive_status(value(recipe), whole())
    assert found.status == "candidate"
    assert any(item.startswith(wanted) for item in found.missing), found.missing


def test_what_is_not_here_does_not_hold() -> None:
    found = derive_status(value(ours.recipe()), Parts())
    assert [item.partition(":")[0] for item in found.missing] == [
        "an exact revision of the weights",
        "hardware that fits the launch",
        "a measured speed of this recipe, accepted or pinned to a commit",
    ]


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        (lambda sweep: sweep.update(accepted_at="2026-01-03"), True),
        (
            lambda sweep: sweep["source"].update(url="https://git.org/stranger/x/blob/" + "4" * 40 + "/a"),
            False,
        ),
        (lambda sweep: sweep["source"].update(url="https://git.org/lab/registry/blob/main/a"), False),
        (lambda sweep: sweep.update(recipe_id="other"), False),
        (lambda sweep: sweep["rows"][0].update(status="observed"), False),
        (lambda sweep: sweep["rows"][0].update(decode_tok_s=None), False),
    ],
)
def test_which_speeds_count(change: Any, holds: bool) -> None:
    sweep = ours.sweep()
    change(sweep)
    parts = whole()._replace(sweeps=[value(sweep)])
    assert (derive_status(value(ours.recipe()), parts).status == "validated") is holds


def test_a_trusted_owner_counts() -> None:
    sweep = ours.sweep()
    sweep["source"]["url"] = "https://git.org/stranger/x/blob/" + "4" * 40 + "/a"
    parts = whole()._replace(sweeps=[value(sweep)])
    assert derive_status(value(ours.recipe()), parts, trusted=["Stranger"]).status == "validated"
