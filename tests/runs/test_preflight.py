"""What stands between a recipe and a run: a table of everything; what was not seen never passes."""

import hashlib
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from prov_run import Prov

from provstore.host.commands import CaptureCommand
from provstore.reports.hosted import CommandOutput, HostFact, HostReport
from provstore.reports.prepared import Blocker, PreflightReport
from provstore.runs.expecting import expectations, wanted
from provstore.runs.filling import Filled, fill
from provstore.runs.preflight import preflight
from provstore.runs.reading import load_recipe
from provstore.runs.suite import load_suite
from provstore.verbs.running import prepare

ROOT = Path(__file__).resolve().parents[2]
LAGUNA = os.fspath(ROOT / "examples/laguna-s-2.1/recipe-102.toml")
BATCH = os.fspath(ROOT / "examples/batch/recipe.toml")
FOUR = ROOT / "tests/hosts/four-b70"

DIGEST = "ab" * 32
RECIPE = f"""format = "provstore/recipe/v1"
name = "r"
mode = "service"

[command]
argv = ["/opt/serve"]

[service]
port = 8000
processes = ["Engine*"]
absent = ["/tmp/socket"]

[suite]
path = "/data/suite.json"
model = "m"
prompts = 1
max_tokens = 1

[[capture]]
name = "cards"
argv = ["/usr/bin/cards"]
holds = ["B70"]

[host.facts]
"os.name" = "Ubuntu"
"cpu.logical" = 16

[[host.device]]
address = "0000:23:00.0"
id = "8086:e223"

[[pin]]
role = "runtime/x"
path = "/opt/x.so"
sha256 = "{DIGEST}"

[[source]]
role = "source/engine"
path = "/src"
commit = "{"c" * 40}"

[[packages]]
role = "packages"
environment = "/venv"
versions = {{ torch = "2.12.0" }}
"""

SUITE = """format = "provstore/suite/v1"
name = "s"
endpoint = "chat"
max_tokens = 1
[[prompt]]
id = "a"
text = "Say it."
"""

FACTS: dict[str, str | int | bool | None] = {
    "cpu.logical": 16,
    "environment./venv.package.torch": "2.12.0",
    "file./data/suite.json.sha256": "cd" * 32,
    "file./opt/serve.sha256": "ef" * 32,
    "file./opt/x.so.sha256": DIGEST,
    "gpu.0.address": "0000:23:00.0",
    "gpu.0.vendor_device": "8086:e223",
    "gpu.count": 1,
    "net.listening": "22 80",
    "os.name": "Ubuntu",
    "path./tmp/socket": False,
    "pci.0000:23:00.0.device": "e223",
    "pci.0000:23:00.0.vendor": "8086",
    "pci.devices": 30,
    "running.name.sshd": 1,
    "running.processes": 7,
    "source./src.clean": True,
    "source./src.commit": "c" * 40,
}
CARDS = CommandOutput(
    name="cards", argv=("/usr/bin/cards",), state="ended", exit_code=0, stdout="cards.stdout"
)


def recipe() -> Filled:
    found = fill(load_recipe(RECIPE.encode(), "r.toml"), {}, run="/run/x", home="/home/x")
    return msgspec.structs.replace(found, suite=load_suite(SUITE.encode(), "s.toml"), suite_problem="")


def compared(
    changes: dict[str, str | int | bool | None] | None = None,
    *,
    without: str = "",
    output: bytes = b"B70",
    command: CommandOutput = CARDS,
    reason: str = "not permitted",
) -> PreflightReport:
    stated = {**FACTS, **(changes or {})}
    stated.pop(without, None)
    facts = tuple(
        HostFact(key=key, value=value, source="here", reason=reason if value is None else "")
        for key, value in sorted(stated.items())
    )
    host = HostReport(root="/", taken="", facts=facts, commands=(command,))
    return preflight(recipe(), host, {"cards.stdout": output}, None, RECIPE.encode())


def only(report: PreflightReport) -> Blocker:
    (blocker,) = report.blockers
    assert blocker.remedy
    assert blocker.where
    return blocker


def test_a_host_that_has_everything() -> None:
    report = compared()
    assert report.blockers == ()
    assert (report.outcome, report.checked) == ("PASS", len(expectations(recipe())))
    assert report.checked == 18
    assert report.sha256 == hashlib.sha256(RECIPE.encode()).hexdigest()


