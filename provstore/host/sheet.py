"""Reading a system's own files, under any directory that stands for ``/``: values with their source.

What cannot be read becomes a fact without a value and with a reason. Under a recorded root no link leads out
of it: a recorded host must not show what this machine has.
"""

import errno
import os
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from provstore.host.secrets import secret_value
from provstore.paths import show
from provstore.reports.hosted import HostFact, Value

READ_LIMIT_BYTES: Final = 4 << 20
"""Longest file that is read; those of the kernel are far shorter, but for ``cpuinfo`` of a big host."""

_PART_BYTES: Final = 32 << 10

_NAMES: Final = {
    errno.ENOENT: "not there",
    errno.EACCES: "not permitted",
    errno.EPERM: "not permitted",
    errno.ENODEV: "the device does not answer",
    errno.EINVAL: "the kernel does not state it",
    errno.EOPNOTSUPP: "the driver does not support it",
    errno.ENODATA: "the driver has no data",
    errno.EAGAIN: "the device does not answer",
    errno.EIO: "the device does not answer",
    errno.ESRCH: "the process has ended",
    errno.ENXIO: "the device does not answer",
}


class Text(NamedTuple):
    """What a file holds, or why that is not known."""

    value: str | None
    reason: str = ""


class Sheet:
    """Facts about one host, as they are found.

    Args:
        root: directory that stands for ``/``.
    """

    def __init__(self, root: str = "/") -> None:
        self.root = root.rstrip("/") or "/"
        self.recorded = self.root != "/"
        self._real = os.path.realpath(self.root)
        self._facts: dict[str, HostFact] = {}

    def place(self, path: str) -> str:
        """Return where a path of the host lies here."""
        return path if not self.recorded else f"{self.root}/{path.lstrip('/')}"

    def facts(self) -> tuple[HostFact, ...]:
        """Return what was found, sorted by key."""
        return tuple(self._facts[key] for key in sorted(self._facts))

    def read(self, path: str) -> Text:
        """Return the text of a file of the host, without blanks around it."""
        here = self.place(path)
        if self.recorded and not self._inside(here):
            return Text(None, "leads out of the recorded host")
        try:
            descriptor = os.open(here, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            with open(descriptor, "rb", buffering=0) as file:
                data = b""
                # In small parts: some files of the kernel refuse a read as long as the limit.
                while len(data) < READ_LIMIT_BYTES and (part := file.read(_PART_BYTES)):
                    data += part
        except OSError as error:
            return Text(None, reason_of(error))
        return Text(data.decode("utf-8", "surrogateescape").strip())

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; none if it cannot be read."""
        here = self.place(path)
        if self.recorded and not self._inside(here):
            return []
        try:
            return sorted(os.listdir(here))
        except OSError:
            return []

    def there(self, path: str) -> bool:
        """Say whether something is at a path."""
        here = self.place(path)
        return (not self.recorded or self._inside(here)) and os.path.exists(here)

    def link(self, path: str) -> Text:
        """Return the last part of what a link points to, such as the name of a driver."""
        try:
            return Text(os.path.basename(os.readlink(self.place(path))))
        except OSError as error:
            return Text(None, reason_of(error))

    def add(self, key: str, value: Value, source: str) -> None:
        """Note a value; one that looks like a secret is withheld."""
        looks = secret_value(value) if isinstance(value, str) else ""
        if looks:
            self.unknown(key, source, f"withheld: it looks like {looks}")
            return
        said = show(value) if isinstance(value, str) else value
        self._facts[key] = HostFact(key=key, value=said, source=show(source))

    def unknown(self, key: str, source: str, reason: str) -> None:
        """Note that a value is not known."""
        self._facts[key] = HostFact(key=key, value=None, source=show(source), reason=reason)

    def take(self, key: str, path: str, convert: Callable[[str], Value | None] | None = None) -> Value | None:
        """Note what one file says.

        Args:
            key: name of the fact.
            path: the file.
            convert: gives the value of its text; None for a text that states none.
        """
        found = self.read(path)
        if found.value is None:
            self.unknown(key, path, found.reason)
            return None
        value = found.value if convert is None else convert(found.value)
        if value is None or value == "":
            said = show(found.value[:80])
            self.unknown(key, path, f"reads {said!r}, which states no value" if said else "is empty")
            return None
        self.add(key, value, path)
        return value

    def _inside(self, here: str) -> bool:
        return os.path.realpath(here).startswith(self._real + "/") or os.path.realpath(here) == self._real


def reason_of(error: OSError) -> str:
    """Return why the system refused, in words that do not depend on its language.

    Example:
        >>> reason_of(FileNotFoundError(2, "x"))
        'not there'
    """
    return _NAMES.get(error.errno or 0, errno.errorcode.get(error.errno or 0, "cannot be read"))


def whole(text: str) -> int | None:
    """Return a decimal whole number, or None for anything else.

    Example:
        >>> whole("12"), whole("-1"), whole("12 kB")
        (12, -1, None)
    """
    return int(text) if re.fullmatch(r"-?[0-9]{1,19}", text) else None


def counted(text: str) -> int | None:
    """Return a number that something was measured as; zero and less say that nothing was.

    Example:
        >>> counted("35000"), counted("0"), counted("-1")
        (35000, None, None)
    """
    value = whole(text)
    return value if value is not None and value > 0 else None


def hexadecimal(text: str) -> str | None:
    """Return the digits of a number that sysfs writes as ``0x…``.

    Example:
        >>> hexadecimal("0x8086"), hexadecimal("n/a")
        ('8086', None)
    """
    return text[2:].lower() if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", text) else None
