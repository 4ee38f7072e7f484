"""What ``make demo`` runs: seal, verify, catch tampering, compare, with ``prov``, in ``demo-out/``.

It needs no network, no GPU and no data but what the repository ships and this machine's own Python
environment. Exit code 1 if any step gives another answer than the one it is there to show. An argument names
another folder to work in; it must be new or made by an earlier demonstration.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Final, NoReturn

ROOT: Final = Path(__file__).resolve().parent.parent
OUT: Final = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "demo-out"
RUNS: Final = Path("examples", "small-run")
STORE: Final = OUT / "store"
MARK: Final = OUT / "made-by-make-demo"

NATIVE: Final = ("blake3", "lmdb", "msgspec", "psutil", "zstandard")
"""Packages whose shared objects the environment's packet names one by one."""


class Ended:
    """How one command ended, with everything that it wrote."""

    def __init__(self, run: subprocess.CompletedProcess[str]) -> None:
        self.code = run.returncode
        self.out = run.stdout.splitlines()
        self.lines = self.out + run.stderr.splitlines()


def stop(message: str) -> NoReturn:
    """End the demonstration: something is not as it should be."""
    print(f"demo: {message}", file=sys.stderr)
    sys.exit(1)


def prov(*arguments: str | Path, code: int = 0) -> Ended:
    """Run one command, show it, and stop unless it ends with ``code``."""
    shown = [os.path.relpath(a, ROOT) if isinstance(a, Path) else a for a in arguments]
    print(f"  $ prov {' '.join(shown)}")
    environment = {**os.environ, "PROVSTORE": os.fspath(STORE), "NO_COLOR": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "provstore", *shown],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode != code:
        stop(f"exit code {run.returncode} where {code} belongs:\n{run.stdout}{run.stderr}")
    return Ended(run)


def show(lines: list[str], *, only: tuple[str, ...] = (), most: int = 9) -> None:
    """Print lines of a command, indented; with ``only``, those that hold one of these texts."""
    picked = [line for line in lines if not only or any(text in line for text in only)]
    for line in picked[:most]:
        print(f"    {line[:130]}")


def environment_spec() -> Path:
    """Write a spec for the environment that runs this: its packages, and shared objects one by one."""
    site = Path(sysconfig.get_path("platlib"))
    entries = ['[[entry]]\nrole = "packages"\nkind = "python-env"\npath = "{site}"\n']
    for package in NATIVE:
        for path in sorted((site / package).glob("**/*.so")):
            inner = path.relative_to(site)
            entries.append(
                f'[[entry]]\nrole = "native/{inner}"\nkind = "native"\npath = "{{site}}/{inner}"\n'
            )
    spec = OUT / "environment.toml"
    spec.write_text('format = "provstore/packet-spec/v1"\nname = "this-environment"\n\n' + "\n".join(entries))
    return spec


def seal_all() -> None:
    """Seal two runs and this machine's environment."""
    print("1. Seal two versions of a benchmark run, and the Python environment of this machine")
    for number in (1, 2):
        ended = prov("seal", RUNS / f"run-{number}" / "packet.toml")
        show(ended.lines, only=("sealed ", "  read "))
    spec, site = environment_spec(), sysconfig.get_path("platlib")
    ended = prov("seal", spec, "--set", f"site={os.path.relpath(site, OUT)}")
    show(ended.lines, only=("sealed ", "  read "))


def verify_all() -> None:
    """Hash everything again."""
    print("2. Verify: every byte that the packets stand for is read and hashed again")
    show(prov("verify", "small-run-1").lines, only=("PASS  packet", "re-hashed (", "not applicable"))
    show(prov("verify", "this-environment").lines, only=("PASS  packet", "re-hashed ("))


def tamper() -> None:
    """Alter one bit, take a file away, add one: each is named."""
    print("3. Tamper: one bit of a pack, then a file taken away, then a file added")
    pack = OUT / "small-run-1.pack"
    prov("pack", "small-run-1", "-o", pack)
    show(prov("verify", pack).lines, only=("PASS  packet",))
    data = bytearray(pack.read_bytes())
    index = int.from_bytes(data[-72:-64], "little")  # where the frames end; see schemas/README.md
    data[index - 20] ^= 1
    altered = OUT / "altered.pack"
    altered.write_bytes(data)
    show(prov("verify", altered, code=1).lines, only=("FAIL",), most=6)
    copy = OUT / "run-1"
    shutil.copytree(ROOT / RUNS / "run-1", copy)
    (copy / "evidence" / "status.txt").unlink()
    (copy / "evidence" / "notes.txt").write_text("looks fine to me\n")
    show(prov("seal", copy / "packet.toml", "--name", "tampered", code=16).lines, most=3)


def compare() -> None:
    """Say what changed, and what stayed."""
    print("4. Compare: what changed from run 1 to run 2, and what stayed")
    show(prov("diff", "small-run-1", "small-run-2", code=1).lines, most=20)


def main() -> None:
    """Run every step in a fresh folder."""
    started = time.monotonic()
    if OUT.exists():
        if any(OUT.iterdir()) and not MARK.exists():
            stop(f"{OUT} holds something else")
        shutil.rmtree(OUT)
    OUT.mkdir()
    MARK.touch()
    seal_all()
    verify_all()
    tamper()
    compare()
    print(f"Done in {time.monotonic() - started:.0f} s. The store is {os.path.relpath(STORE, ROOT)}; try:")
    print("  .venv/bin/prov show small-run-1 --store demo-out/store")
    print("  .venv/bin/prov ls this-environment --store demo-out/store")


if __name__ == "__main__":
    main()
