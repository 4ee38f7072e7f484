"""What is said of recorded hosts: every value with its source, and what is not known is not zero."""

import os
import re
from pathlib import Path

import pytest

from provstore.errors import DigestError, HostError
from provstore.host.capture import Wanted, capture_host
from provstore.host.commands import CaptureCommand
from provstore.host.dimensions import host_dimensions
from provstore.host.sheet import Sheet
from provstore.reports.hosted import HostReport

HOSTS = Path(__file__).resolve().parent.parent / "hosts"
ADDRESSES = ("0000:23:00.0", "0000:27:00.0", "0000:43:00.0", "0000:47:00.0")


def host(name: str, wanted: Wanted | None = None) -> HostReport:
    return capture_host(os.fspath(HOSTS / name), wanted or Wanted()).report


def made(root: Path, files: dict[str, str]) -> HostReport:
    for path, text in files.items():
        root.joinpath(path).parent.mkdir(parents=True, exist_ok=True)
        root.joinpath(path).write_text(text)
    return capture_host(os.fspath(root)).report


@pytest.mark.parametrize("name", ["four-b70", "one-gpu", "bare"])
def test_every_value_has_its_source_and_every_unknown_its_reason(name: str) -> None:
    facts = host(name).facts
    assert [fact.key for fact in facts] == sorted({fact.key for fact in facts})
    for fact in facts:
        assert fact.source, fact.key
        assert (fact.value is None) == bool(fact.reason), fact.key


def test_the_four_cards_of_the_lock() -> None:
    found = host("four-b70")
    assert found.value("os.name") == "Ubuntu 24.04.4 LTS"
    assert found.value("kernel.release") == "7.0.0-28-generic"
    assert found.value("gpu.count") == 4
    assert found.value("gpu.devices") == "8086:e223"
    assert found.value("gpu.addresses") == " ".join(ADDRESSES)
    for number, address in enumerate(ADDRESSES):
        assert found.value(f"gpu.{number}.address") == address
        assert found.value(f"gpu.{number}.driver") == "xe"
        assert found.value(f"gpu.{number}.render") == f"renderD{128 + number}"
        assert found.value(f"gpu.{number}.power_limit_uw") == 275_000_000
        assert found.value(f"gpu.{number}.throttled") is False
        assert found.value(f"pci.{address}.max_link_speed") == "32.0 GT/s PCIe"
    assert found.value("gpu.0.largest_bar_bytes") == 32 << 30
    assert found.value("net.eth1.state") == "up"
    assert found.value("memory.swap_bytes") == 0  # no swap is a state of the host
    assert (found.value("cpu.logical"), found.value("cpu.cores")) == (16, 8)


@pytest.mark.parametrize("key", ["gpu.0.actual_mhz", "gpu.0.energy_uj"])
def test_a_counter_that_reads_zero_measured_nothing(key: str) -> None:
    fact = host("four-b70").find(key)
    assert fact is not None
    assert fact.value is None
    assert fact.reason == "reads '0', which states no value"


def test_a_version_that_only_root_may_read_is_unknown() -> None:
    fact = host("four-b70").find("gpu.0.guc_version")
    assert fact is not None
    assert fact.value is None
    assert "root alone" in fact.reason


def test_another_vendors_card_and_what_it_hides() -> None:
    found = host("one-gpu")
    assert found.value("gpu.devices") == "10de:2684"
    assert found.value("gpu.0.model") == "NVIDIA GeForce RTX 4090"
    assert found.value("driver.nvidia.version") == "580.82.07"
    for key in ("gpu.0.video_bios", "pci.0000:01:00.0.numa_node", "gpu.0.render"):
        fact = found.find(key)
        assert fact is not None
        assert fact.value is None, key
    assert found.value("pci.0000:02:00.0.driver") == "nvme"
    assert found.value("gpu.count") == 1


def test_an_amd_card(tmp_path: Path) -> None:
    card = "sys/bus/pci/devices/0000:03:00.0"
    found = made(
        tmp_path,
        {
            f"{card}/vendor": "0x1002\n",
            f"{card}/device": "0x7550\n",
            f"{card}/class": "0x030000\n",
            f"{card}/mem_info_vram_total": "17095983104\n",
            f"{card}/vbios_version": "113-X\n",
            f"{card}/fw_version/sos_fw_version": "0x003a0e14\n",
            f"{card}/fw_version/uvd_fw_version": "0x00000000\n",
            f"{card}/hwmon/hwmon1/power1_cap": "304000000\n",
        },
    )
    assert found.value("gpu.0.vram_bytes") == 17_095_983_104
    assert found.value("gpu.0.firmware.sos") == "0x003a0e14"
    assert found.value("gpu.0.firmware.uvd") is None
    assert found.value("gpu.0.power_limit_uw") == 304_000_000
    assert found.value("gpu.0.driver") is None


