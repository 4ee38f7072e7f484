"""Key=value files, line by line."""

import hashlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provstore.evidence.finding import ReaderResult
from provstore.evidence.keyvalue import (
    read_cleanup,
    read_environment,
    read_identity,
    read_idle_summary,
    read_status,
)

READERS = (read_identity, read_environment, read_status, read_cleanup, read_idle_summary)
CLEANUP = b"original_status=0\nstop_status=0\nworker_status=0\nidle_status=0\n"
SUMMARY = b"prestart elapsed_seconds=73 snapshots=13\npoststop elapsed_seconds=73 snapshots=13\n"


def codes(result: ReaderResult) -> list[tuple[str, str]]:
    return [(finding.code, finding.location) for finding in result.findings]


def test_known_bytes() -> None:
    digests = [hashlib.sha256(data).hexdigest()[:8] for data in (b"status=PASS\n", SUMMARY, CLEANUP)]
    assert digests == ["3f46ea84", "7c125b7b", "1ba9e60b"]
    assert read_status(b"status=PASS\n").value("status.status") == "PASS"
    assert [fact.value for fact in read_cleanup(CLEANUP).facts] == [0, 0, 0, 0, 4]
    phases = read_idle_summary(SUMMARY)
    assert [fact.value for fact in phases.all("idle_summary.phase")] == ["prestart", "poststop"]
    assert [fact.value for fact in phases.all("idle_summary.elapsed_seconds")] == [73, 73]
    assert all(reader.findings == () for reader in (phases, read_cleanup(CLEANUP)))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"A=1\nB\n", [("malformed-line", "line 2")]),
        (b"A=1\n=1\n", [("malformed-line", "line 2")]),
        (b"A=1\n B=1\n", [("malformed-line", "line 2")]),
        (b"A=1\n\nB=2\n", [("blank-line", "line 2")]),
        (b"A=1\nB=\xff\n", [("not-utf8", "line 2")]),
        (b"A=1\nB=a\0b\n", [("nul", "line 2")]),
        (b"A=1\r\nB=2\n", [("carriage-return", "line 1")]),
        (b"A=1", [("no-final-newline", "line 1")]),
        (b"\xef\xbb\xbfA=1\n", [("byte-order-mark", "line 1")]),
        (b"A=1\nB=2\nA=1\n", [("duplicate-key", "line 3")]),
        (b"", [("empty", "")]),
    ],
)
def test_bad_lines_are_placed(data: bytes, expected: list[tuple[str, str]]) -> None:
    assert codes(read_environment(data)) == expected


def test_a_repeated_key_has_no_value_even_if_equal() -> None:
    found = read_environment(b"A=1\nB=2\nA=1\n")
    assert [fact.key for fact in found.facts] == ["env.B"]


def test_values_keep_every_byte_after_the_first_sign() -> None:
    found = read_environment(b"A==x= \nB=\n")
    assert [fact.value for fact in found.facts] == ["=x= ", ""]


def test_identity_has_a_second_part() -> None:
    digest = "0a" * 32
    data = f"schema=s\nretries=0\n{digest}  /a/b=c d.py\n{digest} */bin/x\nlate=1\n".encode()
    found = read_identity(data)
    assert [fact.value for fact in found.all("identity#file")] == [
        (digest, "/a/b=c d.py"),
        (digest, "/bin/x"),
    ]
    assert found.value("identity.retries") == "0"
    assert codes(found) == [("out-of-order", "line 5")]


@pytest.mark.parametrize("text", ["00", "+0", "0.0", "", " 0", "0x0", "1" * 16, "false", "١"])
def test_exit_codes_are_integers(text: str) -> None:
    found = read_cleanup(f"a=0\nb={text}\n".encode())
    assert codes(found) == [("wrong-type", "line 2")]
    assert found.fact("cleanup.b") is None
    assert found.value("cleanup#lines") == 2


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"prestart", "malformed-line"),
        (b"prestart  elapsed_seconds=1", "malformed-line"),
        (b"prestart elapsed_seconds=1 x", "malformed-line"),
        (b"prestart elapsed_seconds=73.0", "wrong-type"),
        (b"prestart snapshots=1 snapshots=1", "duplicate-key"),
    ],
)
def test_idle_summary_faults(line: bytes, code: str) -> None:
    assert codes(read_idle_summary(line + b"\n")) == [(code, "line 1")]


@given(st.lists(st.sampled_from(["A", "B", "C", "D"]), unique=True, min_size=1))
def test_order_of_lines_has_no_effect(names: list[str]) -> None:
    def stated(order: list[str]) -> set[tuple[str, object]]:
        data = "".join(f"{name}={name.lower()}\n" for name in order).encode()
        return {(fact.key, fact.value) for fact in read_environment(data).facts}

    assert stated(names) == stated(sorted(names))


@pytest.mark.parametrize("reader", READERS)
@given(data=st.binary(max_size=200) | st.text(alphabet="ab=0 \n\r\0é", max_size=60).map(str.encode))
def test_any_bytes_give_facts_or_findings(reader: Callable[[bytes], ReaderResult], data: bytes) -> None:
    found = reader(data)
    assert found.findings or len(found.facts) >= data.count(b"\n")


def test_findings_are_bounded() -> None:
    found = read_environment(b"nonsense\n" * 100_000)
    assert len(found.findings) == 201
    assert found.findings[-1].code == "more-findings"
    assert "100000" in found.findings[-1].message


def test_large_files_are_refused() -> None:
    assert codes(read_environment(b"a" * (17 << 20))) == [("too-large", "")]
    assert codes(read_environment(b"\n" * 300_000)) == [("too-large", "")]
