"""Text of listings: members of a packet, the history of refs, sizes of a store."""

from collections.abc import Iterable, Iterator

from provstore.report.text import NOT_STATED, columns, count, short
from provstore.reports import Listed, RefStep, StatsReport


def ls_lines(members: Iterable[Listed]) -> Iterator[str]:
    r"""Yield one line for each member: type, size in bytes, short BLAKE3, path.

    Lines come as members do, so a listing of any length needs no memory.

    Example:
        >>> root = Listed(path="a", type="file", size=3, blake3="ab" * 32, sha256=None, role="", kind="file",
        ...     custody="held")
        >>> print(*ls_lines([root]), sep="\n")
        file                    3  abababababab  a
    """
    for member in members:
        size = NOT_STATED if member.size is None else str(member.size)
        if member.type == "directory":
            size = ""
        digest = "" if member.type in ("directory", "symlink") else short(member.blake3 or member.sha256)
        line = f"{member.type:<10} {size:>14}  {digest:<12}  {member.path}"
        if member.target is not None:
            line += f" -> {member.target}"
        notes = [note for note in (_custody(member), member.state) if note]
        yield line + (f"  [{', '.join(notes)}]" if notes else "")


def _custody(member: Listed) -> str | None:
    return None if member.custody == "held" or member.type in ("directory", "symlink") else member.custody


def log_lines(steps: Iterable[RefStep]) -> Iterator[str]:
    """Yield one line for each step of a ref's history, the oldest first.

    Example:
        >>> new = {"packet": "ab" * 32, "previous": None, "time": "2026-01-01T00:00:00Z"}
        >>> step = RefStep(name="run", sequence=1, **new)
        >>> print(*log_lines([step]))
        1  2026-01-01T00:00:00Z  run  abababababab  (new)
    """
    yield from columns(
        [(str(step.sequence), step.time, step.name, _target(step), _before(step)) for step in steps],
        right=[0],
    )


def _target(step: RefStep) -> str:
    return "removed" if step.packet is None else short(step.packet)


def _before(step: RefStep) -> str:
    if step.previous is None:
        return "(new)"
    return "(same)" if step.previous == step.packet else f"(was {short(step.previous)})"


def stats_lines(report: StatsReport) -> Iterator[str]:
    """Yield the sizes of a store."""
    yield report.store
    yield from columns(
        [
            ("  refs", f"{report.refs:,}"),
            ("  objects", f"{report.objects:,}"),
            ("  records", f"{report.records:,}"),
            ("  plain bytes", f"{report.plain_bytes:,}"),
            ("  stored bytes", f"{report.stored_bytes:,}"),
            ("  blob files", f"{report.blob_files:,}"),
            ("  readers now", f"{report.readers:,}"),
        ],
        right=[1],
    )
    if report.stale_readers:
        yield f"  {count(report.stale_readers, 'slot')} of dead readers cleared"
