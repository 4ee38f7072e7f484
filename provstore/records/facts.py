"""Facts: typed values that a named extractor took out of bytes, each with its place."""

from typing import Annotated

import msgspec

Integer = Annotated[int, msgspec.Meta(ge=-(1 << 53) + 1, le=(1 << 53) - 1)]
"""An integer that every JSON implementation holds exactly."""

FactValue = str | Integer | bool | None | tuple[str | Integer, ...]
"""What a fact can state; a number with a fraction is its source text, marked ``decimal``."""


class Fact(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    """One typed value.

    Attributes:
        key: what is stated, dotted, the extractor's name first: ``elf.build_id``.
        value: the value; ``None`` means that the source states null, never that nothing was found.
        decimal: ``value`` is the source text of a number.
        path: shown path of the file below the entry; empty for the entry itself.
        location: place in the file: ``line 12`` or a JSON pointer (RFC 6901).
    """

    key: str
    value: FactValue
    decimal: bool = False
    path: str = ""
    location: str = ""


class Facts(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="format",
    tag="provstore/facts/v1",
):
    """What one extractor found in one object or tree.

    Attributes:
        extractor: name of the extractor.
        version: its version; another version may find other facts.
        source: hex id of the object or tree that was read.
        facts: sorted by path, then in the order of the file.
    """

    extractor: str
    version: Integer
    source: str
    facts: tuple[Fact, ...]
