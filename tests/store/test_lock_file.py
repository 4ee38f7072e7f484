"""The lock file of an index has its room on disk before LMDB maps it."""

import os
import resource
import signal
from pathlib import Path

import pytest

from provstore.store import graph_index
from provstore.store.opening import init_store
from provstore.store.profile import DEFAULT
from provstore.store.system import lay


def test_lock_files_have_their_room_on_disk_before_they_are_mapped(tmp_path: Path) -> None:
    """A hole that is mapped and written on a full disk ends the process by a signal."""
    where = tmp_path / "s"
    store = init_store(where)
    store.close()
    graph_index.make_graph(os.fspath(where), b"stamp").close()
    for path in (where / "lock.mdb", where / "graph" / "lock.mdb"):
        found = path.stat()
        assert found.st_size == 128 + 64 * DEFAULT.max_readers
        assert found.st_blocks * 512 >= found.st_size
    assert sorted(os.listdir(where / "graph")) == ["data.mdb", "lock.mdb"]


def test_a_lock_file_that_is_there_is_left_alone_and_a_full_disk_leaves_none(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "lock.mdb")
    lay(path, 64)
    assert (tmp_path / "lock.mdb").read_bytes() == bytes(64)
    (tmp_path / "lock.mdb").write_bytes(b"in use")
    lay(path, 64)
    assert (tmp_path / "lock.mdb").read_bytes() == b"in use"
    (tmp_path / "lock.mdb").unlink()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (16, limit[1]))
        with pytest.raises(OSError, match="too large"):
            lay(path, 64)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    assert os.listdir(tmp_path) == []
