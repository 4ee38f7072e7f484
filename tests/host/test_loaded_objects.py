"""What real processes really loaded, and why: copies, replaced files, search paths, dlopen."""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from provstore.errors import ProcessError
from provstore.host.observing import capture_processes, observation_of
from provstore.host.processes import family
from provstore.reports.hosted import CaptureReport, Loaded, MappedFile

MAIN = 'int v(void);\n#include <unistd.h>\nint main(){write(1, "!", 1); sleep(60); return v();}\n'
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def run(*argv: str | Path, **environment: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [os.fspath(word) for word in argv],
            stdout=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", **environment},
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.read(1), "it ended before it was ready"
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def compiled(source: str, target: Path, *options: str) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    argv = ["cc", "-x", "c", "-", "-o", os.fspath(target), *options]
    subprocess.run(argv, input=source.encode(), check=True, capture_output=True)
    return target


def library(target: Path, value: int = 1, *options: str) -> Path:
    return compiled(f"int v(void){{return {value};}}\n", target, "-shared", "-fPIC", *options)


def loaded(report: CaptureReport, name: str, pid: int | None = None) -> list[Loaded]:
    process = next(one for one in report.processes if one.pid == (pid or report.pid))
    return [one for one in process.loaded if os.path.basename(one.path) == name]


def file_of(report: CaptureReport, path: Path) -> MappedFile:
    return next(file for file in report.files if file.path == os.fspath(path))


def codes(report: CaptureReport) -> set[str]:
    return {finding.code for finding in report.findings}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("tags", "wins", "through"), [("enable", "b", "LD_LIBRARY_PATH"), ("disable", "a", "RPATH")]
)
def test_two_copies_and_which_one_was_loaded(
    start: Start, tmp_path: Path, tags: str, wins: str, through: str
) -> None:
    """Edge case 68: with RUNPATH the environment wins, with RPATH the program does."""
    libraries = {name: library(tmp_path / name / "libv.so", number) for number, name in enumerate("ab")}
    link = (f"-L{tmp_path}/a", "-lv", f"-Wl,--{tags}-new-dtags,-rpath,{tmp_path}/a")
    program = compiled(MAIN, tmp_path / "m", *link)
    report = capture_processes(start(program, LD_LIBRARY_PATH=os.fspath(tmp_path / "b")).pid)
    (one,) = loaded(report, "libv.so")
    assert one.path == os.fspath(libraries[wins])
    assert (one.why, one.by, one.agrees) == ("needed", os.fspath(program), True)
    assert one.through.startswith(through)
    assert one.shadowed == (os.fspath(libraries["b" if wins == "a" else "a"]),)
    assert file_of(report, libraries[wins]).sha256 == sha256(libraries[wins])
    assert "shadowed" in codes(report)
    assert report.mapped_libraries["libv.so"] == (os.fspath(libraries[wins]),)


def test_runpath_is_not_inherited_and_rpath_is(start: Start, tmp_path: Path) -> None:
    inner = library(tmp_path / "deep/libinner.so")
    outer_source = "int v(void);\nint w(void){return v();}\n"
    options = ("-shared", "-fPIC", f"-L{tmp_path}/deep", "-linner")
    outer = compiled(outer_source, tmp_path / "deep/libouter.so", *options)
    main = MAIN.replace("v()", "w()").replace("v(void)", "w(void)")
    link = (f"-L{tmp_path}/deep", "-louter", f"-Wl,-rpath-link,{tmp_path}/deep")
    program = compiled(main, tmp_path / "m", *link, "-Wl,--disable-new-dtags,-rpath,$ORIGIN/deep")
    report = capture_processes(start(program).pid)
    (one,) = loaded(report, "libinner.so")
    assert (one.path, one.by) == (os.fspath(inner), os.fspath(outer))
    assert one.through == f"RPATH of {program}"
    assert one.agrees is True


def test_a_library_of_the_system_comes_from_the_cache(start: Start, tmp_path: Path) -> None:
    program = compiled(MAIN.replace("v()", "0"), tmp_path / "m")
    report = capture_processes(start(program).pid)
    (one,) = loaded(report, "libc.so.6")
    assert (one.why, one.through, one.agrees) == ("needed", "ld.so.cache", True)
    kinds = {item.why for item in report.processes[0].loaded}
    assert kinds == {"program", "interpreter", "needed"}


def test_a_search_path_that_was_changed_after_the_start_does_not_agree(start: Start, tmp_path: Path) -> None:
    """What is mapped is not what the loader would find now: the file was put there later."""
    old = library(tmp_path / "old/libv.so")
    program = compiled(MAIN, tmp_path / "m", f"-L{tmp_path}/old", "-lv")
    search = f"{tmp_path}/new:{tmp_path}/old"
    process = start(program, LD_LIBRARY_PATH=search)
    new = library(tmp_path / "new/libv.so", 2)
    report = capture_processes(process.pid)
    (one,) = loaded(report, "libv.so")
    assert (one.path, one.expected, one.agrees) == (os.fspath(old), os.fspath(new), False)
    assert "origin-differs" in codes(report)


