"""On which line of a TOML file each of its values stands, for the errors about them."""

import re
from typing import Final

Path = tuple[str | int, ...]

_PART: Final = r"(?:[A-Za-z0-9_-]+|\"(?:[^\"\\]|\\.)*\"|'[^']*')"
_NAME: Final = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_HEAD: Final = re.compile(rf"[ \t]*(\[\[?)[ \t]*({_NAME})[ \t]*\]\]?[ \t]*(?:#.*)?")
_KEY: Final = re.compile(rf"[ \t]*({_NAME})[ \t]*=")
_STEP: Final = re.compile(r"\[(\d+|\.\.\.)\]|\.?([A-Za-z_][A-Za-z0-9_-]*)")


class Places:
    r"""Lines of the tables and keys of one file.

    What is written in another way than one key a line is found at the table or key around it.

    Example:
        >>> places = Places('name = "x"\n[[pin]]\nrole = "a"\n[[pin]]\nrole = "b"\n', "r.toml")
        >>> places.at(("pin", 1, "role")), places.at(("pin", 1, "path"))
        ('r.toml:5', 'r.toml:4')
    """

    def __init__(self, text: str, where: str) -> None:
        self._where = where
        self._lines = text.split("\n")
        self._found: dict[Path, int] = {}
        table: Path = ()
        counts: dict[Path, int] = {}
        for number, line in enumerate(self._lines, 1):
            head, key = _HEAD.fullmatch(line.rstrip("\r")), _KEY.match(line)
            if head is not None:
                table = _below(_parts(head[2]), counts)
                if head[1] == "[[":
                    counts[table] = counts.get(table, -1) + 1
                    table = (*table, counts[table])
                self._found.setdefault(table, number)
            elif key is not None:
                self._found.setdefault((*table, *_parts(key[1])), number)

    def at(self, path: Path, holding: str = "") -> str:
        """Return ``file:line`` of a value, or of what is around it.

        Args:
            path: keys and positions that lead to it.
            holding: a text of it; the first line from there on that has it counts.
        """
        while path and path not in self._found:
            path = path[:-1]
        line = self._found.get(path)
        if line is None:
            return self._where
        for number in range(line, len(self._lines) + 1) if holding else ():
            if holding in self._lines[number - 1]:
                return f"{self._where}:{number}"
        return f"{self._where}:{line}"

    def named(self, message: str, key: str = "") -> str:
        """Return ``file:line`` of what a message of the decoder is about.

        Args:
            message: its message.
            key: what the message writes as ``[...]``: the key of a table whose keys are free.
        """
        said = re.search(r"at `\$?([^`]*)`", message)
        path: list[str | int] = []
        for step in _STEP.finditer(said[1] if said else ""):
            if step[1] == "...":
                path.append(key)
            else:
                path.append(int(step[1]) if step[1] else step[2])
        field = re.search(r"field `([^`]+)`", message)
        if field is not None:
            path.append(field[1])
        return self.at(tuple(path))


def _parts(text: str) -> Path:
    return tuple(part[1:-1] if part[0] in "\"'" else part for part in re.findall(_PART, text))


def _below(parts: Path, counts: dict[Path, int]) -> Path:
    """Return a table's path with the positions of the lists that it lies in."""
    found: Path = ()
    for at, part in enumerate(parts):
        found = (*found, part)
        if found in counts and at < len(parts) - 1:
            found = (*found, counts[found])
    return found
