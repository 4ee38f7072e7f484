"""Where there is no corpus its tests are left out and said to be; a wrong variable stops the run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).resolve().parent.parent / "conftest.py"
TESTS = """
def test_needs_it(corpus):
    assert (corpus / "README.md").is_file()

def test_needs_nothing():
    assert True
"""


def run_pytest(root: Path, variable: Path | None) -> subprocess.CompletedProcess[str]:
    tests = root / "checkout" / "tests"
    tests.mkdir(parents=True)
    shutil.copyfile(CONFTEST, tests / "conftest.py")
    (tests / "test_two.py").write_text(TESTS)
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PROVSTORE", "PYTEST"))
    }
    # What the conftest imports is found where the real one finds it.
    environment["PYTHONPATH"] = os.pathsep.join([str(CONFTEST.parent), str(CONFTEST.parent.parent)])
    if variable is not None:
        environment["PROVSTORE_CORPUS"] = str(variable)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers", str(tests)]
    return subprocess.run(
        argv, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_without_a_corpus_its_tests_are_reported_as_not_run(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, None)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NOT RUN: 1 test(s) marked corpus" in done.stdout
    assert "1 passed, 1 deselected" in done.stdout


def test_with_a_corpus_nothing_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "shared" / "corpus").mkdir(parents=True)
    (tmp_path / "shared" / "corpus" / "README.md").touch()
    for variable in (None, tmp_path / "shared" / "corpus"):
        done = run_pytest(tmp_path / ("named" if variable else ""), variable)
        assert "2 passed" in done.stdout, done.stdout + done.stderr
        assert "NOT RUN" not in done.stdout


def test_a_variable_that_names_nothing_stops_the_run(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, tmp_path / "nowhere")
    assert done.returncode == 4
    assert "nowhere is no directory" in done.stderr
