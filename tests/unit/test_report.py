"""Reports as text and as exit codes."""

import pytest

from provstore.errors import NotFoundError, PinMismatchError
from provstore.report.changes import diff_lines
from provstore.report.exits import exit_code
from provstore.report.failures import error_document, error_lines
from provstore.report.listings import ls_lines
from provstore.report.text import amount, columns
from provstore.report.verdicts import fsck_lines, verify_lines
from provstore.reports import (
    Check,
    Damage,
    DiffReport,
    FactChange,
    FsckReport,
    Listed,
    MemberChange,
    Missing,
    RestoreReport,
    Side,
    VerifyReport,
)

ID = "ab" * 32


@pytest.mark.parametrize(
    ("size", "text"),
    [(None, "-"), (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_949, "999.9 kB"), (999_950, "1.0 MB")],
)
def test_amounts_keep_absent_apart_from_zero(size: int | None, text: str) -> None:
    assert amount(size) == text


def test_amounts_of_any_size_have_a_unit() -> None:
    assert amount(72_000_000_000) == "72.0 GB"
    assert amount(10**15) == "1.0 PB"
    assert amount(10**18) == "1000.0 PB"


def test_columns_of_nothing_are_nothing() -> None:
    assert columns([]) == []


def test_a_failed_verdict_shows_what_to_know_and_what_to_do() -> None:
    checks = (
        Check(check="against", outcome="PASS", code="ok", role="logs", message="2 files are as sealed"),
        Check(
            check="against",
            outcome="FAIL",
            code="changed",
            role="evidence",
            path="status.txt",
            expected="blake3:a",
            found="blake3:b",
            location="byte 7",
        ),
        Check(check="closure", outcome="UNKNOWN", code="not-here", role="weights"),
    )
    missing = (
        Missing(role="weights", path="a", custody="external", blake3=None, sha256=ID, size_bytes=None),
    )
    lines = list(verify_lines(VerifyReport(packet=ID, outcome="FAIL", checks=checks, missing=missing)))
    assert lines[0] == f"FAIL  packet {ID}"
    assert "1 FAIL, 1 PASS, 1 UNKNOWN" in lines[1]
    text = "\n".join(lines)
    for part in ("FAIL  changed  evidence status.txt", "blake3:a", "blake3:b", "byte 7", "no origin stated"):
        assert part in text
    assert sum(line.startswith("to do: ") for line in lines) == 2


def test_a_long_list_of_missing_members_says_how_many_more() -> None:
    missing = tuple(
        Missing(role="w", path=str(n), custody="declared", blake3=None, sha256=ID, size_bytes=1)
        for n in range(25)
    )
    text = "\n".join(verify_lines(VerifyReport(packet=ID, outcome="INCOMPLETE", checks=(), missing=missing)))
    assert "not here: 25 members" in text
    assert "and 5 more" in text


def test_a_difference_is_grouped_by_role() -> None:
    old, new = Side(type="file", blake3="1" * 64, size=10), Side(type="executable", blake3="2" * 64, size=10)
    link = Side(type="symlink", target="x")
    report = DiffReport(
        same=False,
        sentence="3 differ",
        added=(MemberChange(role="b", path="new", from_=None, to=link),),
        removed=(MemberChange(role="a", path="", from_=old, to=None),),
        changed=(MemberChange(role="a", path="lib.so", from_=old, to=new, note="same build-id"),),
        identity=(FactChange(role="src", path="", key="git.commit", from_="c" * 40, to=None),),
        environment=(),
        result=(),
        kept=4,
        kept_roles=("logs", "suite"),
    )
    assert list(diff_lines(report)) == [
        "3 differ",
        "a",
        "  -  (entry)  111111111111                             10 B",
        "  ~  lib.so   111111111111 => 222222222222 executable  10 B  same build-id",
        "b",
        "  +  new  -> x",
        "identity: 1 fact",
        "  src  git.commit  cccccccccccc => -",
        "stayed: 4 members; whole: logs, suite",
    ]


def test_a_listing_shows_custody_and_state() -> None:
    member = Listed(
        path="w",
        type="file",
        size=None,
        blake3=None,
        sha256=ID,
        role="",
        kind="model",
        custody="declared",
        state="pointer",
    )
    (line,) = ls_lines([member])
    assert line.endswith("w  [declared, pointer]")
    assert " - " in line


def test_damage_is_named_with_its_packet() -> None:
    damage = Damage(id=ID, role="logs", packet="cd" * 32, reason="bytes give 00", path="run.log")
    report = FsckReport(objects=1, records=1, bytes=2, damaged=(damage,), unreferenced=3)
    text = "\n".join(fsck_lines(report))
    assert text.startswith("FAIL")
    for part in (ID, "bytes give 00", "logs run.log", "cd" * 32, "3 unreferenced items"):
        assert part in text
    assert exit_code(report) == 1


def test_no_verdict_but_pass_is_zero() -> None:
    for outcome, code in (("PASS", 0), ("FAIL", 1), ("INCOMPLETE", 3)):
        assert exit_code(VerifyReport(packet=ID, outcome=outcome, checks=())) == code  # type: ignore[arg-type]


def test_a_restore_with_holes_is_not_a_success() -> None:
    hole = Missing(role="w", path="", custody="external", blake3=ID, sha256=ID, size_bytes=1)
    whole = RestoreReport(packet=ID, target="out", files=1, size_bytes=1)
    assert exit_code(whole) == 0
    assert exit_code(RestoreReport(packet=ID, target="out", files=1, size_bytes=1, missing=(hole,))) == 3


def test_an_error_keeps_its_fields_and_nothing_private() -> None:
    error = PinMismatchError(["a: expected x, found y", "b: expected x, found z"])
    error.__dict__["__added_by_a_framework__"] = object()
    assert set(error_document(error)["error"]) == {"code", "message", "remedy", "exit_code", "mismatches"}
    assert list(error_lines(error))[-1].strip() == error.remedy
    assert len(list(error_lines(NotFoundError("x", "no")))) == 2
