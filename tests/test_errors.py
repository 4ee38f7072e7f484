"""The catalogue of errors: one code and one exit code each, fields that the message shows, a remedy."""

import inspect
from collections import Counter
from typing import Any

import pytest

from provstore import errors
from provstore.errors import MalformedError, ProvError, UsageError, catalogue

CLASSES = catalogue()

SAMPLES: dict[str, Any] = {
    "name": "run-7",
    "looked": "no such ref",
    "matches": ["ab" * 32, "cd" * 32],
    "what": "filter 'x/*'",
    "install": "pip install it",
    "path": "some/file",
    "errno": 28,
    "pid": 4711,
    "reason": "because of this",
    "where": "packet.toml line 4",
    "found": "provstore/999",
    "line": 12,
    "changed": ["mtime_ns"],
    "failures": [("some/file", "permission denied")],
    "mismatches": ["role weights: expected a, found b"],
    "problems": ["model.safetensors is a pointer"],
    "id": "ab" * 32,
    "holder": "process 12",
    "custody": "declared",
    "left": "events",
    "right": "intervals",
    "expected": "0" * 64,
    "objections": [("unauthorized-start", "an attempt needs an authorization")],
    "message": "a message",
}
"""A value for each parameter that a class of errors takes."""

OTHER_SAMPLES: dict[tuple[str, str], Any] = {("special-file", "found"): [("some/pipe", "FIFO")]}


def made(cls: type[ProvError]) -> ProvError:
    given: dict[str, Any] = {
        name: OTHER_SAMPLES.get((cls.code, name), SAMPLES.get(name))
        for name, parameter in inspect.signature(cls.__init__).parameters.items()
        if name != "self" and parameter.default is parameter.empty
    }
    unknown = [name for name, value in given.items() if value is None]
    assert unknown == [], f"{cls.__name__} takes parameters that this test has no sample for"
    return cls(**given)


def test_codes_are_unique() -> None:
    assert [code for code, n in Counter(c.code for c in CLASSES).items() if n > 1] == []


def test_exit_codes_from_10_name_one_class_each() -> None:
    high = Counter(c.exit_code for c in CLASSES if c.exit_code >= 10)
    assert [code for code, n in high.items() if n > 1] == []


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.code)
def test_exit_code_2_is_malformed_input_or_usage(cls: type[ProvError]) -> None:
    assert (cls.exit_code == 2) == issubclass(cls, MalformedError | UsageError)
    assert cls.exit_code == 2 or 10 <= cls.exit_code < 126


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.code)
def test_each_class_is_documented_and_says_what_to_do(cls: type[ProvError]) -> None:
    assert cls.__doc__
    assert cls.__doc__.strip() != (ProvError.__doc__ or "").strip() or cls is ProvError
    assert len(cls.remedy) > 10
    assert cls.remedy.endswith((".", "`"))
    assert getattr(errors, cls.__name__) is cls
    assert cls.__name__ in errors.__all__


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.code)
def test_the_message_names_every_field(cls: type[ProvError]) -> None:
    error = made(cls)
    assert str(error) == error.message
    for name, value in vars(error).items():
        if name in ("message", "errno"):
            continue
        for part in value if isinstance(value, tuple) else (value,):
            for text in part if isinstance(part, tuple) else (part,):
                assert str(text) in error.message, name


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.code)
def test_attributes_are_documented(cls: type[ProvError]) -> None:
    own = set(vars(made(cls))) - {"message"}
    text = "".join(
        inspect.cleandoc(base.__doc__ or "") for base in cls.__mro__ if issubclass(base, ProvError)
    )
    assert [name for name in own if f"{name}:" not in text] in ([], ["reason"])
