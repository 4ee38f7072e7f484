"""The command ``prov``: arguments in, one verb, one answer out."""

import gc
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from provstore.cli.console import Console, Process, refuse, write_document
from provstore.errors import InputOutputError, ProvError, UsageError

__all__ = ["main"]

GARBAGE_AFTER: Final = 50_000
"""New objects before cyclic garbage is looked for: more than imports make, and they make none."""

INTERRUPTED: Final = 130
"""Stopped by Ctrl-C: 128 and the number of the signal, as shells count."""

DEBUG_VARIABLE: Final = "PROVSTORE_DEBUG"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: what follows ``prov`` on the command line; None for this process's own.
    """
    if arguments is None:
        gc.set_threshold(GARBAGE_AFTER)
        Process.alone = True
    with _LastResort() as last:
        last.code = _run(list(sys.argv[1:] if arguments is None else arguments))
    if arguments is None:
        gc.freeze()  # the interpreter ends, and need not look through all modules for garbage first
    return last.code


def _run(arguments: list[str]) -> int:
    """Run the command and turn every known way to end into an exit code; the one handler of errors."""
    as_json = "--json" in arguments
    try:
        _occupy_closed_streams()
        from provstore.cli.app import app

        app(args=arguments, prog_name="prov")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
        return _explained(code, as_json)
    except ProvError as error:
        return refuse(error, json=as_json)
    except OSError as error:
        from provstore.paths import show

        path = show(os.fsencode(error.filename)) if isinstance(error.filename, str | bytes) else "system"
        reason = error.strerror or str(error)
        return refuse(InputOutputError(path, error.errno or 0, reason), json=as_json)
    except KeyboardInterrupt:
        return _explained(INTERRUPTED, as_json)
    return 0


def _explained(code: int, as_json: bool) -> int:
    """Add what the argument parser leaves out: a word on an interruption, a document on wrong usage."""
    if code == INTERRUPTED:
        Console().note("interrupted; nothing half-done was published")
    if code == UsageError.exit_code and as_json:
        from provstore.report.failures import error_document

        write_document(error_document(UsageError("the arguments are wrong; stderr says which")))
    return code


class _LastResort:
    """Keeps a defect of ours from looking like a verdict: exit code 70, and where it happened."""

    def __init__(self) -> None:
        self.code = ProvError.exit_code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if kind is None or error is None or not issubclass(kind, Exception):
            return False
        import traceback

        if os.environ.get(DEBUG_VARIABLE):
            traceback.print_exception(error)
        frame = traceback.extract_tb(trace)[-1]
        place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
        refuse(ProvError(f"defect in provstore: {kind.__name__} at {place}: {error}"), json=False)
        self.code = ProvError.exit_code
        return True


def _occupy_closed_streams() -> None:
    """Open the void in place of closed standard streams, so that no file of a store takes their number."""
    descriptor = os.open(os.devnull, os.O_RDWR)
    while descriptor <= 2:
        descriptor = os.dup(descriptor)
    os.close(descriptor)
