# /// script
# requires-python = ">=3.11"
# dependencies = ["provstore"]
# ///
"""Seal a folder, and see that the id says what is in it and nothing else.

python examples/seal_a_folder.py
"""

import tempfile
from pathlib import Path

import provstore


def main() -> None:
    """Seal a small run twice, from two places."""
    with tempfile.TemporaryDirectory() as place:
        run = Path(place, "run")
        (run / "logs").mkdir(parents=True)
        (run / "result.json").write_text('{"tok_per_s": "101.94"}\n')
        (run / "logs" / "server.log").write_text("ready\nstopped\n")

        store = provstore.init_store(Path(place, "store"))
        sealed = provstore.seal(store, [run], name="runs/monday")
        print(f"sealed {sealed.files} files, {sealed.bytes_read} bytes read, as {sealed.packet}")
        for member in provstore.ls(store, provstore.resolve(store, "runs/monday")):
            print(f"  {member.type:<10} {member.path:<16} {member.blake3 or ''}")

        moved = run.rename(Path(place, "elsewhere"))
        again = provstore.seal(store, [moved], name="runs/moved")
        print(
            f"the same bytes under another name: {'same id' if again.packet == sealed.packet else 'differs'}"
        )

        (moved / "logs" / "server.log").write_text("ready\nstopped.\n")
        changed = provstore.seal(store, [moved], name="runs/moved")
        print(f"one character more: {'same id' if changed.packet == sealed.packet else 'another id'}")
        for step in provstore.log(store, "runs/moved"):
            print(f"  {step.sequence}. {step.name} named {step.packet}")
        store.close()


if __name__ == "__main__":
    main()
