"""Finding and opening stores: profiles, links, twice in one process, without the right to write."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from killing import run
from workbench import as_nobody, open_to_all, plant, snapshot

from provstore.errors import (
    InputOutputError,
    NotAStoreError,
    PackError,
    ProvError,
    ReadOnlyError,
    SpecError,
    StoreFullError,
)
from provstore.ids import digests
from provstore.store import objects
from provstore.store.lmdb_registry import _registry
from provstore.store.lmdb_store import LmdbStore
from provstore.store.opening import find_store, init_store, load_profile, open_reader, open_store
from provstore.store.pack import PackStore
from provstore.store.profile import DEFAULT, StoreProfile
from provstore.store.protocol import Reader, Store
from provstore.verbs.checking import fsck

PROFILES = Path(__file__).parents[2] / "stores" / "profiles"


def put(store: Store, data: bytes) -> None:
    with store.stage() as stage:
        stage.add_object(digests(data), data)
        stage.commit()


def get(store: Reader, data: bytes) -> bytes:
    return objects.read(store, digests(data).blake3)


# -- profiles ------------------------------------------------------------------------------------------------


def test_the_default_profile_is_the_one_of_the_code() -> None:
    text = (PROFILES / "default.toml").read_text()
    assert load_profile(PROFILES / "default.toml") == DEFAULT
    assert {line.split(" ")[0] for line in text.splitlines() if " = " in line} == set(
        StoreProfile.__struct_fields__
    )


@pytest.mark.parametrize("file", sorted(PROFILES.glob("*.toml")), ids=lambda file: file.stem)
def test_every_profile_opens_a_store(file: Path, tmp_path: Path) -> None:
    profile = load_profile(file)
    init_store(tmp_path / "s").close()
    with LmdbStore.open(os.fspath(tmp_path / "s"), profile=profile) as store:
        assert isinstance(store, LmdbStore)
        put(store, b"x" * 100_000)
        assert get(store, b"x" * 100_000)


@pytest.mark.parametrize(
    "text",
    ["unknown = 1", "zstd_level = 20", "zstd_level = '3'", "wait_s = -1", "max_readers = 0", "=", "sync = 1"],
)
def test_a_wrong_profile_is_refused(text: str, tmp_path: Path) -> None:
    tmp_path.joinpath("p.toml").write_text(text)
    with pytest.raises(SpecError):
        load_profile(tmp_path / "p.toml")


# -- which store


def test_the_nearest_store_is_found_upwards(tmp_path: Path) -> None:
    init_store(tmp_path / ".prov").close()
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert find_store(deep) == os.fspath(tmp_path / ".prov")
    init_store(tmp_path / "a" / ".prov").close()
    assert find_store(deep) == os.fspath(tmp_path / "a" / ".prov")
    deep.joinpath(".prov").mkdir()  # without an index it is none
    assert find_store(deep) == os.fspath(tmp_path / "a" / ".prov")


def test_a_directory_stands_for_the_store_in_it(tmp_path: Path) -> None:
    init_store(tmp_path / ".prov").close()
    with open_store(tmp_path) as store:  # type: ignore[attr-defined]
        assert store.path == os.fspath(tmp_path / ".prov")


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    plant(tmp_path, {"file": "x", "other/data.txt": "x", "empty": None})
    for name in ("file", "other", "empty", "nothing", "file/below"):
        with pytest.raises(NotAStoreError):
            open_store(tmp_path / name)
    with pytest.raises(PackError):
        open_reader(tmp_path / "file")
    with pytest.raises(NotAStoreError, match="holds other things"):
        init_store(tmp_path / "other")
    with pytest.raises((NotAStoreError, InputOutputError)):
        init_store(tmp_path / "file")
    assert snapshot(tmp_path)[b"other/data.txt"] == ("file", b"x")


def test_init_twice_opens_what_is_there(tmp_path: Path) -> None:
    with init_store(tmp_path / "s") as store:  # type: ignore[attr-defined]
        put(store, b"x")
    with init_store(tmp_path / "s") as again:  # type: ignore[attr-defined]
        assert get(again, b"x") == b"x"


# -- twice in one process ------------------------------------------------------------------------------------


def test_a_store_and_a_link_to_it_share_one_environment(tmp_path: Path) -> None:
    init_store(tmp_path / "s").close()
    tmp_path.joinpath("link").symlink_to("s")
    others = len(_registry)
    first = open_store(tmp_path / "s")
    second = open_store(tmp_path / "link")
    reader = open_store(tmp_path / "s", writable=False)
    assert len(_registry) == others + 1
    put(first, b"one")
    put(second, b"two")
    assert get(reader, b"two") == get(first, b"two") == b"two"
    first.close()
    put(second, b"three")
    assert get(reader, b"three") == b"three"
    with pytest.raises(ReadOnlyError):
        reader.stage()
    second.close()
    assert get(reader, b"one") == b"one"
    reader.close()
    reader.close()
    assert len(_registry) == others


def test_closing_one_of_two_keeps_the_locks(tmp_path: Path) -> None:
    """Closing any descriptor of the lock file would drop the locks of the process: another could be reset."""
    init_store(tmp_path / "s").close()
    first, second = open_store(tmp_path / "s"), open_store(tmp_path / "s", writable=False)
    second.close()

    def other(say: object) -> None:
        with open_store(tmp_path / "s") as store:  # type: ignore[attr-defined]
            put(store, b"from outside")

    assert run(other).signal == 0
    assert get(first, b"from outside") == b"from outside"
    put(first, b"from inside")
    assert fsck(first).damaged == ()
    first.close()


def test_a_store_that_was_replaced_is_another_store(tmp_path: Path) -> None:
    init_store(tmp_path / "s").close()
    old = open_store(tmp_path / "s", writable=False)
    tmp_path.joinpath("s").rename(tmp_path / "gone")
    with init_store(tmp_path / "s") as new:  # type: ignore[attr-defined]
        put(new, b"new")
        assert old.info(digests(b"new").blake3) is None
    old.close()


# -- without the right to write


def reading(path: Path) -> list[str]:
    """Do everything that only reads, then try to write; return what came of it."""
    before = snapshot(path)
    with open_store(path, writable=False) as store:  # type: ignore[attr-defined]
        said = [get(store, b"kept").decode(), str(fsck(store).damaged), str(store.refs())]
    try:
        open_store(path).close()
    except ProvError as error:
        said.append(f"{error.code}: {error.message}")
    assert snapshot(path) == before
    return said


def test_a_store_of_somebody_else_can_be_read_but_not_written() -> None:
    with open_to_all() as place:
        with init_store(place / "s") as store:  # type: ignore[attr-defined]
            put(store, b"kept")
        for directory, names, files in os.walk(place / "s"):
            for name in (".", *names, *files):
                target = os.path.join(directory, name)
                os.chmod(target, 0o555 if os.path.isdir(target) else 0o444)
        said = as_nobody(lambda: reading(place / "s"))
        for directory, _, _ in os.walk(place / "s"):
            os.chmod(directory, 0o755)
    assert said[:3] == ["kept", "()", "[]"]
    assert said[3].startswith("read-only")
    assert "this user may not write" in said[3]


def test_a_store_that_may_not_be_read_says_so() -> None:
    with open_to_all() as place:
        init_store(place / "s").close()
        os.chmod(place / "s" / "data.mdb", 0)

        def work() -> str:
            try:
                open_store(place / "s", writable=False).close()
            except InputOutputError as error:
                return error.message
            return "opened"

        assert "this user may not" in as_nobody(work)


@contextmanager
def read_only_mount(source: Path, target: Path) -> Iterator[bool]:
    """Mount a directory read-only where this user may mount; else give False."""
    target.mkdir()
    mounted = subprocess.run(["mount", "--bind", source, target], check=False, capture_output=True)
    if mounted.returncode:
        yield False
        return
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", target], check=True)
        yield True
    finally:
        subprocess.run(["umount", "-l", target], check=True)


def test_a_store_on_a_read_only_mount(tmp_path: Path) -> None:
    with init_store(tmp_path / "s") as store:  # type: ignore[attr-defined]
        put(store, b"kept")
    with read_only_mount(tmp_path / "s", tmp_path / "m") as mounted:
        if not mounted:
            print(
                "NOT RUN on a read-only mount: this user may not mount; unwritable files were tested instead"
            )
            return
        said = reading(tmp_path / "m")
        with pytest.raises((ReadOnlyError, InputOutputError, StoreFullError)):
            init_store(tmp_path / "m" / "below")
    assert said[:3] == ["kept", "()", "[]"]
    assert said[3].startswith("read-only")
    assert "mount is read-only" in said[3]


def test_a_pack_is_opened_like_a_store(tmp_path: Path) -> None:
    pack = Path(__file__).parents[2] / "stores" / "packs" / "v1" / "hello.pack"
    tmp_path.joinpath("link").symlink_to(pack)
    with open_reader(tmp_path / "link") as reader:  # type: ignore[attr-defined]
        assert isinstance(reader, PackStore)
        assert not reader.writable