DIFFERENT: list[tuple[str, str | int | bool, str]] = [
    ("os.name", "Debian", "host/os.name"),
    ("cpu.logical", 8, "host/cpu.logical"),
    ("cpu.logical", "16", "host/cpu.logical"),
    ("pci.0000:23:00.0.device", "e20b", "host/device/0000:23:00.0"),
    ("file./opt/x.so.sha256", "ba" * 32, "runtime/x"),
    ("source./src.commit", "d" * 40, "source/engine"),
    ("source./src.clean", False, "source/engine"),
    ("environment./venv.package.torch", "2.12.1", "packages/torch"),
    ("net.listening", "22 8000", "service/port"),
    ("running.name.EngineCore", 2, "service/processes"),
    ("path./tmp/socket", True, "service/absent"),
    ("gpu.0.vendor_device", "8086:e20b", "host/devices"),
]


@pytest.mark.parametrize(("key", "value", "role"), DIFFERENT)
def test_each_difference_is_one_line(key: str, value: str | int | bool, role: str) -> None:
    report = compared({key: value})
    blocker = only(report)
    assert (report.outcome, blocker.role, blocker.state) == ("FAIL", role, "differs")
    assert blocker.expected != blocker.found


@pytest.mark.parametrize(
    "key", [key for key in FACTS if not key.startswith(("gpu.0", "running.name", "pci.dev"))]
)
def test_what_could_not_be_seen_is_never_a_pass(key: str) -> None:
    unknown = compared({key: None})
    assert unknown.outcome == "INCOMPLETE"
    assert {one.state for one in unknown.blockers} == {"unknown"}
    assert "not permitted" in unknown.blockers[0].found
    assert compared(without=key).outcome != "PASS"
    assert compared({key: None}, reason="not there").outcome == "FAIL"


def test_a_further_card_is_a_difference_too() -> None:
    more: dict[str, str | int | bool | None] = {
        "gpu.count": 2,
        "gpu.1.address": "0000:27:00.0",
        "gpu.1.vendor_device": "8086:e223",
    }
    assert only(compared(more)).role == "host/devices"


def test_a_command_that_failed_was_slow_or_says_another_thing() -> None:
    def ended(**more: object) -> CommandOutput:
        return CommandOutput(**{"name": "cards", "argv": (), "state": "ended", "exit_code": 0,
                                "stdout": "cards.stdout", **more})  # type: ignore[arg-type]  # fmt: skip

    assert only(compared(output=b"another card")).found == "its output has no 'B70'"
    assert only(compared(command=ended(exit_code=3))).found == "exit 3"
    slow = ended(state="timeout", exit_code=None, reason="did not end within 30 s")
    assert only(compared(command=slow)).found == "did not end within 30 s"
    gone = ended(state="not-run", exit_code=None, reason="/usr/bin/cards: not there")
    assert only(compared(command=gone)).state == "absent"
    assert only(compared(command=ended(name="other"))).state == "unknown"


def test_what_is_looked_at_is_what_is_compared() -> None:
    asked = wanted(recipe())
    assert asked.files == ("/data/suite.json", "/opt/serve", "/opt/x.so")
    assert asked.sources == ("/src",)
    assert asked.environments == ("/venv",)
    assert asked.absent == ("/tmp/socket",)
    assert (asked.ports, asked.processes) == (True, True)
    assert asked.commands == (
        CaptureCommand(name="cards", argv=("/usr/bin/cards",), seconds=30, required=True),
    )


def test_the_four_card_recipe_against_the_recorded_host() -> None:
    """Everything of the host agrees; what is not in the tree is the weights, whose manifest is not here."""
    report = prepare(LAGUNA, {}, root=os.fspath(FOUR))
    assert report.outcome == "FAIL"
    assert [one.role for one in report.blockers] == [
        "variable/models",
        "weights/target/manifest",
        "weights/draft/manifest",
    ]
    assert report.checked > 50


