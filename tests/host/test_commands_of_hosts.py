"""``prov host`` and ``prov capture`` as a person runs them."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from prov_run import Prov

HOSTS = Path(__file__).resolve().parent.parent / "hosts"


def test_a_host_as_text_and_as_a_document(prov: Prov) -> None:
    shown = prov("host", "--root", HOSTS / "four-b70")
    assert shown.code == 0
    assert "0000:23:00.0" in shown.text()
    document = prov("host", "--root", HOSTS / "four-b70", "--json").json()
    assert document["schema"] == "provstore-host-v1"
    facts = {fact["key"]: fact for fact in document["facts"]}
    assert facts["gpu.count"]["value"] == 4
    assert facts["gpu.0.energy_uj"]["value"] is None


def test_a_capture_is_a_directory_that_can_be_sealed(prov: Prov, place: Path) -> None:
    run = prov("host", "--command", f"probe={sys.executable} -c 'print(42)'", "-o", "host", "--json")
    assert run.code == 0
    (command,) = run.json()["commands"]
    raw = place.joinpath("host/commands/probe.stdout").read_bytes()
    assert raw == b"42\n"
    assert command["stdout_sha256"] == hashlib.sha256(raw).hexdigest()
    assert prov("seal", "--kind", "host", "host").code == 0
    assert prov("cat", f"blake3:{command['stdout_blake3']}").out == raw


def test_what_is_asked_wrongly_is_refused(prov: Prov, place: Path) -> None:
    for wrong in (
        ("--command", "probe"),
        ("--command", "probe=ls -l"),
        ("--command", "../x=/bin/true"),
        ("--command", "a=/bin/true", "--command", "a=/bin/false"),
        ("--command", "a='"),
        ("--file", "relative"),
        ("--root", "no-such-directory"),
    ):
        assert prov("host", *wrong).code == 2, wrong
    place.joinpath("full").mkdir()
    place.joinpath("full/x").touch()
    assert prov("host", "-o", "full").code == 24


def test_a_process_as_text_and_as_a_document(prov: Prov, place: Path) -> None:
    argv = [sys.executable, "-c", "import time; print('!', flush=True); time.sleep(60)"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.read(1)
            shown = prov("capture", "--pid", str(process.pid))
            assert shown.code == 0
            assert "needed by ld.so.cache" in shown.text()
            document = prov("capture", "--pid", str(process.pid), "-o", "captured", "--json").json()
        finally:
            process.kill()
    assert document["pid"] == process.pid
    assert document["mapped_libraries"]["libc.so.6"]
    assert document["sha256"]
    assert place.joinpath("captured/processes.json").read_bytes().startswith(b"{")


def test_a_capture_is_what_a_policy_reads_as_loaded(prov: Prov, place: Path) -> None:
    argv = [sys.executable, "-c", "import time; print('!', flush=True); time.sleep(60)"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.read(1)
            path = prov("capture", "--pid", str(process.pid), "-o", "run", "--json").json()[
                "mapped_libraries"
            ]
        finally:
            process.kill()
    place.joinpath("policy.toml").write_text(
        'format = "provstore/policy/v1"\nname = "p"\nversion = "1"\ndate = "2026-12-01"\n'
        '[[extract]]\nname = "loaded"\nkind = "loaded"\nrole = "run/processes.json"\n'
        '[[gate]]\nname = "origins"\nkind = "loader"\nloaded = "loaded"\n'
        f'origins = {{ "libc.so.6" = "{path["libc.so.6"][0]}" }}\n'
    )
    prov("seal", "run", "policy.toml", "--name", "seen")
    assert prov("verify", "seen", "--policy", "policy.toml").code == 0
    text = place.joinpath("policy.toml").read_text().replace(path["libc.so.6"][0], "/elsewhere/libc.so.6")
    place.joinpath("policy.toml").write_text(text)
    judged = prov("verify", "seen", "--policy", "policy.toml", "--json")
    assert judged.code == 1
    assert "loader-origin" in judged.text()


def test_a_process_that_is_not_there_has_an_error_of_its_own(prov: Prov) -> None:
    free = max(int(name) for name in os.listdir("/proc") if name.isdigit()) + 100_000
    assert prov("capture", "--pid", str(free)).code == 40
