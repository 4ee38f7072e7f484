"""Real repositories, made and changed by the real git, for the tests that inspect them."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from provstore.files.git_state import GitState, git_facts
from provstore.gitids import Mode, ObjectFormat, blob_id
from provstore.records.facts import FactValue


def git(folder: Path, *args: str | bytes, data: bytes = b"") -> bytes:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "LC_ALL": "C",
    }
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": "a", f"GIT_{who}_EMAIL": "a@b", f"GIT_{who}_DATE": "1700000000 +0000"}
    return subprocess.run(
        ["git", "-C", str(folder), "-c", "protocol.file.allow=always", *args],
        input=data,
        stdout=subprocess.PIPE,
        check=True,
        env=env,
    ).stdout


def start(folder: Path, object_format: ObjectFormat = "sha1") -> Path:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main", f"--object-format={object_format}")
    return folder


def commit(folder: Path, **files: str) -> str:
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "1", "--allow-empty")
    return git(folder, "rev-parse", "HEAD").decode().strip()


def bytes_of(folder: Path) -> Iterator[tuple[bytes, Mode, bytes]]:
    """Every file and link below a folder but Git's own, as a sealer reads them."""
    for name, folders, files in os.walk(os.fsencode(folder)):
        folders[:] = [one for one in folders if one != b".git"]
        for one in files:
            path = os.path.join(name, one)
            relative = os.path.relpath(path, os.fsencode(folder))
            if one == b".git":
                continue
            if os.path.islink(path):
                yield relative, "120000", os.readlink(path)
            else:
                mode: Mode = "100755" if os.stat(path).st_mode & 0o100 else "100644"
                with open(path, "rb") as file:
                    yield relative, mode, file.read()


def blob_ids(folder: Path, object_format: ObjectFormat = "sha1") -> dict[bytes, bytes]:
    return {path: blob_id(data, object_format) for path, _, data in bytes_of(folder)}


def facts_of(state: GitState, path: str = "") -> dict[str, FactValue]:
    return {fact.key: fact.value for fact in git_facts(state) if fact.path == path}


def codes(state: GitState) -> dict[bytes, str]:
    return {change.path: change.code for change in state.dirty}
