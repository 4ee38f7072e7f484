"""Stand-ins: pointers as the real tools write them, near misses, and names of the Hub client."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provstore.files.standins import (
    ANNEX_MAX_BYTES,
    LFS_MAX_BYTES,
    AnnexPointer,
    LfsPointer,
    annex_link,
    annex_pointer,
    is_partial_name,
    lfs_pointer,
)

OID = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"
LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize 12345\n".encode()
EXTENDED = (
    "version https://git-lfs.github.com/spec/v1\n"
    f"ext-0-foo sha256:{'a' * 64}\next-1-bar sha256:{'b' * 64}\noid sha256:{OID}\nsize 12345\n"
).encode()


@pytest.mark.parametrize(
    "head",
    [
        LFS,
        EXTENDED,
        LFS.replace(b"\n", b"\r\n"),
        LFS.rstrip(),
        LFS + b"\n\n",
        LFS.replace(b"https://git-lfs.github.com/spec/v1", b"https://hawser.github.com/spec/v1"),
        LFS.replace(b"https://git-lfs.github.com/spec/v1", b"http://git-media.io/v/2"),
        LFS + b"x" * (LFS_MAX_BYTES - 1 - len(LFS)),
    ],
)
def test_lfs_pointers(head: bytes) -> None:
    assert lfs_pointer(head) == LfsPointer(OID, 12345)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\n" + LFS,
        LFS[8:],
        LFS.replace(b"spec/v1", b"spec/v9"),
        LFS.replace(b"sha256", b"sha512"),
        LFS.replace(OID.encode(), OID.upper().encode()),
        LFS.replace(OID.encode(), OID[:-1].encode()),
        LFS.replace(b"size 12345", b"size -1"),
        LFS.replace(b"size 12345\n", b""),
        LFS.replace(b"oid", b"old"),
        LFS + b"x" * (LFS_MAX_BYTES - len(LFS)),
        b"# the pointer looks like this\n" + LFS,
    ],
)
def test_what_is_no_lfs_pointer(head: bytes) -> None:
    assert lfs_pointer(head) is None


def test_annex_pointers() -> None:
    key = f"SHA256E-s31--{OID}.tar.gz".encode()
    wanted = AnnexPointer(key, OID, 31)
    assert annex_pointer(b"/annex/objects/" + key + b"\n") == wanted
    assert annex_pointer(b"/annex/objects/" + key) == wanted
    assert annex_pointer(b"/annex/objects/" + key + b"\r\nappended by somebody\n") == wanted
    assert annex_pointer(b"\\annex\\objects\\" + key + b"\n") == wanted
    assert annex_pointer(b"/annex/objects/MD5-s3-m17--aa\n") == AnnexPointer(b"MD5-s3-m17--aa", None, 3)
    assert annex_pointer(b"/annex/objects/WORM--name\n") == AnnexPointer(b"WORM--name", None, None)
    for head in (b"", b"\n", b"/annex/objects/\n", b"/annex/objects/no key\n", b"see /annex/objects/" + key):
        assert annex_pointer(head) is None
    assert annex_pointer(b"/annex/objects/MD5--" + b"a" * ANNEX_MAX_BYTES) is not None


def test_annex_links() -> None:
    key = f"SHA256-s5--{OID}".encode()
    for above in (b"", b"../../", b"/data/repo/"):
        assert annex_link(above + b".git/annex/objects/Kj/0x/" + key + b"/" + key) == AnnexPointer(
            key, OID, 5
        )
    for target in (b"", b"../blobs/" + OID.encode(), b".git/objects/aa/bb", b"annex/objects/" + key):
        assert annex_link(target) is None


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (b"0a1b2c3d.deadbeef.1234abcd.incomplete", "unfinished"),
        (OID.encode() + b".incomplete", "unfinished"),
        (b"models--o--m/blobs/" + OID.encode() + b".1234abcd.incomplete", "unfinished"),
        (b".cache/huggingface/download/w.metadata", "metadata"),
        (b".cache/huggingface/download/sub/w.safetensors.lock", "metadata"),
        (b"int4/.cache/huggingface/.gitignore", "metadata"),
        (b".cache/huggingface", "metadata"),
        (b".locks/models--o--m/anything", "lock"),
        (b"blobs/" + OID.encode() + b".lock", "lock"),
        (b"blobs/" + OID[:40].encode() + b".lock", "lock"),
        (b"blobs/" + OID.encode(), None),
        (b"uv.lock", None),
        (b"a/poetry.lock", None),
        (b"incomplete", None),
        (b".cache/pip/x", None),
        (b".cache/huggingface/hub/models--o--m/blobs/x", None),
        (b"huggingface/.cache", None),
        (b"model.safetensors", None),
        (b"\xff.bin", None),
    ],
)
def test_partial_names(path: bytes, reason: str | None) -> None:
    found = is_partial_name(path)
    assert (found is None) if reason is None else (found is not None and reason in found)


@given(head=st.binary(max_size=300), cut=st.integers(0, len(LFS)))
def test_any_bytes_are_looked_at_without_error(head: bytes, cut: int) -> None:
    for data in (head, LFS[:cut] + head, b"/annex/objects/" + head):
        if (pointer := lfs_pointer(data)) is not None:
            assert len(pointer.sha256) == 64
        annex_pointer(data)
        annex_link(data)
        is_partial_name(data)


def test_what_git_lfs_itself_writes(tmp_path: Path) -> None:
    """With git-lfs installed its own pointer is read; the vectors above hold in any case."""
    (tmp_path / "w.bin").write_bytes(b"payload")
    git_lfs = shutil.which("git-lfs")
    text = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 7\n"
    written = text % b"239f59ed55e737c77147cf55ad0c1b030b6d7ee748a7426952f9b852d5a935e5"
    if git_lfs is not None:
        argv = [git_lfs, "pointer", "--file", "w.bin"]
        written = subprocess.run(argv, cwd=tmp_path, capture_output=True, check=True, timeout=60).stdout
    assert lfs_pointer(written) == LfsPointer(
        "239f59ed55e737c77147cf55ad0c1b030b6d7ee748a7426952f9b852d5a935e5", 7
    )
