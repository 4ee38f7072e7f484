"""Rules that hold for every struct of what is hashed, so that an id means one thing for ever."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

import provstore.records
from provstore.records import FORMATS

UNITLESS = {"size", "time", "offset", "timeout", "duration", "length", "age", "delay"}


def structs() -> Iterator[type[msgspec.Struct]]:
    for module in pkgutil.iter_modules(provstore.records.__path__, "provstore.records."):
        for value in vars(importlib.import_module(module.name)).values():
            if (
                isinstance(value, type)
                and issubclass(value, msgspec.Struct)
                and value.__module__ == module.name
            ):
                yield value


STRUCTS = sorted(structs(), key=lambda struct: struct.__name__)


def parts(hint: Any) -> Iterator[Any]:
    yield hint
    for inner in get_args(hint):
        yield from parts(inner)


def test_the_walk_finds_the_structs() -> None:
    assert {"Packet", "Entry", "TreeLeaf", "TreeIndex", "TreeEntry", "Facts"} <= {s.__name__ for s in STRUCTS}


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda s: s.__name__)
def test_frozen_keyword_only_and_closed(struct: type[msgspec.Struct]) -> None:
    config = struct.__struct_config__
    assert config.frozen
    assert config.forbid_unknown_fields
    needed = struct.__struct_fields__[: len(struct.__struct_fields__) - len(struct.__struct_defaults__)]
    with pytest.raises(TypeError, match=r"positional|Missing|takes"):
        struct(*("x" for _ in needed or struct.__struct_fields__))


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda s: s.__name__)
def test_no_floats_and_nothing_mutable(struct: type[msgspec.Struct]) -> None:
    for name, hint in get_type_hints(struct).items():
        kinds = set(map(repr, parts(hint)))
        assert not kinds & {repr(float), repr(Any), repr(object)}, name
        assert not any(part in (list, set, bytearray) for part in parts(hint)), name


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda s: s.__name__)
def test_sizes_and_times_carry_their_unit(struct: type[msgspec.Struct]) -> None:
    assert set(struct.__struct_fields__) & UNITLESS == set()


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda s: s.__name__)
def test_each_field_is_explained(struct: type[msgspec.Struct]) -> None:
    text = struct.__doc__ or ""
    assert [name for name in struct.__struct_fields__ if f"{name}:" not in text] in ([], ["last_hex"])


@pytest.mark.parametrize("name", FORMATS)
def test_a_record_names_its_format(name: str) -> None:
    kind, struct = FORMATS[name]
    config = struct.__struct_config__
    assert config.tag_field == "format"
    assert config.tag == name == f"provstore/{kind}/v1"
