"""Python environments: the real one of this run, made-up ones with every oddity, and pip-freeze texts."""

import importlib.metadata
import json
import os
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provstore.errors import InputOutputError, InspectError
from provstore.files.inspect_python import inspect_python_env, normalise, parse_freeze
from provstore.files.python_origins import contradiction, direct_url_fields, requirement_url
from provstore.records.facts import Fact, FactValue

COMMIT = "4a6fd874725312c53883b1d53970af1d0eccfc3f"
SITE = "lib/python3.12/site-packages"


@pytest.fixture
def env(tmp_path: Path) -> Path:
    """A virtual environment with nothing in it."""
    root = tmp_path / "venv"
    (root / SITE).mkdir(parents=True)
    (root / "lib64").symlink_to("lib")
    (root / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.3\nexecutable = /usr/bin/python3.12\n")
    return root


def install(root: Path, name: str, version: str, **files: str | bytes | dict[str, object]) -> Path:
    """Write what an installer would leave of one distribution; keyword names are file names."""
    directory = root / SITE / f"{name}-{version}.dist-info"
    directory.mkdir()
    (directory / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nVersion: text\n"
    )
    for file, content in files.items():
        data = json.dumps(content).encode() if isinstance(content, dict) else content
        path = directory / {"direct_url": "direct_url.json"}.get(file, file)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    return directory


def found(root: Path) -> list[tuple[str, FactValue, str]]:
    return [
        (fact.key, fact.value, fact.path.removeprefix(SITE + "/"))
        for fact in inspect_python_env(os.fsencode(root))
    ]


def values(root: Path, key: str) -> list[FactValue]:
    return [value for name, value, _ in found(root) if name == f"python.{key}"]


def test_the_environment_of_this_run_reads_as_importlib_reads_it() -> None:
    site = sysconfig.get_path("purelib")
    theirs = {
        (normalise(dist.metadata["Name"]), dist.version)
        for dist in importlib.metadata.distributions(path=[site])
    }
    assert len(theirs) > 10
    for root in (sys.prefix, site):
        facts = inspect_python_env(os.fsencode(root))
        prefix = "python.package."
        ours = {(fact.key.removeprefix(prefix), fact.value) for fact in facts if fact.key.startswith(prefix)}
        assert ours == theirs
        for fact in facts:
            assert (Path(root) / fact.path).exists()
            if fact.location:
                line = (Path(root) / fact.path).read_bytes().splitlines()[int(fact.location.split()[1]) - 1]
                assert str(fact.value).encode() in line
        assert list(facts) == sorted(facts, key=lambda fact: fact.path)


def test_a_plain_package(env: Path) -> None:
    install(env, "Flash_Attn.v2", "2.8.3", INSTALLER="uv\n")
    assert found(env) == [
        ("python.installer.flash-attn-v2", "uv", "Flash_Attn.v2-2.8.3.dist-info/INSTALLER"),
        ("python.package.flash-attn-v2", "2.8.3", "Flash_Attn.v2-2.8.3.dist-info/METADATA"),
        ("python.version", "3.12.3", "pyvenv.cfg"),
    ]
    assert found(env / SITE)[1:] == [
        ("python.package.flash-attn-v2", "2.8.3", "Flash_Attn.v2-2.8.3.dist-info/METADATA")
    ]


def test_no_fact_names_the_host_where_it_need_not(env: Path) -> None:
    inside = env / "src" / "in side"
    install(env, "inside", "1", direct_url={"url": inside.as_uri(), "dir_info": {"editable": True}})
    (env / SITE / "__editable__.inside-1.pth").write_text(
        f"{inside}\n# comment\nimport sys\n\n../../../src/two\n"
    )
    (env / SITE / "here.pth").write_text(f"below\n./\n{env / SITE}\n")
    (env / SITE / "__editable___inside_1_finder.py").write_text(
        f"import sys\nMAPPING: dict[str, str] = {{'b': '{inside}/b', 'a': '{inside}/a'}}\nNAMESPACES = {{}}\n"
    )
    (env / SITE / "old.egg-link").write_text(f"{inside}\n../\n")
    assert str(env.parent) not in str(found(env))
    origins = [(value, path) for key, value, path in found(env) if key == "python.editable_origin"]
    assert origins == [
        ("src/in side", "__editable__.inside-1.pth"),
        ("src/two", "__editable__.inside-1.pth"),
        ("src/in side/a", "__editable___inside_1_finder.py"),
        ("src/in side/b", "__editable___inside_1_finder.py"),
        ("src/in side", "inside-1.dist-info/direct_url.json"),
        ("src/in side", "old.egg-link"),
    ]
    assert values(env, "editable.inside") == values(env, "editable.old") == [True]
    (env.parent / "alias").symlink_to(env)
    assert found(env.parent / "alias") == found(env)
    assert {path for key, _, path in found(env / SITE) if "origin" in key} == {path for _, path in origins}


def test_origins_outside_are_kept_as_stated(env: Path) -> None:
    """Golden: what setuptools 84 and pip 23.2 wrote for editable installations, host path replaced."""
    install(env, "flat", "1.0", direct_url=b'{"dir_info": {"editable": true}, "url": "file:///srv/flat"}')
    (env / SITE / "__editable__.flat-1.0.pth").write_text(
        "import __editable___flat_1_0_finder; __editable___flat_1_0_finder.install()\n"
    )
    (env / SITE / "__editable___flat_1_0_finder.py").write_text(
        "MAPPING: dict[str, str] = {'flat': '/srv/flat/flat'}\nNAMESPACES: dict[str, list[str]] = {}\n"
    )
    (env / SITE / "__editable__.src-2.0.pth").write_text("/srv/src\x1b/src")
    (env / SITE / "up.pth").write_text("../../../../elsewhere\n")
    assert values(env, "editable_origin") == [
        r"/srv/src\x1b/src",
        "/srv/flat/flat",
        "file:///srv/flat",
        "../../../../elsewhere",
    ]
    assert values(env, "direct_url.flat") == []


def test_direct_urls_commits_and_digests(env: Path) -> None:
    """Golden: the two documents that pip 23.2 wrote for a Git and an archive requirement, paths shortened."""
    vcs = {"vcs": "git", "commit_id": COMMIT, "requested_revision": "main"}
    url = "https://user:token@example.org/vllm.git?key=1"
    install(env, "vllm", "0.1", direct_url={"url": url, "vcs_info": vcs, "subdirectory": "python"})
    digest = "7e8b1de95857a4c5363b4e384ce655bd1e29f8f925be959085a0a3f93b1ac06a"
    hashes = {"hash": f"sha256={digest}", "hashes": {"sha256": digest}}
    install(
        env, "wheel", "1", direct_url={"url": "file:///tmp/wheel-1-py3-none-any.whl", "archive_info": hashes}
    )
    install(
        env,
        "older",
        "1",
        direct_url={"url": "https://example.org/o.tgz", "archive_info": {"hash": f"sha256={digest}"}},
    )
    stated = {
        key.removeprefix("python."): value
        for key, value, path in found(env)
        if path.endswith("direct_url.json")
    }
    assert stated == {
        "direct_url.vllm": "https://example.org/vllm.git",
        "vcs.vllm": "git",
        "vcs_commit.vllm": COMMIT,
        "requested_revision.vllm": "main",
        "subdirectory.vllm": "python",
        "direct_url.wheel": "file:///tmp/wheel-1-py3-none-any.whl",
        "archive_digest.wheel": f"sha256:{digest}",
        "direct_url.older": "https://example.org/o.tgz",
        "archive_digest.older": f"sha256:{digest}",
    }


@pytest.mark.parametrize(
    ("version", "contradicts"),
    [
        ("0.1.11.dev53+g744a8b4", True),
        ("0.1.11.dev53+g4a6fd87", False),
        ("1.0+cpu.g744a8b4.d20260101", True),
        ("2.6.0a0+git744a8b4", True),
        ("2.6.0a0+git4a6fd87", False),
        ("2.6.0+git20260101", False),
        ("2.6.0+cu128", False),
        ("2.6.0", False),
    ],
)
def test_version_and_commit_contradict(env: Path, version: str, contradicts: bool) -> None:
    vcs: dict[str, object] = {"url": "https://example.org/x", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}
    install(env, "x", version, direct_url=vcs)
    assert len(values(env, "contradiction.x")) == contradicts
    assert (contradiction(version, COMMIT) is not None) == contradicts
    assert contradiction(version, "main") is None


def test_two_distributions_of_one_name(env: Path) -> None:
    install(env, "Some.Name", "1")
    install(env, "some_name", "2")
    install(env, "other", "1")
    duplicates = [fact for fact in inspect_python_env(os.fsencode(env)) if "duplicate" in fact.key]
    places = (f"{SITE}/Some.Name-1.dist-info", f"{SITE}/some_name-2.dist-info")
    assert duplicates == [Fact(key="python.duplicate.some-name", value=places)]
    assert values(env, "package.some-name") == ["1", "2"]


def test_metadata_that_cannot_be_used_is_named(env: Path) -> None:
    site = env / SITE
    (site / "empty-1.dist-info").mkdir()
    (site / "file-1.dist-info").write_text("")
    (site / "linked-1.dist-info").symlink_to(env.parent)
    (install(env, "fifo", "1") / "METADATA").unlink()
    os.mkfifo(site / "fifo-1.dist-info" / "METADATA")
    (install(env, "meta", "1") / "METADATA").unlink()
    (site / "meta-1.dist-info" / "METADATA").symlink_to(env / "pyvenv.cfg")
    (install(env, "twice", "1") / "METADATA").write_text("Name: twice\nVersion: 1\nVersion: 2\n")
    (install(env, "nameless", "1") / "METADATA").write_bytes(b"Name: ../\x1b\nVersion: 1\n")
    (install(env, "bodily", "1") / "METADATA").write_text("\nName: bodily\nVersion: 1\n")
    install(env, "~ip", "23")
    (site / "~ip-23.dist-info" / "METADATA").write_text("Name: pip\nVersion: 23\n")
    for number, text in enumerate(
        ['{"url": 1}', "[]", "{", '{"url": "x", "dir_info": 1}', '{"url": "\\ud800"}']
    ):
        install(env, f"url{number}", "1", direct_url=text)
    (site / "bad.egg-link").write_text("\n")
    (site / "__editable___bad_finder.py").write_text("MAPPING = {open('/etc/passwd'): 1}\n")
    (site / "linked.pth").symlink_to("/etc/hostname")
    problems = {path: str(value) for key, value, path in found(env) if key == "python.problem"}
    assert sorted(problems) == sorted(
        [
            *(
                "__editable___bad_finder.py",
                "bad.egg-link",
                "bodily-1.dist-info/METADATA",
                "empty-1.dist-info",
            ),
            *("fifo-1.dist-info", "file-1.dist-info", "linked-1.dist-info", "linked.pth", "meta-1.dist-info"),
            *("nameless-1.dist-info/METADATA", "twice-1.dist-info/METADATA", "~ip-23.dist-info"),
            *(f"url{number}-1.dist-info/direct_url.json" for number in range(5)),
        ]
    )
    assert problems["twice-1.dist-info/METADATA"] == "states Version twice"
    assert problems["nameless-1.dist-info/METADATA"] == r"states name '../\x1b' and version '1'"
    assert "pip 23" in problems["~ip-23.dist-info"]
    assert values(env, "package.pip") == values(env, "package.twice") == []
    assert values(env, "package.url0") == ["1"]


def test_other_layouts(tmp_path: Path) -> None:
    site = tmp_path / "usr" / "lib" / "python3" / "dist-packages"
    (site / "legacy.egg-info").mkdir(parents=True)
    (site / "legacy.egg-info" / "PKG-INFO").write_bytes(b"\xef\xbb\xbfName: legacy\r\nVersion: 1\r\n\r\nbody")
    (site / "single-2.egg-info").write_bytes(b"Name: single\nVersion: 2\nAuthor: J\xf6rg\n")
    (site / "zip-3.egg" / "EGG-INFO").mkdir(parents=True)
    (site / "zip-3.egg" / "EGG-INFO" / "PKG-INFO").write_text("Name: zip\nVersion: 3\n")
    facts = inspect_python_env(os.fsencode(tmp_path / "usr"))
    assert [(fact.key, fact.value, fact.location) for fact in facts] == [
        ("python.package.legacy", "1", "line 2"),
        ("python.package.single", "2", "line 2"),
        ("python.package.zip", "3", "line 2"),
    ]


def test_what_is_no_environment(tmp_path: Path) -> None:
    with pytest.raises(InspectError, match="no Python environment"):
        inspect_python_env(os.fsencode(tmp_path))
    (tmp_path / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    with pytest.raises(InspectError, match="no Python environment"):
        inspect_python_env(os.fsencode(tmp_path))
    with pytest.raises(InputOutputError, match="No such file"):
        inspect_python_env(os.fsencode(tmp_path / "nowhere"))


def test_freeze_lines() -> None:
    text = (
        f"-e git+https://me:secret@example.org/vllm.git@{COMMIT}#egg=vllm&subdirectory=../sub\n"
        "# Editable install with no version control (My_Pkg==1.0+g12)\n"
        "-e /srv/my pkg\n"
        "-e file:///srv/unnamed\n"
        "\n"
        "# a comment\n"
        "--extra-index-url https://me:secret@example.org/simple\n"
        "Jinja2==3.1.6\r\n"
        "odd===1.0-final\n"
        f"whl @ https://me:secret@example.org/a/whl-1.whl?token=secret#sha256={'ab' * 32}\n"
        "vcs @ git+ssh://git@example.org/vcs.git@v1.2\n"
        "local @ file:///tmp/x.whl\n"
        "jinja2==3.1.5"
    )
    facts = parse_freeze(text.encode(), "freeze.txt")
    assert [(fact.key.removeprefix("python."), fact.value, fact.location) for fact in facts] == [
        ("editable.vllm", True, "line 1"),
        ("editable_origin", f"git+https://example.org/vllm.git@{COMMIT}", "line 1"),
        ("vcs.vllm", "git", "line 1"),
        ("vcs_commit.vllm", COMMIT, "line 1"),
        ("subdirectory.vllm", "../sub", "line 1"),
        ("editable.my-pkg", True, "line 3"),
        ("editable_origin", "/srv/my pkg", "line 3"),
        ("package.my-pkg", "1.0+g12", "line 3"),
        ("editable_origin", "file:///srv/unnamed", "line 4"),
        ("package.jinja2", "3.1.6", "line 8"),
        ("package.odd", "1.0-final", "line 9"),
        ("direct_url.whl", "https://example.org/a/whl-1.whl", "line 10"),
        ("archive_digest.whl", f"sha256:{'ab' * 32}", "line 10"),
        ("direct_url.vcs", "ssh://git@example.org/vcs.git", "line 11"),
        ("vcs.vcs", "git", "line 11"),
        ("requested_revision.vcs", "v1.2", "line 11"),
        ("direct_url.local", "file:///tmp/x.whl", "line 12"),
        ("package.jinja2", "3.1.5", "line 13"),
        ("duplicate.jinja2", ("line 8", "line 13"), ""),
    ]
    assert "secret" not in str(facts)
    assert parse_freeze("a==1\n".encode("utf-16"), "x") == parse_freeze(b"\xef\xbb\xbfa==1\r\n", "x")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "no package"),
        (b"# only\n\n--pre\n", "no package"),
        (b"a==1\nb>=2\n", "line 2 is none"),
        (b"a==1\nb\n", "line 2 is none"),
        (b"a==1\nhttps://me:secret@example.org/x.whl\n", "line 2 is none that pip freeze writes: https"),
        (b"a==1\n\x1b[2J\n", r"\x1b[2J"),
        (b"a==1\n\xff==2\n", "not UTF-8 at byte 5"),
        (b"a==\n", "line 1 is none"),
    ],
)
def test_what_is_no_freeze(text: bytes, reason: str) -> None:
    with pytest.raises(InspectError) as caught:
        parse_freeze(text, "freeze.txt")
    assert reason in caught.value.reason
    assert not {"\x1b", "secret"} & set(str(caught.value).replace("secret", "\x1b"))


