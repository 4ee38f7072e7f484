# /// script
# requires-python = ">=3.11"
# dependencies = ["provstore"]
# ///
"""Send a packet to somebody: one pack file, a proof of a single member, and the files again elsewhere.

python examples/send_a_pack.py
"""

import tempfile
from pathlib import Path

import provstore


def main() -> None:
    """Pack here, check and unpack there; the two stores never meet."""
    with tempfile.TemporaryDirectory() as place:
        here, there = Path(place, "here"), Path(place, "there")
        run = here / "run"
        run.mkdir(parents=True)
        there.mkdir()
        (run / "status.txt").write_text("0\n")
        (run / "suite.sh").write_text("#!/bin/sh\necho suite\n")
        (run / "suite.sh").chmod(0o755)

        mine = provstore.init_store(here / "store")
        packet = provstore.to_raw(provstore.seal(mine, [run]).packet)
        sent = there / "run.pack"
        made = provstore.pack([("run", provstore.Located(mine, packet, owned=False))], sent)
        print(f"packed {made.objects} objects and {made.records} records in {made.size_bytes} bytes")

        proof = there / "status.proof"
        provstore.prove(mine, packet, "status.txt", proof)
        shown = provstore.verify_proof(proof.read_bytes(), "status.proof", against=run / "status.txt")
        print(f"proof of one member, without the packet: {shown.outcome}")
        mine.close()

        with provstore.open_pack(sent) as pack:
            print(f"the pack as it arrived: {provstore.verify(pack, packet).outcome}")
        theirs = provstore.init_store(there / "store")
        provstore.unpack(theirs, sent)
        restored = provstore.restore(theirs, packet, there / "run")
        print(f"restored {restored.files} files, {restored.size_bytes} bytes")
        print(f"held to the packet: {provstore.verify_against(theirs, packet, there / 'run').outcome}")
        theirs.close()


if __name__ == "__main__":
    main()
