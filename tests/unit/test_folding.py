"""Folding of private paths, and values that are new in every run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provstore.evidence.folding import fold, passing


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("/data/runs/a/out", "/mnt/x/runs/b-2/out"),
        ("/home/a/.venvs/one/bin/python", "/srv/venvs/two/bin/python"),
        ("/work/.venv/lib", "/other/place/venv/lib"),
        ("/home/a/.cache/hub", "/data/private-cache/hub"),
        ("/tmp/one/x", "/tmp/two/x"),
        ("/opt/k:/data/runs/a/lib", "/opt/k:/data/runs/b/lib"),
    ],
)
def test_private_prefixes_fold_to_one(first: str, second: str) -> None:
    assert first != second
    assert fold(first) == fold(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("/data/runs/a/out", "/data/runs/a/in"),
        ("/home/a/src/engine", "/home/b/src/engine"),
        ("/opt/kernels-1/lib", "/opt/kernels-2/lib"),
        ("/data/runs/a/x", "/home/a/.cache/x"),
        ("runs/a/x", "runs/b/x"),
        ("/opt/k:/data/runs/a/lib", "/data/runs/a/lib:/opt/k"),
        ("0", "1"),
        ("", "/tmp/a"),
    ],
)
def test_everything_else_stays_apart(first: str, second: str) -> None:
    assert fold(first) != fold(second)


def test_a_policy_names_further_places() -> None:
    folded = {"/lab/one": "{lab}", "/lab/two": "{lab}"}
    assert fold("/lab/one/x", folded) == fold("/lab/two/x", folded) == "{lab}/x"


@given(st.text(), st.text())
def test_text_without_a_path_is_never_touched(first: str, second: str) -> None:
    text = f"{first}{second}".replace("/", "")
    assert fold(text) == text


@pytest.mark.parametrize(
    "key", ["a.pid", "/child/process_id", "log.x.at_epoch", "request_id", "run.timestamp"]
)
def test_keys_of_times_and_processes(key: str) -> None:
    assert passing(key, "1", "2")
