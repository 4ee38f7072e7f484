"""Holding the files that a checksum list names to their digests; what was found can wait on disk."""

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from provstore.errors import UnsafePathError
from provstore.files.checklist import CheckList
from provstore.files.checksums import ChecksumLine
from provstore.files.hashing import hash_file
from provstore.files.progress import Meter, Reporter
from provstore.paths import check_path, show
from provstore.reports import Check, Verdict, VerifyReport

Path = str | bytes | os.PathLike[str]

SPOOL_BYTES: Final = 4 << 20
"""Found checks that stay in memory; more of them go to a temporary file."""


class CheckSpool:
    """Checks in the order they came, to be read again as often as one likes.

    Attributes:
        outcomes: how many there are of each outcome.
    """

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self._file = tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)  # noqa: SIM115 (closed by close)
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(Check).decode

    def add(self, check: Check) -> None:
        """Append a check."""
        self.outcomes[check.outcome] += 1
        self._file.write(self._encode(check) + b"\n")

    def __iter__(self) -> Iterator[Check]:
        self._file.seek(0)
        for line in self._file:
            yield self._decode(line)

    def close(self) -> None:
        """Forget everything."""
        self._file.close()

    def __enter__(self) -> "CheckSpool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def verify_checksums(
    file: Path, *, against: Path = ".", algorithm: str | None = None, progress: Reporter | None = None
) -> VerifyReport:
    """Check the files that a GNU, BSD-tag or b3sum checksum file lists.

    Args:
        file: the checksum file.
        against: directory that its names are relative to.
        algorithm: ``sha256`` or ``blake3`` for untagged lines; otherwise either may match.
        progress: is told how far it is.

    Raises:
        EmptyError: the file lists nothing.
        ChecksumFileError: a line in no known form.
    """
    with CheckSpool() as spool:
        report = spool_checksums(spool, file, against=against, algorithm=algorithm, progress=progress)
        return msgspec.structs.replace(report, checks=tuple(spool))


def spool_checksums(
    spool: CheckSpool,
    file: Path,
    *,
    against: Path = ".",
    algorithm: str | None = None,
    progress: Reporter | None = None,
) -> VerifyReport:
    """Do as :func:`verify_checksums` does, but leave the checks in ``spool``; the report has none of them."""
    lines = CheckList(os.path.abspath(os.fsencode(file)), "blake3" if algorithm == "blake3" else "sha256")
    meter = Meter(progress, files_total=lines.count)
    base = os.path.abspath(os.fsencode(against))
    size = 0
    for line in lines:
        check, read_bytes = _line(line, base, lines.where, either=algorithm is None)
        spool.add(check)
        size += read_bytes
        meter.add(read_bytes, 1, line.name)
    verdict: Verdict = "PASS" if spool.outcomes["PASS"] else "INCOMPLETE"
    verdict = "INCOMPLETE" if spool.outcomes["UNKNOWN"] else verdict
    return VerifyReport(
        packet="",
        outcome="FAIL" if spool.outcomes["FAIL"] else verdict,
        checks=(),
        objects_checked=spool.outcomes["PASS"],
        bytes_checked=size,
    )


def _line(line: ChecksumLine, base: bytes, where: str, *, either: bool) -> tuple[Check, int]:
    name, place = show(line.name), f"{where}:{line.line}"
    expected = str(line.digest)
    try:
        relative = check_path(line.name[2:] if line.name.startswith(b"./") else line.name, place)
        found = hash_file(os.path.join(base, relative))
    except UnsafePathError as error:
        return _listed("FAIL", "unsafe-path", name, expected, None, place, error.reason), 0
    except FileNotFoundError:
        return _listed("FAIL", "missing", name, expected, None, place, "no such file"), 0
    except OSError as error:
        reason = error.strerror or str(error)
        return _listed("UNKNOWN", "unreadable", name, expected, None, place, reason), 0
    actual = found.blake3 if line.digest.algorithm == "blake3" else found.sha256
    tagged_either = either and line.digest.raw == found.blake3
    if actual == line.digest.raw or tagged_either:
        return _listed("PASS", "ok", name, expected, expected, place, ""), found.size_bytes
    shown = f"{line.digest.algorithm}:{actual.hex()} ({found.size_bytes} bytes)"
    return _listed("FAIL", "changed", name, expected, shown, place, ""), found.size_bytes


def _listed(
    outcome: str, code: str, path: str, expected: str, found: str | None, place: str, message: str
) -> Check:
    return Check(
        check="checksums",
        outcome="PASS" if outcome == "PASS" else "FAIL" if outcome == "FAIL" else "UNKNOWN",
        code=code,
        path=path,
        expected=expected,
        found=found,
        location=place,
        message=message,
    )