@pytest.mark.corpus
def test_the_four_card_recipe_with_its_weights_is_ready(corpus: Path, tmp_path: Path) -> None:
    manifest = corpus / (
        "b70-lab/repro/laguna-s-2.1-int4-b70-102tps-20260726/manifests/model-release-files.sha256"
    )
    host = tmp_path / "host"
    shutil.copytree(FOUR, host, symlinks=True)
    lines = [line.split("  ") for line in manifest.read_text().splitlines()]
    files = "".join(f'"/mnt/fast-ai/llm-models/laguna-s-2.1/{name}" = "{digest}"\n' for digest, name in lines)
    text = host.joinpath("recorded.toml").read_text().replace("[files]\n", f"[files]\n{files}")
    host.joinpath("recorded.toml").write_text(text)
    ready = prepare(LAGUNA, {"manifest": os.fspath(manifest)}, root=os.fspath(host))
    assert ready.blockers == ()
    assert (ready.outcome, ready.checked) == ("PASS", 93)
    # One shard is not the pinned one, one is absent, one is too many.
    first, second = lines[-1], lines[-2]
    text = text.replace(f'/{first[1]}" = "{first[0]}"', f'/{first[1]}" = "{"0" * 64}"')
    text = text.replace(f'/{second[1]}"', f'/{second[1]}.part"')
    host.joinpath("recorded.toml").write_text(text)
    broken = prepare(LAGUNA, {"manifest": os.fspath(manifest)}, root=os.fspath(host))
    states = {one.role: one.state for one in broken.blockers}
    assert states == {
        f"weights/target/{first[1][5:]}": "differs",
        f"weights/target/{second[1][5:]}": "absent",
        "weights/target": "absent",
    }


@pytest.mark.corpus
def test_the_four_card_recipe_has_the_sealed_environment_to_the_byte(corpus: Path) -> None:
    folder = corpus / "b70-lab/repro/laguna-s-2.1-int4-b70-102tps-20260726/evidence/record-run"
    sealed = folder.joinpath("service-environment.txt").read_text()
    stated = dict(line.split("=", 1) for line in sealed.splitlines())
    run = stated["HOME"].removesuffix("/private-home")
    loaded = load_recipe(Path(LAGUNA).read_bytes(), "recipe")
    found = fill(loaded, {}, run=run, home=os.path.dirname(LAGUNA)).recipe.environment
    variables = {**found.set, **{name: f"{run}/{below}" for name, below in found.private.items()}}
    assert len(variables) == 85
    assert "".join(f"{name}={variables[name]}\n" for name in sorted(variables)) == sealed


@pytest.mark.corpus
def test_the_four_card_recipe_has_the_arguments_that_the_log_shows(corpus: Path) -> None:
    folder = corpus / "b70-lab/repro/laguna-s-2.1-int4-b70-102tps-20260726/evidence/record-run"
    log = folder.joinpath("server.log").read_text()
    (line,) = [line for line in log.splitlines() if "non-default args:" in line]
    argv = fill(load_recipe(Path(LAGUNA).read_bytes(), "recipe"), {}, run="/r", home="/h").recipe.command.argv
    for name in argv:
        if name.startswith("--"):
            key = name.removeprefix("--").removeprefix("no-").replace("-", "_")
            assert f"'{key}'" in line or key == "served_model_name", name
    for option, value in itertools.pairwise(argv):
        if option.startswith("--") and not value.startswith(("--", "{")):
            assert value.rstrip("0") in line, option


def test_on_this_machine_the_four_card_recipe_lists_its_blockers(prov: Prov) -> None:
    run = prov("run", LAGUNA, "--preflight", "--json")
    assert run.code == 1
    document = run.json()
    assert document["outcome"] == "FAIL"
    roles = {blocker["role"] for blocker in document["blockers"]}
    assert {"host/kernel.release", "host/devices", "runtime/files/python", "source/vllm", "suite"} <= roles
    for blocker in document["blockers"]:
        assert set(blocker) == {"role", "expected", "found", "where", "remedy", "state"}
        assert all(blocker.values())
    shown = prov("run", LAGUNA, "--preflight")
    assert shown.code == 1
    assert shown.text().startswith("FAIL  laguna-s-2.1-int4-b70-102tps on /: ")


def test_a_batch_recipe_is_ready_where_its_program_is(prov: Prov) -> None:
    python = os.path.realpath("/usr/bin/python3") if os.path.exists("/usr/bin/python3") else sys.executable
    assert prov("run", BATCH, "--preflight", "--set", f"python={python}").code == 0
    gone = prov("run", BATCH, "--preflight", "--set", "python=/no/python", "--json")
    assert gone.code == 1
    assert [one["role"] for one in gone.json()["blockers"]] == ["command/program", "variable/python"]