def test_preloaded_and_opened_libraries(start: Start, tmp_path: Path) -> None:
    first, second = library(tmp_path / "libfirst.so"), library(tmp_path / "libsecond.so")
    text = f"import ctypes, time; ctypes.CDLL({os.fspath(second)!r}); print('!', flush=True); time.sleep(60)"
    report = capture_processes(start(sys.executable, "-c", text, LD_PRELOAD=os.fspath(first)).pid)
    assert [one.why for one in loaded(report, "libfirst.so")] == ["preload"]
    assert [one.why for one in loaded(report, "libsecond.so")] == ["dlopen"]


def test_what_an_opened_library_needs_was_not_opened_itself(start: Start, tmp_path: Path) -> None:
    inner = library(tmp_path / "libinner.so")
    options = ("-shared", "-fPIC", f"-L{tmp_path}", "-linner", "-Wl,--enable-new-dtags,-rpath,$ORIGIN")
    outer = compiled("int v(void);\nint w(void){return v();}\n", tmp_path / "libouter.so", *options)
    text = f"import ctypes, time; ctypes.CDLL({os.fspath(outer)!r}); print('!', flush=True); time.sleep(60)"
    report = capture_processes(start(sys.executable, "-c", text).pid)
    (one,) = loaded(report, "libinner.so")
    assert (one.path, one.why, one.by) == (os.fspath(inner), "needed", os.fspath(outer))
    assert one.through == f"RUNPATH of {outer}"


def test_two_copies_of_one_soname_in_one_process(start: Start, tmp_path: Path) -> None:
    soname = "-Wl,-soname,libsycl.so.8"
    copies = [
        library(tmp_path / name / "libsycl.so.8.0.0", number, soname) for number, name in enumerate("ab")
    ]
    calls = "; ".join(f"ctypes.CDLL({os.fspath(path)!r})" for path in copies)
    report = capture_processes(
        start(
            sys.executable, "-c", f"import ctypes, time; {calls}; print('!', flush=True); time.sleep(60)"
        ).pid
    )
    (finding,) = [one for one in report.findings if one.code == "soname-twice"]
    assert finding.path == "libsycl.so.8"
    assert all(os.fspath(path) in finding.message for path in copies)
    assert report.mapped_libraries["libsycl.so.8.0.0"] == tuple(sorted(map(os.fspath, copies)))


def test_a_deleted_program_never_gets_the_digest_of_what_replaced_it(start: Start, tmp_path: Path) -> None:
    """Edge case 70."""
    program = compiled(MAIN.replace("v()", "0"), tmp_path / "s")
    process = start(program)
    program.unlink()
    shutil.copy("/bin/true", program)
    report = capture_processes(process.pid)
    file = file_of(report, program)
    assert (file.state, file.sha256, file.build_id) == ("deleted", None, None)
    assert sha256(program) not in report.sha256.values()
    assert "deleted-mapping" in codes(report)
    assert report.mapped_libraries["s"] == (f"{program} (deleted)",)
    # Without the program the search order is not known, which is said of everything.
    (libc,) = loaded(report, "libc.so.6")
    assert (libc.why, libc.agrees) == ("unknown", None)
    assert "cannot be read" in libc.reason


def test_a_library_that_was_deleted_or_replaced_under_a_live_process(start: Start, tmp_path: Path) -> None:
    gone, moved = library(tmp_path / "libgone.so"), library(tmp_path / "libmoved.so")
    calls = "; ".join(f"ctypes.CDLL({os.fspath(path)!r})" for path in (gone, moved))
    process = start(
        sys.executable, "-c", f"import ctypes, time; {calls}; print('!', flush=True); time.sleep(60)"
    )
    gone.unlink()
    library(tmp_path / "other.so", 7)
    os.replace(tmp_path / "other.so", moved)
    report = capture_processes(process.pid)
    for path in (gone, moved):
        assert (file_of(report, path).state, file_of(report, path).sha256) == ("deleted", None)


def test_a_file_that_is_really_called_deleted(start: Start, tmp_path: Path) -> None:
    odd = library(tmp_path / "libodd.so (deleted)")
    text = f"import ctypes, time; ctypes.CDLL({os.fspath(odd)!r}); print('!', flush=True); time.sleep(60)"
    report = capture_processes(start(sys.executable, "-c", text).pid)
    assert (file_of(report, odd).state, file_of(report, odd).sha256) == ("same", sha256(odd))
    assert "deleted-mapping" not in codes(report)


