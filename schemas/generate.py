"""Write the JSON Schemas that the structs give; ``--check`` only compares the files with them."""

import sys
from pathlib import Path

from provstore.report.schemas import DOCUMENTS, schema_text

FOLDER = Path(__file__).parent


def wanted() -> dict[Path, str]:
    """Return the path and the text of each file."""
    return {FOLDER / f"{name}.schema.json": schema_text(name) for name in sorted(DOCUMENTS)}


def stale() -> list[Path]:
    """Return files that are absent, differ, or belong to no struct."""
    files = wanted()
    differ = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    return differ + sorted(set(FOLDER.glob("*.schema.json")) - set(files))


def main() -> int:
    """Write or check; return the exit code."""
    old = stale()
    if "--check" in sys.argv[1:]:
        for path in old:
            print(f"{path.name} is behind the code: run `make generated`", file=sys.stderr)
        return 1 if old else 0
    for path in set(old) - set(wanted()):
        path.unlink()
    for path, text in wanted().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
