"""Failing examples of rules: changes to documents that keep every rule, after which one rule finds something.

The reference page shows them, and a test holds that each one fires.
"""

from collections.abc import Mapping
from typing import NamedTuple

from provstore import libraries
from provstore.errors import NotFoundError
from provstore.evidence.jsonreader import Absent, Value, child, read
from provstore.graph.rules.checking import check
from provstore.graph.rules.rule import Document, Files
from provstore.reports.checked import CheckFinding


class Change(NamedTuple):
    """One change to a document.

    Attributes:
        document: its path.
        at: JSON pointer of a member or element, or of the element after the last one.
        to: JSON that is put there; None removes what is there.
    """

    document: str
    at: str
    to: str | None


class Example(NamedTuple):
    """A failing example.

    Attributes:
        rule: code of the rule.
        changes: what is changed; the rule finds something in the document of the first one.
        finds: JSON pointer of where.
    """

    rule: str
    changes: tuple[Change, ...]
    finds: str


def examples_of(text: str) -> list[Example]:
    r"""Return the examples of a TOML file.

    Example:
        >>> text = '[[example]]\nrule = "r"\ndocument = "d.json"\nat = "/id"\nto = "3"'
        >>> examples_of(text)[0].changes
        (Change(document='d.json', at='/id', to='3'),)
    """
    found = []
    for item in libraries.tomllib.loads(text)["example"]:
        also = [Change(one["document"], one["at"], one.get("to")) for one in item.get("also", ())]
        changes = (Change(item["document"], item["at"], item.get("to")), *also)
        found.append(Example(item["rule"], changes, item.get("finds", item["at"])))
    return found


def changed(value: Value | Absent, at: str, to: str | None) -> Value | Absent:
    """Return a value with one member put, or removed.

    Raises:
        NotFoundError: what the pointer leads through is not there.

    Example:
        >>> changed({"a": [1, 2]}, "/a/0", "null"), changed({"a": 1}, "/a", None)
        ({'a': [None, 2]}, {})
    """
    if not at:
        return value if to is None else read(to.encode()).value
    token, _, rest = at[1:].partition("/")
    key = token.replace("~1", "/").replace("~0", "~")
    below = f"/{rest}" if rest else ""
    if isinstance(value, dict):
        if below and key not in value:
            raise NotFoundError(child("", key), "nothing is there to change")
        if not below and to is None:
            return {name: item for name, item in value.items() if name != key}
        new = changed(value.get(key), below, to)
        return value if isinstance(new, Absent) else {**value, key: new}
    if isinstance(value, list) and key.isdigit() and int(key) <= len(value):
        index = int(key)
        if not below and to is None:
            return [*value[:index], *value[index + 1 :]]
        new = changed(value[index] if index < len(value) else None, below, to)
        return value if isinstance(new, Absent) else [*value[:index], new, *value[index + 1 :]]
    raise NotFoundError(child("", key), "nothing is there to change")


def findings_after(example: Example, good: Mapping[str, Document], files: Files) -> tuple[CheckFinding, ...]:
    """Return everything that rules find in documents after the changes of an example."""
    documents = dict(good)
    for change in example.changes:
        before = documents[change.document]
        documents[change.document] = before._replace(value=changed(before.value, change.at, change.to))
    return check(list(documents.values()), files).findings


def fired(example: Example, findings: tuple[CheckFinding, ...]) -> CheckFinding | None:
    """Return the finding that an example is an example of, or None when it did not come."""
    document = example.changes[0].document
    return next(
        (
            finding
            for finding in findings
            if finding.code == example.rule
            and finding.document == document
            and finding.location == example.finds
        ),
        None,
    )
