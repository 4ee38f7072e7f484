"""Small inputs that lead deep into the readers of evidence, the policies and the verdicts."""

import functools
import json
from collections.abc import Mapping
from typing import Any, Final

import smallrun

_FULL: Final = smallrun.POLICY
_EVENTS: Final = 3


@functools.cache
def small_files() -> Mapping[str, bytes]:
    """Return the files of the small run; its rows hold only as many events as the window needs."""
    rows = [smallrun.row(index, tokens=100, step=0.01 * (index + 1)) for index in range(1)]
    files = {
        place: data
        for place, data in smallrun.files().items()
        if place not in ("run/bench.json", "docs/record", "oracle/tokens", "oracle/text")
    }
    run = smallrun.bench(rows)
    files["run/bench.json"] = json.dumps(run, separators=(",", ":")).encode()
    files["oracle/tokens"] = smallrun.dump(smallrun.oracle(rows, "prompt_sha256", "token_ids"))
    files["oracle/text"] = smallrun.dump(smallrun.oracle(rows, "sha256"))
    record = {"rate": run["summary"]["tok_s_1_100_after_ttft"]["median"], "exact": "1/1", "accepted": 37}
    files["docs/record"] = smallrun.dump(record)
    return files


def _kept(*names: str) -> str:
    """Return the gates of the full policy that fit a run of one row."""
    tables = _FULL.partition("[[gate]]")[2].split("[[gate]]")
    return "".join("[[gate]]" + table for table in tables if table.split('"')[1] in names)


_EXTRACTS: Final = _FULL.partition("[[gate]]")[0]

TINY_POLICY: Final = (
    _EXTRACTS
    + _kept(
        "tokens",
        "texts",
        "cache",
        "captured",
        "treatment",
        "environment",
        "loader",
        "unpinned",
        "native files",
        "packages",
        "idle before",
        "idle after",
        "summary",
        "cleanup",
        "status",
        "order",
        "legacy",
        "intervals",
        "floor",
    )
).encode()


def judged_files() -> list[bytes]:
    """Every file of the small run after the number of its place, whole and emptied."""
    files = small_files()
    found = [bytes([at]) + files[place] for at, place in enumerate(sorted(files))]
    return [*found, b"", *(bytes([at]) for at in range(len(files)))]


def policies() -> list[bytes]:
    tables = [part for part in _FULL.split("\n[[gate]]") if part]
    extracts, gates = tables[0], tables[1:]
    small = [f"{extracts}\n[[gate]]{gate}" for gate in gates]
    metric = (
        '\n[[metric]]\nname = "mine"\nunit = "tok/s"\nnumerator = "intervals"\n'
        'timing = "token_id_offsets_s"\n'
        "window = { first = 0, last = 9 }\n"
    )
    return [
        *(text.encode() for text in small),
        _FULL.encode(),
        (small[0] + metric).encode(),
        smallrun.HEAD.encode(),
        (smallrun.HEAD + "[[gate]]\nname = 1.5\n" + "x = " + "9" * 40 + "\n").encode(),
        (smallrun.HEAD + "[[extract]]\nname = 'a'\nkind = 'lines'\nrole = '*'\nmarker = 'm'\n"
         "pattern = '(?P<a>[a-z]+)(x|y)'\n").encode(),
    ]  # fmt: skip


def benches() -> list[bytes]:
    rows: list[dict[str, Any]] = [
        {
            "prompt_index": index,
            "prompt_id": f"p{index}",
            "prompt_class": "c",
            "prompt_sha256": "ab" * 32,
            "sha256": smallrun.digest("t"),
            "text": "t",
            "cached_tokens": 0,
            "completion_tokens": _EVENTS,
            "token_ids": list(range(_EVENTS)),
            "token_id_offsets_s": [0.5, 0.625, 1],
            "ttft_s": 0.5,
            "elapsed_s": 2.5,
            "usage": {"completion_tokens": _EVENTS, "prompt_tokens_details": {"cached_tokens": 0}},
        }
        for index in range(2)
    ]
    whole = {"rows": rows, "run_identity": {"prompt_count": 2}, "summary": {}, "prompt_sha256s": ["ab" * 32]}
    stamps = [round(0.1 * at, 3) for at in range(100)]
    long = {"rows": [{"token_id_offsets_s": stamps, "elapsed_s": 9}], "source_sha256": "ab" * 32}
    return [
        json.dumps(whole).encode(),
        json.dumps(long, separators=(",", ":")).encode(),
        b'{"rows":[{"cached_tokens":false},{"token_ids":[-1,1.0,"1",null]}],"rows":[]}',
        b'{"rows":[{"a":-0,"b":1e999,"c":NaN,"d":"\\ud800","e":9007199254740993}]}',
    ]


