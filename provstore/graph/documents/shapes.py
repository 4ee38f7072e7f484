"""Shapes of documents: which members a format has, so that everything else can be listed.

A shape says only where a member may stand. What a member must hold is the business of rules; that nothing is
dropped in silence is the business of this module.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from provstore.evidence.jsonreader import Spoiled, Value, child, spoiled_values


class Plain(Enum):
    """Shapes without parts."""

    LEAF = "leaf"
    ANYTHING = "anything"


LEAF: Final = Plain.LEAF
"""A text, number, boolean or null, or a list of such."""

ANYTHING: Final = Plain.ANYTHING
"""Whatever the format leaves open; only what is spoiled in it is left over."""


class Many(NamedTuple):
    """A list of parts of one shape."""

    part: "Shape"


class Each(NamedTuple):
    """An object whose names are free, with parts of one shape."""

    part: "Shape"


class Either(NamedTuple):
    """A leaf, or a part with more in it: some formats allow both."""

    part: "Shape"


Shape: TypeAlias = Plain | Many | Each | Either | Mapping[str, "Shape"]
"""A plain shape, a list, an object with free names, or an object with the named members."""


def leaves(names: str, **others: Shape) -> dict[str, Shape]:
    """Return the shape of an object: leaves with these names, parted by blanks, and members with parts.

    Example:
        >>> leaves("id label", rows=Many(LEAF)).keys()
        dict_keys(['id', 'label', 'rows'])
    """
    found: dict[str, Shape] = dict.fromkeys(names.split(), LEAF)
    return found | others


def leftovers(value: Value, shape: Shape, pointer: str = "") -> Iterator[str]:
    """Yield the JSON pointer of everything that a shape does not cover, in the order of the document.

    An object that is not covered is one pointer, whatever lies below it.

    Example:
        >>> shape = leaves("id", rows=Many({}))
        >>> list(leftovers({"id": "a", "odd": {"x": 1}, "rows": [{"n": 1}, 7]}, shape))
        ['/odd', '/rows/0/n', '/rows/1']
    """
    if isinstance(shape, Either):
        shape = shape.part if isinstance(value, dict | list) and not _is_leaf(value) else LEAF
    if value is None:
        return
    if shape is ANYTHING:
        yield from (pointer + place for place, _ in spoiled_values(value))
    elif shape is LEAF:
        if not _is_leaf(value):
            yield pointer
    elif isinstance(shape, Many):
        yield from _many(value, shape.part, pointer)
    elif isinstance(shape, Each):
        yield from _members(value, None, shape.part, pointer)
    elif isinstance(shape, Mapping):
        yield from _members(value, shape, LEAF, pointer)


def _many(value: Value, part: Shape, pointer: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield pointer
        return
    for index, item in enumerate(value):
        if item is None:
            yield f"{pointer}/{index}"
        yield from leftovers(item, part, f"{pointer}/{index}")


def _members(value: Value, named: Mapping[str, Shape] | None, free: Shape, pointer: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield pointer
        return
    for name, item in value.items():
        if named is None:
            yield from leftovers(item, free, child(pointer, name))
        elif name in named:
            yield from leftovers(item, named[name], child(pointer, name))
        else:
            yield child(pointer, name)


def _is_leaf(value: Value) -> bool:
    if isinstance(value, list):
        return not any(isinstance(item, list | dict | Spoiled) for item in value)
    return not isinstance(value, dict | Spoiled)
