"""Restoring: members of a packet as files below a new or empty directory, never through a symlink."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from provstore.errors import InputOutputError, ProvError, TargetError
from provstore.files.progress import Meter, Reporter
from provstore.files.root import Root
from provstore.ids import Buffer, RawId, to_raw
from provstore.paths import show
from provstore.reports import Missing, RestoreReport
from provstore.store import objects
from provstore.store.protocol import Reader
from provstore.verbs.members import Member, Only, members, missing_of

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def restore(
    reader: Reader,
    packet: RawId,
    target: str | bytes | os.PathLike[str],
    *,
    only: str | None = None,
    progress: Reporter | None = None,
) -> RestoreReport:
    """Write the held members of a packet below a directory.

    Every file is created anew and keeps its bytes only if they hash to their id. Where one fails, the files
    before it stay, and a note of the error says so. Execute bits, symlinks and empty directories come back;
    times and owners do not.

    Args:
        reader: store or pack that holds the packet.
        packet: its id.
        target: directory that does not exist yet or is empty.
        only: pattern over ``role/path``.
        progress: is told how far it is.

    Returns:
        What was written, and the members whose bytes are not here.

    Raises:
        TargetError: the target is a file, a symlink or not empty.
        IntegrityError: stored bytes are damaged; nothing of that file stays.
        EmptyError: ``only`` matches nothing.
    """
    found = objects.packet(reader, packet)
    base = os.path.abspath(os.fsencode(target))
    picked = Only(only)
    # All of it is looked at before the first byte is written: a name that leads astray may come last.
    wanted = [member for member in members(objects.fetcher(reader), found) if picked(member.place())]
    picked.require_hits()
    _prepare(base)
    missing: list[Missing] = []
    meter = Meter(progress)
    made: set[bytes] = set()
    with Root(base) as root:
        for member in wanted:
            place = member.place()
            with _telling(base, place, meter):
                _parents(root, os.path.dirname(place), made)
                _write(reader, root, member, missing, meter)
            if member.node.kind == "directory":
                made.add(place)
    return RestoreReport(
        packet=packet.hex(),
        target=show(base),
        files=meter.files_done,
        size_bytes=meter.bytes_done,
        missing=tuple(missing),
    )


@contextmanager
def _telling(base: bytes, place: bytes, meter: Meter) -> Iterator[None]:
    """Add to an error what was not written, and what was written before it and stays."""
    try:
        try:
            yield
        except OSError as error:
            raise _translated(show(os.path.join(base, place)), error) from error
    except ProvError as error:
        count = meter.files_done
        done = f"{count} whole {'file was' if count == 1 else 'files were'} written to {show(base)} before it"
        error.add_note(f"{show(place)} was not written; {done}" + (" and left there" if count else ""))
        raise


def _prepare(base: bytes) -> None:
    try:
        if os.path.islink(base):
            raise TargetError(show(base), "is a symlink")
        if os.path.isdir(base):
            if os.listdir(base):
                raise TargetError(show(base), "is not empty")
        else:
            os.makedirs(base)
    except OSError as error:
        raise TargetError(show(base), error.strerror or str(error)) from error


def _parents(root: Root, directory: bytes, made: set[bytes]) -> None:
    """Make the directories above a member that no member of its own makes."""
    todo = []
    while directory and directory not in made:
        todo.append(directory)
        directory = os.path.dirname(directory)
    for path in reversed(todo):
        name, anchor = root.at(path)
        os.mkdir(name, dir_fd=anchor)
        made.add(path)


def _write(reader: Reader, root: Root, member: Member, missing: list[Missing], meter: Meter) -> None:
    node = member.node
    place = member.place()
    if node.kind == "directory":
        name, anchor = root.at(place)
        os.mkdir(name, dir_fd=anchor)
    elif node.kind == "symlink":
        name, anchor = root.at(place)
        os.symlink(node.raw_target(), name, dir_fd=anchor)
    elif not _held(reader, member):
        missing.append(missing_of(member))
    else:
        _write_file(reader, root, place, to_raw(node.blake3 or ""), executable=node.kind == "executable")
        meter.add(node.size_bytes or 0, 1, place)


def _held(reader: Reader, member: Member) -> bool:
    if member.node.blake3 is None or member.entry.custody == "declared":
        return False
    info = reader.info(to_raw(member.node.blake3))
    return info is not None and info.placement != "external"


def _write_file(reader: Reader, root: Root, place: bytes, id: RawId, *, executable: bool) -> None:
    name, anchor = root.at(place)
    descriptor = os.open(name, _CREATE, 0o777 if executable else 0o666, dir_fd=anchor)
    whole = False
    try:
        with open(descriptor, "wb", buffering=0) as file:

            def write(chunk: Buffer) -> None:
                view = memoryview(chunk)
                while view:
                    view = view[file.write(view) :]

            objects.copy(reader, id, write)
        whole = True
    finally:
        if not whole:
            os.unlink(name, dir_fd=anchor)


def _translated(place: str, error: OSError) -> InputOutputError:
    return InputOutputError(place, error.errno or 0, error.strerror or str(error))