def documents() -> list[bytes]:
    return [
        *benches(),
        *locks(),
        b"[[[]]]",
        b'{"a/b":{"~":[{},[],[1,1.5],["x",1]]}}',
        b'"\\ud83d\\ude00"',
        b"-0",
    ]


def pairs() -> list[bytes]:
    return [
        b"schema=leg-v2\nretries=0\n" + b"ab" * 32 + b"  /opt/tool\n" + b"0" * 64 + b" *b\nlate=1\n",
        b"A=1\nA=2\nB=x=y\nLD_PRELOAD=\n\nC\nD=\xff\nE=\0\r\n",
        b"status=PASS\n",
        b"stop_status=0\nidle_status=-1\nx_status=00\n",
        b"pre elapsed_seconds=73 snapshots=13\npre a=1 a=2\npost x=\n",
        b"\xef\xbb\xbfa=1",
    ]


def snapshots() -> list[bytes]:
    foreign = [{"device_id": 0, "process_id": 9, "process_name": "other"}]
    texts = [
        smallrun.snapshot("2026-07-26T21:46:00+00:00"),
        smallrun.snapshot("2026-07-26T21:46:00+00:00", raw_rows=foreign),
        smallrun.snapshot("x", failure={"why": "no"}),
    ]
    copied = smallrun.snapshot("x")
    copied["idle"]["sanitized_payload"] = {"device_util_by_proc_list": foreign}
    return [json.dumps(text, separators=(",", ":")).encode() for text in (*texts, copied)]


def locks() -> list[bytes]:
    return [
        smallrun.files()["runtime/lock"],
        b'{"a":[{"module":"m","origin":"/x","sha256":"' + b"ab" * 32 + b'","commit":"main"}],'
        b'"source":{"s":{"commit":"abc1234"}},"python_packages":{"t":"1.0","note":"any word"}}',
        b'{"status":"PASS","engine_origin":"/a","mapped_libraries":{"l.so":["/b","c","/d (deleted)"],"m":1},'
        b'"module_origins":[],"package_versions":{"t":"1"}}',
    ]


def logs() -> list[bytes]:
    return [
        smallrun.log().encode(),
        b"rank TP1 07-26 21:47 captured graphs=1\r\nrank\nrank TPx\n\xff rank TP"
        b"99999999999999999 a b graphs=1\n",
        b'"POST /v1" 200\nPOST \xff" 1\na' + b"x" * 600,
    ]


def scrapes() -> list[bytes]:
    return [
        smallrun.prom(33, 360, 3, 40, [20, 12]).encode(),
        b'# HELP r_total x\n# TYPE r_total counter\nr_total{b="1",a="x\\"\\\\\\n}"} 2.0 1395066363000\n',
        b'a{x="1"} 1\na{x="1",} 2\nb NaN\n'
        b'b_bucket{le="+Inf"} +Inf\n# TYPE\nc{d="} 1\ne{f="g"} 1 } 2\nh 1_0\n',
    ]


def stamps() -> list[bytes]:
    return [b"0.0\n0.125\n1e-3\n", b"1\n\n2", b"-1\n"]


def freezes() -> list[bytes]:
    return [
        b"# pip\ntorch==2.12.0+xpu\na==1 ; python_version\n-e git+https://h/x\nb @ file:///x\n\xff\n",
        b"a==1",
    ]