@given(text=st.text(st.sampled_from("ab=@ -e+:/#.\ngit\x1b\u202e"), max_size=40) | st.text(max_size=40))
def test_any_text_gives_facts_or_our_error(text: str) -> None:
    data = f"a==1\n{text}".encode("utf-8", "replace")
    try:
        facts = parse_freeze(data, "x")
    except InspectError:
        return
    assert "\x1b" not in str([fact.value for fact in facts])


def test_urls_taken_apart() -> None:
    assert requirement_url("git+file:///srv/a@b") == (
        "file:///srv/a",
        {"vcs": "git", "requested_revision": "b"},
    )
    assert requirement_url("git+git@example.org:o/a.git@v1")[0] == "git@example.org:o/a.git"
    with pytest.raises(InspectError, match="u: is no JSON object"):
        direct_url_fields([], "u")


def test_the_labs_own_freeze(corpus: Path) -> None:
    (path,) = corpus.glob("b70-lab/repro/*/manifests/pip-freeze-observed.txt")
    data = path.read_bytes()
    facts = {fact.key: fact.value for fact in parse_freeze(data, path.name)}
    assert sum(key.startswith("python.package.") for key in facts) == 188
    assert data.count(b"==") == 188
    assert facts["python.vcs_commit.vllm"] == COMMIT
    assert facts["python.editable_origin"] == f"git+https://github.com/vllm-project/vllm.git@{COMMIT}"
    assert str(facts["python.direct_url.vllm-xpu-kernels"]).endswith(
        "0.1.11.dev53+g744a8b4-cp312-cp312-linux_x86_64.whl"
    )
    assert facts["python.package.jinja2"] == "3.1.6"
    assert not any("duplicate" in key for key in facts)
