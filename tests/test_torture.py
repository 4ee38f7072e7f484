"""``make torture`` in the smallest sizes: parts, figures by date, going on where it was stopped."""

import json
from pathlib import Path

import pytest
import torture


def test_parts_resume_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torture, "FLIPS_A_JOB", 25)
    state = tmp_path / "state"
    options = ["torture", "--flips", "50", "--kills", "2", "--processes", "1", "--seed", "7"]
    options += ["--state", str(state), "--results", str(tmp_path)]
    monkeypatch.setattr("sys.argv", [*options, "--parts", "flips"])
    assert torture.main() == 0
    lines = state.read_text().splitlines()
    assert len(lines) == 3
    state.write_text("\n".join(lines[:2]) + "\n")  # stopped after the first job
    capsys.readouterr()
    monkeypatch.setattr("sys.argv", [*options, "--parts", "flips,kills", "--resume"])
    assert torture.main() == 0
    assert "flips 1 of 1" in capsys.readouterr().out
    (figures,) = tmp_path.glob("torture-*.json")
    report = json.loads(figures.read_text())
    assert (report["bit_flips"]["flips"], report["random_kills"]["kills"]) == (50, 2)
    assert sum(report["bit_flips"]["outcomes"].values()) == 50
    assert "fsck in full" in report["bit_flips"]["checked"]
    monkeypatch.setattr("sys.argv", [*options, "--flips", "60", "--resume"])
    with pytest.raises(SystemExit, match="is of a run with"):
        torture.main()


def test_what_is_no_part_is_refused() -> None:
    assert torture.parts_of("crowd,kills") == ["kills", "crowd"]
    with pytest.raises(ValueError, match="flops"):
        torture.parts_of("kills,flops")
