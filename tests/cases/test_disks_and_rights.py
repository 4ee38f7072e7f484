"""Edge cases of full disks and missing rights (28 and 29)."""

import hashlib
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from workbench import (
    as_nobody,
    findings,
    open_to_all,
    packet_of,
    plant,
    seal,
)

from provstore.errors import (
    ProvError,
    SourceUnreadableError,
)
from provstore.store.lmdb_store import LmdbStore
from provstore.store.memory import MemoryStore
from provstore.verbs.checking import fsck
from provstore.verbs.sealing import SealOptions
from provstore.verbs.verifying import verify

# 28. A full disk


def limited(store: Path, tree: Path, size: int) -> tuple[bool, str]:
    """Seal in a child whose files cannot grow over a size; returns what it said."""
    code = (
        "import resource, signal, sys\n"
        "from provstore.store.lmdb_store import LmdbStore\n"
        "from provstore.verbs.sealing import seal_paths\n"
        "from provstore.errors import ProvError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "store = LmdbStore.create(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)\n"
        "try:\n"
        "    print(seal_paths(store, [sys.argv[2]]).packet)\n"
        "except ProvError as error:\n"
        "    print(error.code)\n"
        "    sys.exit(error.exit_code)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, store, tree, str(size)], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in run.stderr, run.stderr
    return run.returncode == 0, run.stdout.strip()


def test_28_a_file_size_limit_leaves_a_clean_store(tmp_path: Path) -> None:
    tree = plant(tmp_path / "t", {"w": os.urandom(30 << 20), "small": "x"})
    good, said = limited(tmp_path / "store", tree, 20 << 20)
    assert not good
    assert said in ("store-full", "io")
    with LmdbStore.create(os.fspath(tmp_path / "store")) as store:
        assert list(store.objects()) == []
        assert store.refs() == []
        assert fsck(store).damaged == ()
        packet = seal(store, tree)
        assert verify(store, packet).outcome == "PASS"
        assert fsck(store).damaged == ()
        assert fsck(store).leftovers == 0
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


@pytest.mark.parametrize("files", [1, 400])
def test_28_a_full_file_system(tmp_path: Path, files: int) -> None:
    size = (30 << 20) // files
    tree = plant(tmp_path / "t", {f"w{n}": os.urandom(size) for n in range(files)})
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "none", disk], check=True)
    try:
        with LmdbStore.create(os.fspath(disk / "store")) as store:
            with pytest.raises(ProvError) as raised:
                seal(store, tree)
            assert raised.value.code == "store-full"
            assert store.refs() == []
            assert fsck(store).damaged == ()
            small = plant(tmp_path / "s", {"f": "x"})
            assert verify(store, seal(store, small)).outcome == "PASS"
    finally:
        subprocess.run(["umount", disk], check=True)


# 29. Unreadable files


def test_29_permission_denied_is_not_skipped() -> None:
    with open_to_all() as place:
        plant(place / "t", {"ok": "x", "no": "y", "d/no": "z"})
        for path in ("t/no", "t/d/no"):
            (place / path).chmod(0o000)

        def work() -> tuple[tuple[tuple[str, str], ...], int, dict[str, str], str]:
            store = MemoryStore()
            failed: tuple[tuple[str, str], ...] = ()
            try:
                seal(store, place / "t")
            except SourceUnreadableError as error:
                failed = error.failures
            refs = len(store.refs())
            report = verify(store, seal(store, place / "t", allow_unreadable=True))
            return failed, refs, findings(report), report.outcome

        failed, refs, found, outcome = as_nobody(work)
    assert failed == (("d/no", "Permission denied"), ("no", "Permission denied"))
    assert refs == 0
    assert found == {"d/no": "unreadable", "no": "unreadable"}
    assert outcome == "INCOMPLETE"


def test_29_a_hole_does_not_switch_pins_off() -> None:
    with open_to_all() as place:
        plant(place / "t", {"ok": "x", "no": "y"})
        (place / "t/no").chmod(0o000)
        wrong = hashlib.sha256(b"another").hexdigest()
        (place / "t.sum").write_text(f"{wrong}  t/ok\n{hashlib.sha256(b'y').hexdigest()}  t/no\n")
        (place / "spec.toml").write_text(
            'format = "provstore/packet-spec/v1"\nname = "run"\n'
            '[[entry]]\nrole = "e"\nkind = "evidence"\npath = "t"\nmanifest = "t.sum"\n'
        )

        def work() -> str:
            from provstore.verbs.sealing import seal_spec

            options = SealOptions(allow_unreadable=True)
            try:
                seal_spec(MemoryStore(), place / "spec.toml", options=options)
            except ProvError as error:
                return f"{error.code}: {error.message}"
            return "sealed"

        said = as_nobody(work)
    assert said.startswith("pin-mismatch")
    assert "e/ok: changed" in said
    assert "e/no" in said


def test_29_one_unreadable_file_by_its_own_path_is_named_once() -> None:
    with open_to_all() as place:
        plant(place, {"no": "y"})
        (place / "no").chmod(0o000)

        def work() -> tuple[tuple[str, str], ...]:
            try:
                seal(MemoryStore(), place / "no")
            except SourceUnreadableError as error:
                return error.failures
            return ()

        failed = as_nobody(work)
    assert failed == (("no", "Permission denied"),)


def test_29_holes_are_in_the_packets_identity() -> None:
    with open_to_all() as place:
        plant(place / "t", {"ok": "x", "no": "y"})
        store = MemoryStore()
        whole = seal(store, place / "t")
        (place / "t/no").chmod(0o000)

        def work() -> tuple[bytes, int, int]:
            inner = MemoryStore()
            packet = seal(inner, place / "t", allow_unreadable=True)
            (entry,) = packet_of(inner, packet).entries
            return packet, entry.files, entry.size_bytes or 0

        packet, files, size = as_nobody(work)
    assert packet != whole
    assert (files, size) == (1, 1)