def test_a_port_that_is_taken_is_seen(prov: Prov, place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        place.joinpath("r.toml").write_text(RECIPE.replace("port = 8000", f"port = {port}"))
        run = prov("run", "r.toml", "--preflight", "--json")
        assert "service/port" in {one["role"] for one in run.json()["blockers"]}


def test_a_store_that_holds_the_pinned_bytes_says_so(prov: Prov, place: Path) -> None:
    place.joinpath("x.so").write_bytes(b"bytes")
    assert prov("seal", "x.so").code == 0
    digest = hashlib.sha256(b"bytes").hexdigest()
    place.joinpath("r.toml").write_text(RECIPE.replace(DIGEST, digest))
    run = prov("run", "r.toml", "--preflight", "--json")
    remedies = {one["role"]: one["remedy"] for one in run.json()["blockers"]}
    assert remedies["runtime/x"] == f"the store holds it: prov cat sha256:{digest} > /opt/x.so"


def test_a_suite_that_says_another_thing_than_the_recipe(prov: Prov, place: Path) -> None:
    text = RECIPE.replace("/data/suite.json", f"{place}/suite.toml").replace(
        "max_tokens = 1\n",
        "max_tokens = 1\nseed = 7\n[suite.parameters]\ntemperature = 0\nignore_eos = true\n",
    )
    place.joinpath("r.toml").write_text(text)
    assert "suite" in roles(prov)
    place.joinpath("suite.toml").write_text(SUITE)
    assert {"suite/seed", "suite/parameters.temperature", "suite/parameters.ignore_eos"} <= roles(prov)
    parameters = "seed = 7\n[parameters]\ntemperature = 0.0\nignore_eos = true\n[[prompt]]"
    place.joinpath("suite.toml").write_text(SUITE.replace("[[prompt]]", parameters))
    assert not any(role.startswith("suite") for role in roles(prov))
    place.joinpath("suite.toml").write_text(
        SUITE.replace("[[prompt]]", parameters.replace("= true", "= 1")).replace(
            "max_tokens = 1", "max_tokens = 2"
        )
    )
    found = {role for role in roles(prov) if role.startswith("suite")}
    assert found == {"suite/max_tokens", "suite/parameters.ignore_eos"}
    place.joinpath("suite.toml").write_text('{"prompts": []}')
    assert {role for role in roles(prov) if role.startswith("suite")} == {"suite/format"}


def test_a_source_tree_with_changes_and_a_file_with_other_bytes(prov: Prov, place: Path) -> None:
    git = ["git", "-C", os.fspath(place / "src"), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    place.joinpath("src").mkdir()
    subprocess.run([*git, "init", "-q"], check=True)
    place.joinpath("src/a").write_text("a")
    subprocess.run([*git, "add", "a"], check=True)
    subprocess.run([*git, "commit", "-qm", "a"], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    text = RECIPE.replace("c" * 40, commit.strip()).replace('path = "/src"', f'path = "{place}/src"')
    place.joinpath("r.toml").write_text(text)
    assert "source/engine" not in roles(prov)
    place.joinpath("src/b").write_text("b")
    assert "source/engine" in roles(prov)


def roles(prov: Prov) -> set[str]:
    return {one["role"] for one in prov("run", "r.toml", "--preflight", "--json").json()["blockers"]}


def test_a_policy_beside_the_recipe_must_be_one(prov: Prov, place: Path) -> None:
    text = RECIPE.replace('mode = "service"', 'mode = "service"\npolicy = "{recipe}/p.toml"')
    place.joinpath("r.toml").write_text(text)
    assert "policy" in roles(prov)
    place.joinpath("p.toml").write_text("format = 1")
    assert "policy" in roles(prov)
    shutil.copy(ROOT / "examples/vllm-cpu/policy.toml", place / "p.toml")
    assert "policy" not in roles(prov)


def test_what_is_asked_wrongly(prov: Prov, place: Path) -> None:
    place.joinpath("r.toml").write_text(RECIPE)
    place.joinpath("empty.toml").touch()
    for wrong in (
        ("r.toml",),
        ("r.toml", "--preflight", "--set", "x=1"),
        ("r.toml", "--preflight", "--set", "x"),
        ("r.toml", "--preflight", "--root", "/no/such"),
        ("empty.toml", "--preflight"),
    ):
        assert prov("run", *wrong).code == 2, wrong
    assert prov("run", "none.toml", "--preflight").code == 27


def test_the_program_of_the_batch_recipe_measures(tmp_path: Path) -> None:
    program = ROOT / "examples/batch/hash_rate.py"
    argv = [sys.executable, "-I", os.fspath(program), "sha256", "2"]
    lines = subprocess.run(argv, check=True, capture_output=True, text=True, cwd=tmp_path).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["round"] for row in rows] == [0, 1]
    assert {row["digest"] for row in rows} == {hashlib.sha256(bytes(16 << 20)).hexdigest()}
    assert all(row["took_ns"] > 0 for row in rows)
