"""Files that are made from the code are what the code makes now."""

import subprocess
import sys
from pathlib import Path

import pytest

from provstore.report.schemas import DOCUMENTS, schema, schema_text

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("script", ["schemas/generate.py", "docs/generate.py"])
def test_generated_files_are_up_to_date(script: str) -> None:
    run = subprocess.run(
        [sys.executable, ROOT / script, "--check"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("name", DOCUMENTS)
def test_schemas_are_closed_and_explain_themselves(name: str) -> None:
    found = schema(name)
    assert found["title"] == name
    for title, definition in found.get("$defs", {}).items():
        assert definition["description"], title
        if name != "error":
            assert definition["additionalProperties"] is False
    assert "``" not in schema_text(name)


def test_every_published_schema_is_in_step_with_its_name() -> None:
    assert {path.name for path in (ROOT / "schemas").glob("*.schema.json")} == {
        f"{name}.schema.json" for name in DOCUMENTS
    }
