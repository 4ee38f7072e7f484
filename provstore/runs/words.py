"""Words of a command: what cannot be one, because only a shell would make something of it."""

import os.path
import re
from collections.abc import Mapping
from typing import Final

VARIABLE: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A variable of a recipe inside a text; braces of JSON are none."""

SHELLS: Final = frozenset(
    {
        "sh",
        "bash",
        "dash",
        "ash",
        "zsh",
        "ksh",
        "mksh",
        "csh",
        "tcsh",
        "fish",
        "busybox",
        "pwsh",
        "nu",
        "xonsh",
    }
)
_STARTERS: Final = {
    "env": "env takes a program from PATH, and variables that the recipe does not list",
    "sudo": "sudo runs as somebody else, with another environment",
    "su": "su runs as somebody else, with another environment",
    "nohup": "nohup ignores the signal that ends a run",
    "setsid": "setsid leaves the group of processes that is stopped as a whole",
    "xargs": "xargs makes commands of text that no one checked",
    "eval": "eval is a word of a shell",
    "exec": "exec is a word of a shell",
}
_OPERATORS: Final = frozenset(
    {"|", "||", "|&", "&", "&&", ";", ";;", ">", ">>", "<", "<<", "<<<", "&>", ">&"}
)
_REDIRECTION: Final = re.compile(r"[0-9]?(?:>>?|<)(?:&[0-9-]|[/A-Za-z._-].*)")
_SUBSTITUTION: Final = re.compile(r"\$\(|`|\$\{|\$[A-Za-z_]")
_TYPES: Final = ("path", "directory", "file")


def program_problem(word: str, types: Mapping[str, str]) -> str:
    """Return why a word cannot be the program of a command, or nothing.

    Args:
        word: the first word, variables not filled in.
        types: type of each variable.

    Example:
        >>> program_problem("vllm", {})[:36], program_problem("{venv}/bin/vllm", {"venv": "directory"})
        ("'vllm' is relative: PATH would choos", '')
    """
    variable = VARIABLE.match(word)
    whole = variable is not None and variable.end() == len(word)
    rooted = variable is not None and (word[variable.end() : variable.end() + 1] == "/" or whole)
    if variable is not None and rooted:
        kind = types.get(variable[1], "directory")  # {run} and {recipe} are directories
        if kind not in _TYPES:
            return f"{word!r} begins with a variable of type {kind}; a program is a path"
    elif not word.startswith("/"):
        return f"{word!r} is relative: PATH would choose what runs; write an absolute path"
    if ".." in word.split("/"):
        return f"{word!r} leads upwards; write where the program is"
    name = os.path.basename(word)
    if name in SHELLS:
        return f"{name} is a shell: it runs text that no one checked; write program and arguments"
    return _STARTERS.get(name, "") or _syntax(word)


def filled_program_problem(path: str) -> str:
    """Return why a program with its variables filled in cannot be run, or nothing."""
    return program_problem(path, {})


def word_problem(word: str) -> str:
    """Return why a word of a command is not what its author means, or nothing.

    Example:
        >>> word_problem("$HOME/x"), word_problem('{"method": "ngram"}')
        ("'$HOME/x' holds $..., which only a shell would replace; use {variables}", '')
    """
    if word in _OPERATORS or _REDIRECTION.fullmatch(word):
        return f"{word!r} is syntax of a shell; no shell runs this command, it would be an argument"
    return _syntax(word)


def _syntax(word: str) -> str:
    if _SUBSTITUTION.search(word):
        mark = "`...`" if "`" in word else "$(...)" if "$(" in word else "$..."
        return f"{word!r} holds {mark}, which only a shell would replace; use {{variables}}"
    if word == "~" or word.startswith("~/"):
        return f"{word!r} begins with ~, which only a shell would replace"
    return ""
