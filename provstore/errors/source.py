"""What can be wrong with files that are to be sealed."""

from collections.abc import Sequence

from provstore.errors.base import ProvError, listed


class SourceChangedError(ProvError):
    """A file changed while it was read; nothing of it is in the store.

    Attributes:
        path: shown form of the file's path.
        changed: names of the stat fields that differ.
    """

    code = "source-changed"
    exit_code = 13
    remedy = "Seal again when nothing writes to it; for a growing log, --allow-growing seals a stated prefix."

    def __init__(self, path: str, changed: Sequence[str]) -> None:
        super().__init__(f"{path}: changed while read ({', '.join(changed)})")
        self.path = path
        self.changed = tuple(changed)


class SourceUnreadableError(ProvError):
    """Paths that could not be read, or vanished during the walk.

    Attributes:
        failures: shown path and reason of each.
    """

    code = "source-unreadable"
    exit_code = 14
    remedy = "Give read permission, exclude the paths, or record the holes with --allow-unreadable."

    def __init__(self, failures: Sequence[tuple[str, str]]) -> None:
        lines = listed(f"{path}: {reason}" for path, reason in failures)
        super().__init__(f"{len(failures)} path(s) cannot be read:{lines}")
        self.failures = tuple(failures)


class SpecialFileError(ProvError):
    """A FIFO, socket or device lies in the tree.

    Attributes:
        found: shown path and type of each.
    """

    code = "special-file"
    exit_code = 15
    remedy = "Exclude it with --exclude; it has no bytes that could be sealed."

    def __init__(self, found: Sequence[tuple[str, str]]) -> None:
        lines = listed(f"{path}: {kind}" for path, kind in found)
        super().__init__(f"{len(found)} path(s) are no files, links or directories:{lines}")
        self.found = tuple(found)


class PinMismatchError(ProvError):
    """Pins of a spec do not hold; all mismatches are listed.

    Attributes:
        mismatches: one line each: role, path, expected and found.
    """

    code = "pin-mismatch"
    exit_code = 16
    remedy = "Restore the pinned bytes, or correct the pin if the new bytes are what you mean to seal."

    def __init__(self, mismatches: Sequence[str]) -> None:
        super().__init__(f"{len(mismatches)} pin(s) do not hold:{listed(mismatches, 200)}")
        self.mismatches = tuple(mismatches)


class IncompleteSourceError(ProvError):
    """Files that stand in for others: LFS pointers, partial downloads, thin bundles, absent shards.

    Attributes:
        problems: one line each, with the path.
    """

    code = "incomplete-source"
    exit_code = 18
    remedy = "Fetch the payload the named files stand for, then seal again."

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(f"{len(problems)} part(s) of the source are not there:{listed(problems)}")
        self.problems = tuple(problems)


class ProcessError(ProvError):
    """A process that was to be looked at is not there, or nothing of it can be read.

    Attributes:
        pid: its number.
    """

    code = "no-process"
    exit_code = 40
    remedy = "Name a process that runs now and belongs to you."

    def __init__(self, pid: int, reason: str) -> None:
        super().__init__(f"process {pid}: {reason}")
        self.pid = pid
