"""Shared fixtures: the corpus of real files, which is never part of the repository."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["prov_run"]

# A busy machine is no defect of the code under test.
settings.register_profile("provstore", deadline=None)
settings.load_profile("provstore")

_ROOT = Path(__file__).resolve().parent.parent
_DEFAULT = _ROOT.parent / "shared" / "corpus"
_VARIABLE = "PROVSTORE_CORPUS"
_LEFT_OUT: pytest.StashKey[int] = pytest.StashKey()


def _corpus_directory() -> Path | None:
    """Return the corpus, or None when none is there; a variable that names no directory is an error."""
    named = os.environ.get(_VARIABLE)
    if named is not None:
        if not Path(named).is_dir():
            raise pytest.UsageError(f"{_VARIABLE}={named} is no directory")
        return Path(named)
    return _DEFAULT if _DEFAULT.is_dir() else None


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "corpus: reads the corpus of real files; set by using its fixture")
    _corpus_directory()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test that uses the corpus; leave those out, visibly, where there is none."""
    using = [item for item in items if "corpus" in getattr(item, "fixturenames", ())]
    for item in using:
        item.add_marker("corpus")
    if using and _corpus_directory() is None:
        config.stash[_LEFT_OUT] = len(using)
        config.hook.pytest_deselected(items=using)
        items[:] = [item for item in items if item not in set(using)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say in plain sight that the tests of real files did not run."""
    if _corpus_directory() is None:
        count = config.stash.get(_LEFT_OUT, None)
        tests = "tests" if count is None else f"{count} test(s)"
        terminalreporter.write_line(
            f"NOT RUN: {tests} marked corpus; no corpus at {_DEFAULT}, set {_VARIABLE} to its directory",
            yellow=True,
            bold=True,
        )


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Directory of real files of the field; read only."""
    found = _corpus_directory()
    if found is None:
        pytest.fail("a test of the corpus ran without one")
    return found
