"""Declared capture commands: run with a time limit and an empty environment, their output kept as it came."""

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import IO, Final, Literal, NamedTuple

import msgspec

from provstore.files.hashing import hash_file
from provstore.host.sheet import reason_of
from provstore.ids import digests
from provstore.paths import show
from provstore.reports.hosted import CommandOutput

LIMIT_S: Final = 30.0
"""How long one command may take unless told otherwise."""

OUTPUT_LIMIT_BYTES: Final = 16 << 20
"""How much of either output is kept; a command that prints more is stopped."""

ENVIRONMENT: Final = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C", "LC_ALL": "C"}
"""The whole environment of a capture command."""

_POLL_S: Final = 0.02

_State = Literal["ended", "timeout", "too-long", "not-run"]


class CaptureCommand(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One command whose output says something about a host.

    Attributes:
        name: short name; its output is kept under it.
        argv: absolute path of the program, then its arguments.
        seconds: how long it may take.
        required: a run does not start unless it ends with exit code 0.
    """

    name: str
    argv: tuple[str, ...]
    seconds: float = LIMIT_S
    required: bool = False


class Captured(NamedTuple):
    """What one command gave: the report of it, and the bytes."""

    output: CommandOutput
    stdout: bytes = b""
    stderr: bytes = b""


def run_command(command: CaptureCommand) -> Captured:
    """Run one command and return what it gave, however it ended.

    It gets :data:`ENVIRONMENT` and nothing else, no input, and a session of its own, which is killed as a
    whole when the time is over and once more when the program has ended.
    """
    shown = tuple(show(word) for word in command.argv)
    program = command.argv[0] if command.argv else ""
    if not program.startswith("/"):
        return _not_run(command, shown, "the program is no absolute path, so PATH would choose it")
    try:
        sha256 = hash_file(program).sha256.hex()
    except OSError as error:
        return _not_run(command, shown, f"{show(program)}: {reason_of(error)}")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        try:
            process = subprocess.Popen(
                list(command.argv), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                env=ENVIRONMENT, cwd="/", start_new_session=True, close_fds=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else str(error)
            return _not_run(command, shown, f"{show(program)}: {reason}")
        state = _wait(process, began + command.seconds, (out, err))
        seconds = time.monotonic() - began
        data = [_content(file) for file in (out, err)]
    found = CommandOutput(
        name=command.name,
        argv=shown,
        state=state,
        exit_code=process.returncode if state == "ended" else None,
        reason={"timeout": f"did not end within {command.seconds:g} s",
                "too-long": f"printed more than {OUTPUT_LIMIT_BYTES} bytes"}.get(state, ""),
        seconds=f"{seconds:.3f}",
        program_sha256=sha256,
    )  # fmt: skip
    return with_output(found, data[0], data[1])


def run_commands(commands: Sequence[CaptureCommand]) -> list[Captured]:
    """Run commands one after the other."""
    return [run_command(command) for command in commands]


def with_output(output: CommandOutput, stdout: bytes, stderr: bytes) -> Captured:
    """Return a report of a command with the digests of what it printed."""
    out, err = digests(stdout), digests(stderr)
    told = msgspec.structs.replace(
        output,
        stdout=f"{output.name}.stdout",
        stdout_sha256=out.sha256.hex(),
        stdout_blake3=out.blake3.hex(),
        stdout_bytes=len(stdout),
        stderr=f"{output.name}.stderr" if stderr else "",
        stderr_sha256=err.sha256.hex() if stderr else None,
        stderr_bytes=len(stderr),
    )
    return Captured(told, stdout, stderr)


def _not_run(command: CaptureCommand, shown: tuple[str, ...], reason: str) -> Captured:
    return Captured(CommandOutput(name=command.name, argv=shown, state="not-run", reason=reason))


def _wait(process: subprocess.Popen[bytes], deadline: float, files: Sequence[IO[bytes]]) -> _State:
    _limit_files(process.pid)
    state: _State = "ended"
    while process.poll() is None:
        if _too_long(files):
            state = "too-long"
        elif time.monotonic() > deadline:
            state = "timeout"
        else:
            time.sleep(_POLL_S)
            continue
        break
    # What it started may outlive it; the number of its group stays taken as long as anyone is in it.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return "too-long" if _too_long(files) else state


def _too_long(files: Sequence[IO[bytes]]) -> bool:
    return any(os.fstat(file.fileno()).st_size > OUTPUT_LIMIT_BYTES for file in files)


def _limit_files(pid: int) -> None:
    """Bound what a child can write, so that it cannot fill a disk before it is stopped."""
    limit = OUTPUT_LIMIT_BYTES + 1
    with contextlib.suppress(OSError, ValueError, AttributeError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, limit))


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(OUTPUT_LIMIT_BYTES)