def test_memory_that_is_no_file_is_classed_apart(start: Start, tmp_path: Path) -> None:
    data = tmp_path / "weights.bin"
    data.write_bytes(b"w" * 8192)
    text = (
        "import mmap, os, time\n"
        "fd = os.memfd_create('scratch'); os.ftruncate(fd, 4096); a = mmap.mmap(fd, 4096)\n"
        f"f = open({os.fspath(data)!r}, 'r+b'); b = mmap.mmap(f.fileno(), 8192)\n"
        "c = mmap.mmap(-1, 4096)\n"
        "print('!', flush=True); time.sleep(60)\n"
    )
    report = capture_processes(start(sys.executable, "-c", text).pid)
    other = {(one.kind, one.path): one for one in report.processes[0].other}
    assert other["memfd", "/memfd:scratch"].deleted
    assert other["data", os.fspath(data)].bytes == 8192
    assert not any(file.path == os.fspath(data) for file in report.files)
    assert codes(report) & {"deleted-mapping", "replaced-mapping"} == set()


def test_the_environment_is_allow_listed_and_secrets_are_withheld(start: Start) -> None:
    token = "hf_" + "a" * 30
    process = start(
        sys.executable, "-c", "import time; print('!', flush=True); time.sleep(60)", "--api-key", "hunter2",
        VLLM_USE_V1="1", VLLM_API_KEY="hunter2", HF_HUB_ETAG=token, PRIVATE_NOTE="hunter2",
        OMP_NUM_THREADS="1",
    )  # fmt: skip
    report = capture_processes(process.pid)
    (one,) = report.processes
    assert one.environment["VLLM_USE_V1"] == "1"
    assert one.withheld == ("HF_HUB_ETAG", "VLLM_API_KEY")
    assert "PRIVATE_NOTE" in one.not_allowed
    assert one.argv[-2:] == ("--api-key", "<withheld>")
    assert "hunter2" not in str(report)
    assert token not in str(report)
    assert capture_processes(process.pid, ("PRIVATE_*",)).processes[0].environment == {
        "PRIVATE_NOTE": "hunter2"
    }


def test_children_come_along_and_each_has_its_own_view(start: Start, tmp_path: Path) -> None:
    path = library(tmp_path / "libchild.so")
    child = f"import ctypes, time; ctypes.CDLL({os.fspath(path)!r}); print('!', flush=True); time.sleep(60)"
    text = (
        "import subprocess, sys, time\n"
        f"a = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE)\n"
        "a.stdout.read(1); print('!', flush=True); time.sleep(60)\n"
    )
    process = start(sys.executable, "-c", text)
    try:
        report = capture_processes(process.pid)
        first, second = report.processes
        assert (first.pid, second.parent) == (process.pid, process.pid)
        assert loaded(report, "libchild.so") == []
        assert [one.why for one in loaded(report, "libchild.so", second.pid)] == ["dlopen"]
        assert "libchild.so" not in observation_of(report, first.pid).mapped_libraries
        assert observation_of(report, second.pid).mapped_libraries["libchild.so"] == (os.fspath(path),)
    finally:
        for one in reversed(family(process.pid)[1:]):
            os.kill(one.pid, 9)


def test_a_build_id_is_a_label_beside_the_digest(start: Start, tmp_path: Path) -> None:
    """Edge case 72."""
    label = "-Wl,--build-id=0x1234"
    paths = [library(tmp_path / name, number, label) for number, name in enumerate(("x.so", "y.so"))]
    calls = "; ".join(f"ctypes.CDLL({os.fspath(path)!r})" for path in paths)
    report = capture_processes(
        start(
            sys.executable, "-c", f"import ctypes, time; {calls}; print('!', flush=True); time.sleep(60)"
        ).pid
    )
    first, second = (file_of(report, path) for path in paths)
    assert first.build_id == second.build_id == "1234"
    assert first.sha256 != second.sha256


def test_a_process_that_is_not_there() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with pytest.raises(ProcessError, match="is not there"):
        capture_processes(process.pid)


def test_a_process_that_has_ended_and_waits_for_its_parent() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    try:
        for _ in range(400):
            if Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                break
            time.sleep(0.02)
        with pytest.raises(ProcessError, match="has ended"):
            capture_processes(process.pid)
    finally:
        process.wait()


def test_a_child_that_has_ended_says_so(start: Start) -> None:
    text = (
        "import subprocess, sys, time\n"
        "a = subprocess.Popen([sys.executable, '-c', ''])\n"
        "while open(f'/proc/{a.pid}/stat').read().rpartition(')')[2].split()[0] != 'Z': time.sleep(0.01)\n"
        "print('!', flush=True); time.sleep(60)\n"
    )
    report = capture_processes(start(sys.executable, "-c", text).pid)
    child = report.processes[1]
    assert child.loaded == ()
    assert child.unknown
    assert {one.pid for one in report.findings if one.code == "not-read"} == {child.pid}
