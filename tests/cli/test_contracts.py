"""What other programs lean on: streams, exit codes, documents."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prov_run import Ended, Prov

import provstore
from provstore.cli.commands import declarations
from provstore.report.schemas import DOCUMENTS

COMMANDS = sorted(
    command.name or command.callback.__name__
    for command in declarations()
    if command.callback and not command.hidden
)


def test_seal_prints_the_id_alone(prov: Prov, tree: Path) -> None:
    sealed = prov("seal", tree)
    assert sealed.id() == prov("seal", tree).id()
    assert "sealed t as" in sealed.err


def test_quiet_leaves_stderr_empty(prov: Prov, tree: Path) -> None:
    assert prov("seal", tree, "--quiet").err == ""
    assert prov("--quiet", "seal", tree).err == ""


def test_the_store_is_named_before_or_after_the_command(prov: Prov, tree: Path, place: Path) -> None:
    before, after = place / "one", place / "two"
    assert prov("init", before).code == prov("init", after).code == 0
    wanted = prov("--store", before, "seal", tree).id()
    assert prov("seal", tree, "--store", after).id() == wanted
    assert prov("verify", wanted, "--store", before).code == 0
    assert prov("verify", wanted).code == 11


@pytest.mark.parametrize("variable", ["PROVSTORE", "PROV_STORE"])
def test_the_environment_names_a_store(
    prov: Prov, tree: Path, place: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, os.fspath(place / "named"))
    wanted = prov("seal", tree)
    assert wanted.code == 0
    assert "made a new store" in wanted.err
    assert prov("verify", wanted.id(), "--store", place / "named").code == 0


def test_the_nearest_store_upwards_is_used(
    prov: Prov, tree: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = prov("seal", tree).id()
    (place / "a/b").mkdir(parents=True)
    monkeypatch.chdir(place / "a/b")
    assert prov("verify", wanted).code == 0


def test_without_any_store_your_own_is_made_with_a_note(
    prov: Prov, tree: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    sealed = prov("seal", tree)
    assert "made a new store at" in sealed.err
    assert list((place / "home").rglob("data.mdb"))
    assert "made" not in prov("seal", tree).err


def run_seal(prov: Prov, tree: Path) -> Ended:
    assert prov("seal", tree, "--name", "t").code == 0
    return prov("pack", "t", "-o", "t.pack")


DOCUMENT_CASES: list[tuple[str, list[str]]] = [
    ("seal", ["seal", "t"]),
    ("verify", ["verify", "t"]),
    ("verify", ["verify", "t", "--against", "t"]),
    ("diff", ["diff", "t", "t.pack"]),
    ("ls", ["ls", "t"]),
    ("show", ["show", "t"]),
    ("log", ["log"]),
    ("stats", ["stats"]),
    ("fsck", ["fsck"]),
    ("gc", ["gc"]),
    ("doctor", ["doctor"]),
    ("restore", ["restore", "t", "out"]),
    ("pack", ["pack", "t", "-o", "other.pack"]),
    ("unpack", ["unpack", "t.pack"]),
    ("prove", ["prove", "t", "f", "-o", "f.proof"]),
    ("export", ["export", "t", "--format", "sha256sum"]),
]


@pytest.mark.parametrize(("schema", "arguments"), DOCUMENT_CASES, ids=str)
def test_json_is_one_document_of_the_published_schema(
    prov: Prov, tree: Path, schema: str, arguments: list[str]
) -> None:
    run_seal(prov, tree)
    ended = prov(*arguments, "--json")
    assert ended.code == 0, ended.err
    kind: Any = DOCUMENTS[schema]
    msgspec.json.decode(ended.out, type=kind)
    plain = prov(*arguments) if schema not in ("restore", "pack", "prove") else ended
    assert plain.code == ended.code


def test_an_error_is_one_document_too(prov: Prov) -> None:
    ended = prov("verify", "nothing-of-this-name", "--json")
    assert ended.code == 11
    error = ended.json()["error"]
    assert (error["code"], error["exit_code"], error["name"]) == ("not-found", 11, "nothing-of-this-name")
    assert "error [not-found]" in ended.err
    assert ended.err.count("\n") == 2


def test_wrong_usage_is_2_with_a_document(prov: Prov) -> None:
    assert prov("seal").code == 2
    ended = prov("ls", "--nonsense", "--json")
    assert ended.code == 2
    assert ended.json()["error"]["code"] == "usage"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example_and_the_exit_codes(prov: Prov, command: str) -> None:
    for flag in ("-h", "--help"):
        ended = prov(command, flag)
        assert ended.code == 0
        assert f"  prov {command}" in ended.text()
        assert "Exit codes:" in ended.text()


def test_version(prov: Prov) -> None:
    assert prov("--version").text() == f"prov {provstore.__version__}\n"


def test_a_defect_never_looks_like_a_verdict(prov: Prov, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("boom")

    monkeypatch.setattr("provstore.verbs.listing.stats", broken)
    ended = prov("stats")
    assert ended.code == 70
    assert "defect in provstore: KeyError" in ended.err
    assert "Traceback" not in ended.err


def test_interruption_is_130(prov: Prov, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("provstore.verbs.listing.stats", interrupted)
    ended = prov("stats")
    assert ended.code == 130
    assert ended.err.strip() == "interrupted; nothing half-done was published"


def test_a_system_error_has_its_own_code(prov: Prov, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), "some/file")

    monkeypatch.setattr("provstore.verbs.listing.stats", refused)
    ended = prov("stats", "--json")
    assert ended.code == 27
    assert ended.json()["error"]["path"] == "some/file"


def shell(command: str, place: Path) -> subprocess.CompletedProcess[str]:
    full = f'prov() {{ "{sys.executable}" -m provstore "$@"; }}\n{command}'
    run = ["bash", "-c", full]
    return subprocess.run(run, cwd=place, capture_output=True, text=True, check=False, timeout=120)


def test_a_closed_stdout_keeps_the_verdict(prov: Prov, tree: Path, place: Path) -> None:
    prov("seal", tree)
    (tree / "f").write_text("y\n")
    ways = ("", "--json", "| head -0", ">&-")
    report = 'echo "rc=${PIPESTATUS[0]}" >&2'
    ended = [shell(f"prov verify t --against t {way}; {report}", place) for way in ways]
    assert [run.stderr.split("rc=")[-1].strip() for run in ended] == ["1"] * len(ways)


def test_a_full_disk_under_stdout_is_an_error(prov: Prov, tree: Path, place: Path) -> None:
    prov("seal", tree)
    ended = shell("prov ls t > /dev/full", place)
    assert ended.returncode == 27
    assert "standard output" in ended.stderr


def test_cat_stops_quietly_when_nobody_reads(prov: Prov, tree: Path, place: Path) -> None:
    (tree / "big").write_bytes(os.urandom(9 << 20))
    prov("seal", tree)
    ended = shell("prov cat t big | head -c 10 | wc -c; echo ${PIPESTATUS[0]}", place)
    assert ended.stdout.split() == ["10", "0"]
    assert ended.stderr == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_runs_as_a_program(prov: Prov, tree: Path, place: Path, command: str) -> None:
    run_seal(prov, tree)
    (place / "policy.toml").write_text(
        'format = "provstore/policy/v1"\nname = "p"\nversion = "1"\ndate = "2026-07-26"\n'
        '[[extract]]\nname = "f"\nkind = "entry"\nrole = "f"\n'
        '[[gate]]\nname = "held"\nkind = "equal"\nvalues = { "f:custody" = "held" }\n'
    )
    program = os.path.realpath(sys.executable)
    (place / "r.toml").write_text(
        f'format = "provstore/recipe/v1"\nname = "r"\nmode = "batch"\n[command]\nargv = ["{program}"]\n'
    )
    (place / "family.json").write_text('{"format": "neural-download-model-family-v1", "id": "f"}')
    (place / "stamps.log").write_text("".join(f"{at / 100}\n" for at in range(100)))
    arguments = {
        "authorize": "--policy policy.toml --candidate engine=a1",
        "capture": "--pid $$",
        "cat": "t f",
        "diff": "t t.pack",
        "explain": "t held --policy policy.toml",
        "export": "t --format b3sum",
        "import": "family.json",
        "init": "fresh",
        "ls": "t",
        "metrics": "stamps.log",
        "pack": "t -o second.pack",
        "prove": "t f -o f.proof",
        "query": "uses t",
        "scope": "t --where cards=2 --json || [ $? = 3 ]",
        "restore": "t out",
        "run": "r.toml --preflight",
        "seal": "t",
        "show": "t",
        "unpack": "t.pack",
        "verify": "t.pack",
    }
    ended = shell(f"prov {command} {arguments.get(command, '')}", place)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr


def test_help_and_version_stay_cheap() -> None:
    code = (
        "import sys\nfrom provstore.cli import main\nmain(['--version'])\n"
        "print([n for n in ('rich', 'lmdb', 'zstandard', 'msgspec', 'blake3') if n in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", ["seal t", "show nope", "show nope --json"])
def test_a_full_stderr_changes_neither_answer_nor_exit_code(
    prov: Prov, tree: Path, place: Path, command: str
) -> None:
    wanted = prov(*command.split())
    ended = shell(f"prov {command} 2> /dev/full", place)
    assert (ended.returncode, ended.stdout) == (wanted.code, wanted.text())


def test_a_full_stdout_keeps_the_exit_code_of_an_error(prov: Prov, place: Path) -> None:
    ended = shell("prov show nope --json > /dev/full", place)
    assert ended.returncode == 11
    assert "defect" not in ended.stderr


def test_a_closed_stdin_is_wrong_usage(prov: Prov, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    ended = prov("schema", "check", "-")
    assert ended.code == 2
    assert "closed" in ended.err


def test_an_unknown_algorithm_checks_nothing(prov: Prov, tree: Path, place: Path) -> None:
    sums = place / "sums"
    packet = prov("seal", tree).id()
    sums.write_bytes(prov("export", packet, "--format", "sha256sum").out)
    assert prov("verify", "--checksums", sums, "--against", tree, "--algorithm", "sha256").code == 0
    assert prov("verify", "--checksums", sums, "--against", tree, "--algorithm", "md5").code == 2


def test_a_map_of_no_possible_size_is_wrong_usage(prov: Prov, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROV_MAP_SIZE", "9" * 20)
    assert prov("log").code == 2


def test_a_pack_names_refs_and_never_what_was_typed(prov: Prov, tree: Path, place: Path) -> None:
    packet = prov("seal", tree, "--name", "run-7").id()
    for number, name in enumerate([packet, packet[:10], f"blake3:{packet}"]):
        assert prov("pack", name, "-o", f"{number}.pack").code == 0
    assert len({(place / f"{number}.pack").read_bytes() for number in range(3)}) == 1
    assert prov("show", "0.pack", "--json").json()["refs"] == []
    assert prov("pack", "run-7", "-o", "named.pack").code == 0
    assert prov("pack", place / "named.pack", "-o", "again.pack").code == 0
    assert (place / "named.pack").read_bytes() == (place / "again.pack").read_bytes()
