"""Mistakes that users of other tools met, as the commands that people type."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from prov_run import Prov


def test_links_are_members_and_never_followed(prov: Prov, place: Path) -> None:
    (place / "t/a").mkdir(parents=True)
    (place / "t/a/loop").symlink_to("../a")
    (place / "t/loop2").symlink_to("loop2")
    assert prov("seal", "t").id() == prov("seal", "t").id()
    listed = prov("ls", "--json", "t")
    assert listed.text().count("symlink") == 2
    assert {m["path"]: m["target"] for m in listed.json() if m["type"] == "symlink"} == {
        "a/loop": "../a",
        "loop2": "loop2",
    }


def test_exclusion_comes_before_the_look(prov: Prov, place: Path) -> None:
    (place / "t/.cache").mkdir(parents=True)
    (place / "t/.cache/x").symlink_to("/nonexistent")
    (place / "t/w.bin").write_text("w")
    os.mkfifo(place / "t/.cache/pipe")
    report = prov("seal", "t", "--exclude", ".cache", "--json").json()
    assert [item["path"] for item in report["excluded"]] == [".cache"]
    assert ".cache" in report["excluded"][0]["rule"]
    assert [m["path"] for m in prov("ls", "t", "--json").json()] == ["w.bin"]


def test_the_recorded_link_policy_is_what_verify_goes_by(prov: Prov, place: Path) -> None:
    (place / "t").mkdir()
    (place / "t/f").write_text("x\n")
    (place / "t/l").symlink_to("f")
    packet = prov("seal", "t", "--follow-symlinks").id()
    assert prov("verify", packet, "--against", "t").code == 0
    plain = prov("seal", "t").id()
    assert plain != packet
    (place / "t/l").unlink()
    shutil.copy(place / "t/f", place / "t/l")
    ended = prov("verify", plain, "--against", "t")
    assert ended.code == 1
    assert "l" in ended.text()


def test_a_name_that_is_not_utf8(prov: Prov, place: Path) -> None:
    (place / "t").mkdir()
    Path(os.fsdecode(b"t/a\xffb")).write_text("x")
    packet = prov("seal", "t").id()
    assert prov("verify", packet, "--against", "t").code == 0
    listed = prov("ls", packet, "--json")
    assert json.loads(listed.out.decode())[0]["path"] == "a\\xffb"
    assert prov("cat", packet, "a\\xffb").out == b"x"


def test_exported_checksums_pass_and_foreign_ones_verify(prov: Prov, place: Path) -> None:
    (place / "t").mkdir()
    for name in ("a\\b", "n\nl", "c\rr", "plain"):
        (place / "t" / name).write_text("x")
    packet = prov("seal", "t").id()
    (place / "t.sum").write_bytes(prov("export", packet, "--format", "sha256sum").out)
    checked = subprocess.run(
        ["sha256sum", "-c", "../t.sum"], cwd=place / "t", capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    assert prov("verify", "--checksums", "t.sum", "--against", "t").code == 0
    (place / "b.sum").write_bytes(prov("export", packet, "--format", "b3sum").out)
    verified = prov("verify", "--checksums", "b.sum", "--against", "t", "--algorithm", "blake3")
    assert verified.code == 0, verified.text()
    (place / "t/plain").write_text("y")
    assert prov("verify", "--checksums", "t.sum", "--against", "t").code == 1
    (place / "q.sum").write_text("\\" + "0" * 64 + "  a\\qb\n")
    assert prov("verify", "--checksums", "q.sum", "--against", "t").code == 2


def test_no_control_character_reaches_the_terminal(prov: Prov, place: Path) -> None:
    (place / "t").mkdir()
    (place / "t/bad\x1b[2J\x1b[32mPASS\x1b[0m").write_text("x")
    said = [prov("seal", "t"), prov("ls", "t"), prov("verify", "t"), prov("show", "t")]
    (place / "t/bad\x1b[2J\x1b[32mPASS\x1b[0m").write_text("y")
    said += [prov("verify", "t", "--against", "t"), prov("diff", "t", "t/"), prov("cat", "t", "bad\x1b[2J")]
    for ended in said:
        assert not set(ended.out.decode() + ended.err) & set(
            map(chr, (*range(9), *range(11, 32), *range(127, 160)))
        )


def test_special_files_are_refused_by_name(prov: Prov, place: Path) -> None:
    (place / "t").mkdir()
    (place / "t/f").write_text("x")
    os.mkfifo(place / "t/pipe")
    (place / "t/l").symlink_to("pipe")
    ended = prov("seal", "t")
    assert ended.code == 15
    assert "pipe" in ended.err
    assert ended.out == b""
    assert prov("seal", "t", "--special", "record").code == 2
    assert prov("seal", "t", "--exclude", "pipe").code == 0


def test_hardlinks_drop_nobody(prov: Prov, place: Path) -> None:
    (place / "t").mkdir()
    (place / "t/a").write_text("x\n")
    os.link(place / "t/a", place / "t/b")
    os.link(place / "t/a", place / "c")
    prov("seal", "t", "c", "--name", "both")
    assert [m["path"] for m in prov("ls", "both", "--json").json() if m["type"] == "file"] == [
        "c",
        "t/a",
        "t/b",
    ]


def test_the_executable_bit_is_part_of_the_identity(prov: Prov, tree: Path, place: Path) -> None:
    packet = prov("seal", tree).id()
    assert prov("restore", packet, "out").code == 0
    assert os.access(place / "out/run.sh", os.X_OK)
    (tree / "run.sh").chmod(0o644)
    ended = prov("verify", packet, "--against", tree)
    assert ended.code == 1
    assert "run.sh" in ended.text()


def test_empty_directories_count_and_exports_say_what_they_lose(prov: Prov, tree: Path) -> None:
    packet = prov("seal", tree).id()
    export = prov("export", packet, "--format", "git-tree")
    assert export.code == 0
    assert "1 empty directory not representable in git-tree: logs" in export.err
    (tree / "logs").rmdir()
    assert prov("verify", packet, "--against", tree).code == 1


def test_a_git_tree_is_the_one_git_makes(prov: Prov, tree: Path, place: Path) -> None:
    (tree / "dir").mkdir()
    (tree / "dir.x").write_text("a")
    (tree / 'dir/quo"te\t').write_text("b")

    def git(*arguments: str) -> bytes:
        full = ["git", "-C", str(tree), *arguments]
        return subprocess.run(full, capture_output=True, check=True).stdout

    git("init", "-q")
    git("add", "-A")
    root = git("write-tree").decode().strip()
    listed = git("ls-tree", "-r", root)
    packet = prov("seal", tree, "--exclude", ".git").id()
    assert prov("export", packet, "--format", "git-tree").out == b"tree " + root.encode() + b"\n" + listed
    assert prov("export", packet, "--format", "git-tree", "--json").json()["root"] == root


def test_a_timestamp_put_back_hides_nothing(prov: Prov, place: Path) -> None:
    (place / "t").mkdir()
    target = place / "t/f"
    target.write_text("AAAA\n")
    packet = prov("seal", "t").id()
    seen = target.stat()
    target.write_text("BBBB\n")
    os.utime(target, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert prov("verify", packet, "--against", "t").code == 1
    assert prov("seal", "t").id() != packet


def test_nothing_checked_is_never_a_pass(prov: Prov, tree: Path, place: Path) -> None:
    (place / "empty").mkdir()
    packet = prov("seal", tree).id()
    (place / "z.sum").write_text("")
    for arguments in (
        ["seal", "empty"],
        ["verify", packet, "--only", "nomatch/*"],
        ["verify", packet, "--against", "t", "--only", "nomatch/*"],
        ["verify", "--checksums", "z.sum"],
        ["verify"],
    ):
        ended = prov(*arguments)
        assert ended.code not in (0, 1), arguments
        assert "error [" in ended.err
    assert "0 members checked" in prov("verify", packet, "--only", "nomatch/*").err


def test_required_evidence_that_is_gone(prov: Prov, place: Path) -> None:
    (place / "t/oracle").mkdir(parents=True)
    (place / "t/oracle/tokens.json").write_text("tok\n")
    (place / "t/raw.log").write_text("1\n")
    packet = prov("seal", "t", "--require", "oracle").id()
    shutil.rmtree(place / "t/oracle")
    ended = prov("verify", packet, "--against", "t")
    assert ended.code == 1
    assert "oracle" in ended.text()
    assert prov("seal", "t", "--require", "oracle").code not in (0, 1)


@pytest.mark.parametrize(
    ("text", "code", "named"),
    [
        ('{"digest":"aa","digest":"bb"}', 2, "duplicate-key"),
        ('{"a":{"x":1,"x":1}}', 2, "duplicate-key"),
        ('{"tok_s": NaN}', 2, "float-in-record"),
        ('{"tok_s": 1e999}', 2, "float-in-record"),
        ('{"tok_s": null}', 0, ""),
        ('{"format":"provstore/999"}', 2, "newer-format"),
        ('{"format":"provstore/tree/v1","entries":[ ]}', 2, "not-canonical"),
        ('{"entries":[],"format":"provstore/tree/v1"}', 0, ""),
        ("{} x", 2, "trailing-bytes"),
        ("", 2, "not-canonical"),
    ],
)
def test_strict_json(prov: Prov, place: Path, text: str, code: int, named: str) -> None:
    (place / "a.json").write_text(text)
    ended = prov("schema", "check", "a.json", "--json")
    assert ended.code == code, ended.err
    assert ended.json().get("error", {}).get("code", "") == named


@pytest.mark.parametrize(
    "digest", ["sha256:ABC", "sha256:" + "0" * 63, "SHA256:" + "0" * 64, "blake3:", "md5:00"]
)
def test_a_malformed_digest_is_refused_before_any_look(prov: Prov, digest: str) -> None:
    assert prov("cat", digest).code == 2


def test_both_digests_find_the_object(prov: Prov, tree: Path) -> None:
    prov("seal", tree)
    member = next(m for m in prov("ls", "t", "--json").json() if m["path"] == "f")
    for digest in (f"sha256:{member['sha256']}", f"blake3:{member['blake3']}"):
        assert prov("cat", digest).out == b"x\n"


def test_a_failure_names_everything_at_once(prov: Prov, place: Path) -> None:
    (place / "t").mkdir()
    for name in "123":
        (place / "t" / name).write_text(name + "\n")
    packet = prov("seal", "t").id()
    (place / "t/2").write_text("X\n")
    (place / "t/3").unlink()
    (place / "t/4").write_text("n\n")
    ended = prov("verify", packet, "--against", "t", "--json")
    assert ended.code == 1
    bad = {check["path"]: check for check in ended.json()["checks"] if check["outcome"] == "FAIL"}
    assert set(bad) == {"2", "3", "4"}
    assert bad["2"]["expected"]
    assert bad["2"]["found"]
    text = prov("verify", packet, "--against", "t").text()
    assert text.startswith("FAIL")
    assert "expected" in text
    assert "found" in text


def test_diff_of_a_directory_and_its_packet(prov: Prov, tree: Path) -> None:
    packet = prov("seal", tree).id()
    assert prov("diff", packet, tree).code == 0
    (tree / "f").write_text("changed\n")
    (tree / "new").write_text("n")
    ended = prov("diff", packet, tree, "--json")
    assert ended.code == 1
    report = ended.json()
    assert [c["path"] for c in report["changed"]] == ["f"]
    assert [c["path"] for c in report["added"]] == ["new"]
    assert report["changed"][0]["from"]["blake3"] != report["changed"][0]["to"]["blake3"]


def test_a_proof_verifies_without_a_store(prov: Prov, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prov("seal", tree)
    assert prov("prove", "t", "f", "-o", "f.proof").code == 0
    shutil.rmtree(".prov")
    assert prov("verify", "f.proof").code == 0
    assert prov("verify", "proof", "f.proof").code == 0
    broken = Path("f.proof").read_bytes().replace(b"f", b"g", 1)
    Path("bad.proof").write_bytes(broken)
    assert prov("verify", "bad.proof").code in (1, 2)


def test_a_pack_travels(prov: Prov, tree: Path, place: Path) -> None:
    packet = prov("seal", tree).id()
    assert prov("pack", packet, "-o", "t.pack").code == 0
    shutil.rmtree(".prov")
    assert prov("verify", "t.pack").code == 0
    assert prov("ls", "t.pack").code == 0
    prov("init")
    assert prov("unpack", "t.pack").code == 0
    assert prov("verify", packet).code == 0
    assert prov("restore", packet, "out").code == 0
    assert (place / "out/f").read_text() == "x\n"
    assert prov("restore", packet, "out").code == 24


def test_a_spec_is_told_from_a_file(prov: Prov, tree: Path, place: Path) -> None:
    spec = 'format = "provstore/packet-spec/v1"\nname = "run"\n'
    spec += '[[entry]]\nrole = "e"\nkind = "evidence"\npath = "{d}/t"\n'
    (place / "run.toml").write_text(spec)
    sealed = prov("seal", "run.toml", "--set", f"d={place}")
    assert sealed.id() in prov("show", "run").text()
    assert prov("seal", "run.toml").code == 2
    (place / "run.toml").write_text(spec + "broken [")
    assert prov("seal", "run.toml", "--set", "d=.").code == 2
    (place / "plain.toml").write_text("a = 1\n")
    assert prov("seal", "plain.toml").code == 0


def test_options_that_would_do_nothing_are_refused(prov: Prov, tree: Path) -> None:
    prov("seal", tree)
    for arguments in (
        ["verify", "t", "--algorithm", "sha256"],
        ["verify", "t", "--checksums", "x"],
        ["verify", "t", "extra"],
        ["seal", "t", "--set", "novalue"],
        ["seal", "t", "--git", "--elf"],
        ["seal", "t", "--kind", "nonsense"],
        ["export", "t", "--format", "nonsense"],
        ["schema", "packet", "file"],
    ):
        assert prov(*arguments).code == 2, arguments
