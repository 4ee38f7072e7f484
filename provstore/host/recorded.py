"""What a recorded host says beside its files: digests, commits and outputs that were seen there.

A recorded host is a directory with parts of ``/sys``, ``/proc`` and ``/etc``. Big files, source trees and
outputs of commands are not in it; ``recorded.toml`` at its top states what was seen of them:

    format = "provstore/recorded-host/v1"
    origin = "where this was taken from"

    [files]
    "/opt/engine/bin/python" = "sha256 in hex"

    [sources."/opt/engine/src"]
    commit = "40 hex digits"
    clean = true

    [packages."/opt/engine/venv"]
    torch = "2.12.0"

    [commands.discovery]
    stdout = "..."
"""

from typing import Final

import msgspec

from provstore import libraries
from provstore.errors import HostError
from provstore.host.sheet import Sheet
from provstore.ids import to_raw

FORMAT: Final = "provstore/recorded-host/v1"
FILE: Final = "/recorded.toml"


class RecordedSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """State of a source tree when the host was recorded."""

    commit: str
    clean: bool


class RecordedOutput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a capture command printed when the host was recorded."""

    stdout: str
    exit_code: int = 0


class Recorded(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole of ``recorded.toml``.

    Attributes:
        format: ``provstore/recorded-host/v1``.
        origin: where the values come from.
        files: SHA-256 by path.
        sources: source trees by path.
        packages: versions by environment and name.
        commands: outputs by the name of the command.
    """

    format: str = FORMAT
    origin: str = ""
    files: dict[str, str] = {}
    sources: dict[str, RecordedSource] = {}
    packages: dict[str, dict[str, str]] = {}
    commands: dict[str, RecordedOutput] = {}


def read_recorded(sheet: Sheet) -> Recorded:
    """Return what a recorded host states; nothing for this machine itself, or where no such file is.

    Raises:
        HostError: the file is there and has another form.
    """
    if not sheet.recorded or not sheet.there(FILE):
        return Recorded()
    where = sheet.place(FILE)
    found = sheet.read(FILE)
    if found.value is None:
        raise HostError(where, found.reason)
    try:
        stated = msgspec.convert(libraries.tomllib.loads(found.value), Recorded)
    except (ValueError, RecursionError) as error:  # msgspec's error is a ValueError
        raise HostError(where, str(error)) from error
    if stated.format != FORMAT:
        raise HostError(where, f'needs format = "{FORMAT}"')
    for path, digest in stated.files.items():
        to_raw(digest, f"{where}: {path}")
    return stated
