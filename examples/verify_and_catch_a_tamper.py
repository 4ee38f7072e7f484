# /// script
# requires-python = ">=3.11"
# dependencies = ["provstore"]
# ///
"""Verify a packet, then alter a byte, drop a file and add one: each is named.

python examples/verify_and_catch_a_tamper.py
"""

import tempfile
from pathlib import Path

import provstore


def tell(title: str, report: provstore.VerifyReport) -> None:
    """Print a verdict and what is not a pass."""
    print(f"{report.outcome:<5} {title}")
    for check in report.checks:
        if check.outcome != "PASS":
            print(f"      {check.code}: {check.path or 'the packet'}")


def main() -> None:
    """Seal a run, hold the folder to it, and then a pack that somebody altered."""
    with tempfile.TemporaryDirectory() as place:
        run = Path(place, "run")
        run.mkdir()
        (run / "status.txt").write_text("0\n")
        (run / "rows.txt").write_text("13 prompts, 13 equal\n")

        store = provstore.init_store(Path(place, "store"))
        packet = provstore.to_raw(provstore.seal(store, [run]).packet)
        tell("what the store holds", provstore.verify(store, packet))
        tell("the folder as it was", provstore.verify_against(store, packet, run))

        (run / "rows.txt").write_text("13 prompts, 12 equal\n")
        (run / "status.txt").unlink()
        (run / "notes.txt").write_text("looks fine to me\n")
        tell("the folder after three changes", provstore.verify_against(store, packet, run))

        pack = Path(place, "run.pack")
        provstore.pack([("run", provstore.Located(store, packet, owned=False))], pack)
        data = pack.read_bytes()
        pack.write_bytes(data.replace(b"13 equal", b"99 equal"))
        with provstore.open_pack(pack) as altered:
            tell("a pack with one number altered", provstore.verify(altered, packet))
        store.close()


if __name__ == "__main__":
    main()
