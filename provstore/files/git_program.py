"""The ``git`` program, run so that the data it looks at cannot run anything else.

Every call is an argument list with an environment built from nothing: no system, global or user
configuration, no hooks, no pager, no prompt, no transport, no lazy fetch, no replace refs, no locks taken
for cosmetic index updates; a limit on time, on output and on memory; its own process group, killed as a
whole. What a repository's *own* configuration could still start is dealt with by
:mod:`provstore.files.git_view`, which never lets Git read it for more than listing it.
"""

import contextlib
import errno
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import IO, Final, NamedTuple

import msgspec

from provstore.errors import InputOutputError, InspectError, MissingExtraError
from provstore.paths import show

TIME_LIMIT_SECONDS: Final = 600.0
"""How long one call of git may take unless told otherwise."""

OUTPUT_LIMIT_BYTES: Final = 1 << 30
"""How much one call may print."""

MEMORY_LIMIT_BYTES: Final = 8 << 30
"""How much private memory one call may take; a small repository can describe billions of files."""

_POLL_SECONDS: Final = 0.05

_ALWAYS: Final = (
    "--no-pager",
    "--literal-pathspecs",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.untrackedCache=false",
    "-c",
    "core.pager=cat",
    "-c",
    "core.sshCommand=false",
    "-c",
    "core.askPass=false",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "core.excludesFile=/dev/null",
    "-c",
    "core.alternateRefsCommand=false",
    "-c",
    "protocol.allow=never",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "safe.directory=*",
)


class GitRun(NamedTuple):
    """What one call gave."""

    code: int
    out: bytes
    err: bytes

    def lines(self) -> list[bytes]:
        r"""Return the fields of NUL-separated output, without the empty one after the last NUL."""
        return self.out.split(b"\0")[:-1]

    def reason(self) -> str:
        """Return the first line on standard error, safe to show, or the exit code."""
        text = self.err.strip().split(b"\n", 1)[0][:500]
        return show(text) if text else f"exit code {self.code}"


class GitPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where git works, and its limits.

    Attributes:
        git_dir: absolute path of the Git directory.
        home: an empty directory of ours; stands in for the user's home.
        work_tree: absolute path of the work tree, where there is one.
        objects: absolute path of the object directory, when it lies elsewhere.
        seconds: time limit of each call.
    """

    git_dir: bytes
    home: bytes
    work_tree: bytes | None = None
    objects: bytes | None = None
    seconds: float = TIME_LIMIT_SECONDS

    def run(self, *args: str | bytes, stdin: bytes = b"") -> GitRun:
        """Run git with these arguments and return what it gave, whatever its exit code.

        Raises:
            MissingExtraError: git is not installed.
            InputOutputError: the time limit passed, or git could not be started.
            InspectError: it printed more than :data:`OUTPUT_LIMIT_BYTES`.
        """
        program = find_git()
        argv = [program, *_ALWAYS, *args]
        with (
            tempfile.TemporaryFile() as source,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            source.write(stdin)
            source.seek(0)
            code = self._wait(argv, (source, out, err), self._environment(program))
            return GitRun(code, _content(out), _content(err))

    def need(self, *args: str | bytes, stdin: bytes = b"") -> GitRun:
        """Run git and insist on exit code 0.

        Raises:
            InspectError: another exit code; see :meth:`run` for the rest.
        """
        done = self.run(*args, stdin=stdin)
        if done.code != 0:
            raise InspectError(self._where(), f"git {_verb(args)} failed: {done.reason()}")
        return done

    def _where(self) -> str:
        return show(self.work_tree or self.git_dir)

    def _environment(self, program: str) -> dict[str, bytes]:
        """Return the whole environment of git; nothing is inherited."""
        found = {
            "PATH": os.fsencode(f"{os.path.dirname(program)}:{os.defpath}"),
            "HOME": self.home,
            "XDG_CONFIG_HOME": self.home,
            "LC_ALL": b"C",
            "GIT_DIR": self.git_dir,
            "GIT_CONFIG_NOSYSTEM": b"1",
            "GIT_CONFIG_GLOBAL": b"/dev/null",
            "GIT_ATTR_NOSYSTEM": b"1",
            "GIT_OPTIONAL_LOCKS": b"0",
            "GIT_TERMINAL_PROMPT": b"0",
            "GIT_ASKPASS": b"false",
            "SSH_ASKPASS": b"false",
            "GIT_SSH_COMMAND": b"false",
            "GIT_ALLOW_PROTOCOL": b"none",
            "GIT_NO_LAZY_FETCH": b"1",
            "GIT_NO_REPLACE_OBJECTS": b"1",
            "GIT_PAGER": b"cat",
            "GIT_EDITOR": b"false",
        }
        if self.work_tree is not None:
            found["GIT_WORK_TREE"] = self.work_tree
        if self.objects is not None:
            found["GIT_OBJECT_DIRECTORY"] = self.objects
        return found

    def _wait(
        self,
        argv: Sequence[str | bytes],
        files: tuple[IO[bytes], IO[bytes], IO[bytes]],
        env: dict[str, bytes],
    ) -> int:
        """Start git, watch its limits, and return its exit code; no process of it is left on any way out."""
        deadline = time.monotonic() + self.seconds
        try:
            process = subprocess.Popen(
                argv,
                stdin=files[0],
                stdout=files[1],
                stderr=files[2],
                env=env,
                cwd=self.work_tree or self.home,
                start_new_session=True,
            )
        except OSError as error:
            raise InputOutputError(self._where(), error.errno or 0, f"git: {error.strerror}") from error
        try:
            _limit_memory(process.pid)
            while True:
                try:
                    return process.wait(timeout=_POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    self._check_limits(argv, files, deadline)
        finally:
            _kill_group(process)

    def _check_limits(self, argv: Sequence[str | bytes], files: Sequence[IO[bytes]], deadline: float) -> None:
        """Raise if the call has taken too long or printed too much."""
        if time.monotonic() > deadline:
            verb = _verb(argv[1 + len(_ALWAYS) :])
            reason = f"git {verb} did not finish within {self.seconds:g} s"
            raise InputOutputError(self._where(), errno.ETIMEDOUT, reason)
        if any(os.fstat(file.fileno()).st_size > OUTPUT_LIMIT_BYTES for file in files[1:]):
            raise InspectError(self._where(), f"git printed more than {OUTPUT_LIMIT_BYTES} bytes")


def find_git() -> str:
    """Return the absolute path of the ``git`` program.

    Raises:
        MissingExtraError: it is not installed.
    """
    found = shutil.which("git")
    if found is None:
        raise MissingExtraError("git", "install Git 2.31 or newer and make sure it is on PATH")
    return os.path.abspath(found)


def _verb(args: Sequence[str | bytes]) -> str:
    """Return the subcommand for a message: the first argument that is no option and no value of ``-c``."""
    words = [os.fsencode(arg) for arg in args]
    for before, word in zip([b"", *words], words, strict=False):
        if not word.startswith(b"-") and before != b"-c":
            return show(word)
    return "?"


def _content(file: IO[bytes]) -> bytes:
    """Return all bytes of a temporary file that a child wrote."""
    file.seek(0)
    return file.read()


def _limit_memory(pid: int) -> None:
    """Bound the private memory of a child, where the system can."""
    if not hasattr(resource, "prlimit"):
        return
    # ESRCH: it has ended already. EPERM, EINVAL: a lower limit of ours holds for it anyway.
    with contextlib.suppress(OSError, ValueError):
        resource.prlimit(pid, resource.RLIMIT_DATA, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a child that has not ended, with all it started, and reap it."""
    # Once reaped, its number may belong to somebody else.
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
