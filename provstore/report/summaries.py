"""Text of what a command made, moved or removed."""

from collections.abc import Iterator

from provstore.report.text import amount, columns, count, indented, short
from provstore.reports import GcReport, PackReport, ProveReport, RestoreReport, SealReport, UnpackReport


def seal_lines(report: SealReport) -> Iterator[str]:
    """Yield a summary of a seal: what it holds, what was read and stored, what was left out."""
    yield f"sealed {report.name} as {short(report.packet)}: {count(report.files, 'file')}"
    rows = [
        (
            entry.role or "(directory)",
            entry.kind,
            entry.custody,
            count(entry.files, "file"),
            amount(entry.size_bytes),
        )
        for entry in report.entries
    ]
    yield from indented(columns(rows, right=[3, 4]))
    new = f"{count(report.objects, 'new object')}, {count(report.records, 'new record')}"
    yield f"  read {amount(report.bytes_read)}, stored {amount(report.bytes_stored)} ({new})"
    for left_out in report.excluded:
        yield f"  excluded {left_out.path} ({left_out.rule})"
    notes = report.observations.get("notes", ())
    yield from indented(notes if isinstance(notes, tuple) else [f"{k}: {v}" for k, v in notes.items()])


def restore_lines(report: RestoreReport) -> Iterator[str]:
    """Yield what was written below a directory, and what was not there to be written."""
    done = f"{count(report.files, 'file')} ({amount(report.size_bytes)})"
    yield f"restored {done} of packet {short(report.packet)} to {report.target}"
    for item in report.missing:
        place = " ".join(part for part in (item.role, item.path) if part)
        yield f"  not written: {place} ({item.custody}; {'; '.join(item.origins) or 'no origin stated'})"


def pack_lines(report: PackReport) -> Iterator[str]:
    """Yield what a pack holds."""
    held = f"{count(report.objects, 'object')}, {count(report.records, 'record')}"
    what = count(len(report.packets), "packet")
    yield f"packed {what} into {report.path}: {held}, {amount(report.size_bytes)}"
    if report.left_out:
        yield f"  left out {count(report.left_out, 'object')}; their digests are in the pack"


def unpack_lines(report: UnpackReport) -> Iterator[str]:
    """Yield what came in, with the names by which it can be had."""
    new = f"{count(report.objects, 'new object')}, {count(report.records, 'new record')}"
    yield f"unpacked {count(len(report.packets), 'packet')}: {new}, {amount(report.bytes_stored)} stored"
    yield from indented(report.packets)
    if report.names:
        yield f"  names: {', '.join(report.names)}"


def prove_lines(report: ProveReport) -> Iterator[str]:
    """Yield what a proof shows and how to check it."""
    place = " ".join(part for part in (report.role, report.path) if part)
    yield f"{report.output}: {place} is in packet {report.packet}"
    yield f"  blake3 {report.blake3 or '-'}; {count(report.records, 'record')}, {amount(report.size_bytes)}"
    yield f"  check it anywhere with `prov verify {report.output}`"


def gc_lines(report: GcReport) -> Iterator[str]:
    r"""Yield what was removed, or would be.

    Example:
        >>> print(*gc_lines(GcReport(deleted=False, objects=0, records=0, size_bytes=0, kept_objects=2,
        ...     kept_records=1, leftovers=(), grace_s=60)), sep="\n")
        nothing to remove; kept 2 objects and 1 record
    """
    kept = f"kept {count(report.kept_objects, 'object')} and {count(report.kept_records, 'record')}"
    if not (report.objects or report.records or report.leftovers):
        yield f"nothing to remove; {kept}"
        return
    loose = f"{count(report.objects, 'object')} and {count(report.records, 'record')}"
    verb = "removed" if report.deleted else "would remove"
    yield f"{verb} {loose} ({amount(report.size_bytes)}) that no ref reaches; {kept}"
    for name in report.leftovers:
        yield f"  {verb} leftover {name}"
    if not report.deleted:
        yield f"  nothing was changed; --delete removes what is older than {report.grace_s} s"
