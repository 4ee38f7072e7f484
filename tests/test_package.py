"""What ``import provstore`` promises, and what it costs."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import provstore

ROOT = Path(__file__).parent.parent
HEAVY = ("typer", "click", "rich", "pydantic", "huggingface_hub", "lmdb", "zstandard", "elftools", "msgspec")


@pytest.mark.parametrize("name", provstore.__all__)
def test_each_promised_name_is_there(name: str) -> None:
    assert getattr(provstore, name) is not None
    assert name in dir(provstore)


def test_verbs_and_classes_say_what_they_do() -> None:
    named = [
        getattr(provstore, name)
        for name in provstore.__all__
        if name not in ("__version__", "RawId", "Record")
    ]
    assert [value for value in named if not (value.__doc__ or "").strip()] == []


def test_the_stub_promises_the_same_names() -> None:
    stub = ast.parse((ROOT / "provstore/__init__.pyi").read_text())
    promised = {
        (alias.asname or alias.name): (node.module, alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert promised == vars(provstore)["_PLACES"]


def test_the_version_is_stated_once_in_effect() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == provstore.__version__


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import provstore, sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_verbs_need_no_surface() -> None:
    code = (
        "import provstore, sys\n"
        "[getattr(provstore, name) for name in provstore.__all__]\n"
        "print([n for n in ('typer', 'click', 'rich', 'pydantic', 'huggingface_hub') if n in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        provstore.nonsense  # type: ignore[attr-defined]  # noqa: B018
