"""What ``make demo`` runs with ``prov``: seal, judge, catch faults and tampers, compare, ask.

Everything lies in ``demo-out/``. It needs no network, no GPU and no data but what the repository ships and
this machine's own Python environment. Exit code 1 if any step gives another answer than the one it is there
to show. An argument names another folder to work in; it must be new or made by an earlier demonstration.
"""

import hashlib
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
POLICY: Final = RUNS / "policy.toml"
STORE: Final = OUT / "store"
MARK: Final = OUT / "made-by-make-demo"

NOISE: Final = ("  ~  ", "sha256", " scope.")
"""Texts of lines of a diff that say what other lines say too."""

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
    print(f"  $ prov {' '.join(shown)}" + (f"    (exit code {code})" if code else ""))
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


def show(lines: list[str], *, only: tuple[str, ...] = (), most: int = 18) -> None:
    """Print lines of a command, indented; with ``only``, those that hold one of these texts."""
    picked = [line for line in lines if not only or any(text in line for text in only)]
    for line in picked[:most]:
        print(f"    {line[:118]}")


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
        show(prov("seal", RUNS / f"run-{number}" / "packet.toml").lines, only=("sealed ",))
    spec, site = environment_spec(), sysconfig.get_path("platlib")
    show(prov("seal", spec, "--set", f"site={os.path.relpath(site, OUT)}").lines, only=("sealed ",))


def verify_all() -> None:
    """Hash everything again, then recompute the claim."""
    print("2. Verify: every held byte is hashed again, and a policy recomputes what the packet claims")
    show(prov("verify", "this-environment").lines, only=("PASS  packet",))
    ended = prov("verify", "small-run-1", "--policy", POLICY)
    show(ended.lines, only=("PASS  packet", "PASS  gate"))


def plant(copy: Path) -> None:
    """Copy run 1; one rank captured less, the claim flatters, and the manifest is made again to fit."""
    shutil.copytree(ROOT / RUNS / "run-1", copy)
    log = copy / "evidence" / "server.log"
    log.write_text(log.read_text().replace("rank 1 ready: 12", "rank 1 ready: 11"))
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  evidence/{file.name}\n"
        for file in sorted((copy / "evidence").iterdir())
    ]
    (copy / "evidence.sha256").write_text("".join(lines))
    spec = copy / "packet.toml"
    spec.write_text(spec.read_text().replace('"100.0286"', '"114.31837667905113"'))


def fault() -> None:
    """Let a policy find what no checksum can notice, and ask why."""
    print("3. Plant two faults under good checksums: a rank that ran less, a claim that counts 8 events as 7")
    copy = OUT / "planted"
    plant(copy)
    prov("seal", copy / "packet.toml", "--name", "planted")
    ended = prov("verify", "planted", "--policy", POLICY, code=1)
    show(ended.lines, only=("FAIL  topology", "ranks differ", "FAIL  metric", "is the number of"))
    ended = prov("explain", "planted", "ranks", "--policy", POLICY, code=1)
    show(ended.lines, only=("why:", "server.log line 3", "| rank 1"))


def tamper() -> None:
    """Alter one bit, take a file away, add one: each is named."""
    print("4. Tamper: one bit of a pack, then a file taken away and a file added")
    pack = OUT / "small-run-1.pack"
    prov("pack", "small-run-1", "-o", pack)
    data = bytearray(pack.read_bytes())
    index = int.from_bytes(data[-72:-64], "little")  # where the frames end; see schemas/README.md
    data[index - 20] ^= 1
    altered = OUT / "altered.pack"
    altered.write_bytes(data)
    damaged = [line for line in prov("verify", altered, code=1).lines if line.startswith("FAIL  damaged")]
    show([*damaged[:2], f"... and {len(damaged) - 2} more: small files share a compressed frame"])
    copy = OUT / "tampered"
    shutil.copytree(ROOT / RUNS / "run-1", copy)
    (copy / "evidence" / "status.txt").unlink()
    (copy / "evidence" / "notes.txt").write_text("looks fine to me\n")
    show(prov("seal", copy / "packet.toml", "--name", "tampered", code=16).lines, most=3)


def compare() -> None:
    """Say what changed, and what stayed."""
    print("5. Compare: what changed from run 1 to run 2, and what stayed")
    lines = prov("diff", "small-run-1", "small-run-2", code=1).lines
    facts = [line for line in lines if " => " in line and not any(text in line for text in NOISE)]
    show([lines[0], *facts, *[line for line in lines if line.startswith("stayed: ")]])


def transfer() -> None:
    """Ask what the number says about another place, and what of the packet is not here."""
    print("6. Does it carry over? A family says what was measured; rules decide; what is missing is listed")
    prov("import", RUNS / "family.json", "--root", RUNS)
    ended = prov("scope", "small-run-1", "--where", "cards=1", "--claim", "performance", code=1)
    show(ended.lines[1:], only=("does-not-transfer  ", "missing  ", "nearest  ", "would change"))
    show(prov("query", "closure", "small-run-1", "--missing").lines, most=8)


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
    fault()
    tamper()
    compare()
    transfer()
    seconds, store = time.monotonic() - started, os.path.relpath(STORE, ROOT)
    print(f"Done in {seconds:.0f} s. Next: .venv/bin/prov show small-run-1 --verdicts --store {store}")


if __name__ == "__main__":
    main()