def test_a_bus_without_devices_is_not_a_bus_that_nobody_saw(tmp_path: Path) -> None:
    assert host("bare").value("gpu.count") is None
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    assert capture_host(os.fspath(tmp_path)).report.value("gpu.count") == 0


def test_dimensions_are_those_of_the_capture() -> None:
    assert host_dimensions(os.fspath(HOSTS / "four-b70")) == {
        "host.os": "Ubuntu 24.04.4 LTS",
        "host.kernel": "7.0.0-28-generic",
        "host.architecture": "x86_64",
        "host.gpu": "8086:e223",
        "host.gpu_count": 4,
    }
    assert host_dimensions(os.fspath(HOSTS / "bare")) == {"host.kernel": "6.1.0-37-cloud-amd64"}


def test_what_was_asked_of_a_recorded_host() -> None:
    venv = "/home/steve/.venvs/deepseek-v4-xpu"
    tree = "/home/steve/src/laguna-vllm-width12-stack-clean-20260726"
    found = host(
        "four-b70",
        Wanted(
            files=(f"{venv}/bin/python", "/nowhere"),
            sources=(tree, "/none"),
            environments=(venv, "/empty"),
            mounts=("/mnt/fast-ai/llm-models", "/home"),
            absent=("/etc/os-release", "/tmp/socket"),
            ports=True,
            processes=True,
            commands=(
                CaptureCommand(name="compiler", argv=("/opt/icpx", "--version")),
                CaptureCommand(name="other", argv=("/bin/true",)),
            ),
        ),
    )
    assert str(found.value(f"file.{venv}/bin/python.sha256")).startswith("202c17d1671602a4")
    assert found.value("file./nowhere.sha256") is None
    assert str(found.value(f"source.{tree}.commit")).startswith("e596ef154")
    assert found.value(f"source.{tree}.clean") is True
    assert found.value("source./none.commit") is None
    assert found.value(f"environment.{venv}.package.torch") == "2.12.0+xpu"
    assert found.value("environment./empty.packages") is None
    assert found.value("mount./mnt/fast-ai/llm-models.device") == "/dev/nvme0n1p2"
    assert found.value("mount./mnt/fast-ai/llm-models.type") == "ext4"
    assert found.value("mount./home.device") == "/dev/nvme1n1p2"
    assert found.value("path./etc/os-release") is True
    assert found.value("path./tmp/socket") is False
    assert found.value("net.listening") == "22"
    assert found.value("running.name.systemd") == 1
    assert [(one.state, one.stdout_bytes > 0) for one in found.commands] == [
        ("ended", True),
        ("not-run", False),
    ]


def test_no_link_leads_out_of_a_recorded_host(tmp_path: Path) -> None:
    (tmp_path / "root/etc").mkdir(parents=True)
    (tmp_path / "secret").write_text('PRETTY_NAME="this machine"\n')
    (tmp_path / "root/etc/os-release").symlink_to(tmp_path / "secret")
    fact = capture_host(os.fspath(tmp_path / "root")).report.find("os.name")
    assert fact is not None
    assert fact.value is None
    assert fact.reason == "leads out of the recorded host"


def test_a_secret_on_the_kernels_command_line_is_withheld(tmp_path: Path) -> None:
    found = made(tmp_path, {"proc/cmdline": "quiet registry=https://me:hunter2@example.org\n"})
    fact = found.find("kernel.command_line")
    assert fact is not None
    assert fact.value is None
    assert "password in a URL" in fact.reason
    assert "hunter2" not in str(found)


@pytest.mark.parametrize(
    "text", ["format = 1", 'format = "provstore/recorded-host/v2"', "[files", 'format = "x"\nmore = 1']
)
def test_a_malformed_record_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "recorded.toml").write_text(text)
    with pytest.raises(HostError, match=r"recorded\.toml"):
        capture_host(os.fspath(tmp_path))


def test_a_recorded_digest_must_be_one(tmp_path: Path) -> None:
    (tmp_path / "recorded.toml").write_text('[files]\n"/x" = "sha256:zz"\n')
    with pytest.raises(DigestError):
        capture_host(os.fspath(tmp_path))


def test_a_root_must_be_a_directory(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="is no directory"):
        capture_host(os.fspath(tmp_path / "none"))


def test_this_machine() -> None:
    found = capture_host("/", Wanted(ports=True, processes=True, mounts=("/tmp",))).report
    assert found.value("kernel.release") == os.uname().release
    assert found.value("host.architecture") == os.uname().machine
    assert found.value("cpu.logical") == os.cpu_count()
    assert found.value("mount./tmp.type")
    running = found.value("running.processes")
    assert isinstance(running, int)
    assert running > 0
    assert re.fullmatch(r"[0-9a-f-]{36}", str(found.value("clock.boot_id")))


def test_a_file_longer_than_the_kernel_gives_at_once(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a" * 100_000)
    assert Sheet(os.fspath(tmp_path)).read("/x").value == "a" * 100_000
