"""Vectors of records that must be refused, with the code of the refusal.

Codes are written by hand: they are the contract. ``make.py`` writes the files.
"""

from typing import Final

from reference import Json, canonical

ZERO: Final = "0" * 64
TREE: Final = '"format":"provstore/tree/v1"'
DIR: Final = f'"kind":"directory","tree":"{ZERO}"'
FILE: Final = f'"blake3":"{ZERO}","kind":"file"'
LINK: Final = '"kind":"symlink"'


def _tree(*entries: str) -> str:
    return '{"entries":[' + ",".join("{" + entry + "}" for entry in entries) + "]," + TREE + "}"


def _sized(number: str) -> str:
    return _tree(f'{FILE},"name":"a","sha256":"{ZERO}","size_bytes":{number}')


def _case(name: str, data: str | bytes, code: str) -> Json:
    raw = data.encode() if isinstance(data, str) else data
    try:
        return {"name": name, "input": raw.decode(), "code": code}
    except UnicodeDecodeError:
        return {"name": name, "input_hex": raw.hex(), "code": code}


def records() -> Json:
    """Bytes that are no tree record."""
    good = _tree(f'{DIR},"name":"a"').replace(
        f'{DIR},"name":"a"', f'"kind":"directory","name":"a","tree":"{ZERO}"'
    )
    plain = '{"entries":[],' + TREE + "}"
    link = '"kind":"symlink","name":"a","target":'
    table: list[tuple[str, str | bytes, str]] = [
        ("nothing", "", "not-canonical"),
        ("null", "null", "not-canonical"),
        ("a list", "[]", "not-canonical"),
        ("cut short", plain[:-1], "not-canonical"),
        ("a key twice", '{"entries":[],"entries":[],' + TREE + "}", "duplicate-key"),
        ("the format twice", "{" + TREE + ',"entries":[],' + TREE + "}", "duplicate-key"),
        (
            "a key twice, inside",
            _tree(f'"kind":"directory","kind":"directory","name":"a","tree":"{ZERO}"'),
            "duplicate-key",
        ),
        ("a float", _sized("1.0"), "float-in-record"),
        ("an exponent", _sized("1e2"), "float-in-record"),
        ("NaN", _sized("NaN"), "float-in-record"),
        ("Infinity", _sized("Infinity"), "float-in-record"),
        ("minus Infinity", _sized("-Infinity"), "float-in-record"),
        ("minus zero", _sized("-0"), "float-in-record"),
        ("2^53", _sized("9007199254740992"), "float-in-record"),
        ("2^64", _sized("18446744073709551616"), "float-in-record"),
        ("5,000 digits", _sized("9" * 5000), "float-in-record"),
        ("a leading zero", _sized("01"), "not-canonical"),
        ("a plus sign", _sized("+1"), "not-canonical"),
        ("a negative size", _sized("-1"), "not-canonical"),
        ("a number as text", _sized('"1"'), "not-canonical"),
        ("true for a number", _sized("true"), "not-canonical"),
        ("a trailing line feed", plain + "\n", "trailing-bytes"),
        ("a trailing blank", plain + " ", "trailing-bytes"),
        ("a leading blank", " " + plain, "trailing-bytes"),
        ("a second value", plain + "{}", "trailing-bytes"),
        ("a trailing NUL", plain + "\0", "trailing-bytes"),
        ("a blank inside", '{"entries": [],' + TREE + "}", "not-canonical"),
        ("a byte order mark", b"\xef\xbb\xbf" + plain.encode(), "not-canonical"),
        ("UTF-16", plain.encode("utf-16-le"), "not-canonical"),
        ("an unknown field", '{"entries":[],' + TREE + ',"mtime":1}', "unknown-field"),
        (
            "an unknown field, inside",
            _tree(f'"kind":"directory","mode":1,"name":"a","tree":"{ZERO}"'),
            "unknown-field",
        ),
        ("keys out of order", "{" + TREE + ',"entries":[]}', "not-canonical"),
        (
            "keys out of order, inside",
            _tree(f'"name":"a","kind":"directory","tree":"{ZERO}"'),
            "not-canonical",
        ),
        ("nested 70 deep", '{"entries":' + "[" * 70 + "]" * 70 + "," + TREE + "}", "too-deep"),
        ("nested 10,000 deep", "[" * 10000, "too-deep"),
        (
            "an escape that is not needed",
            _tree(f'"kind":"directory","name":"\\u0061","tree":"{ZERO}"'),
            "not-canonical",
        ),
        ("an escaped slash", _tree(link + '"\\/"'), "not-canonical"),
        ("upper-case hex in an escape", _tree(link + '"\\u001F"'), "not-canonical"),
        ("a long escape where a short one is", _tree(link + '"\\u000a"'), "not-canonical"),
        ("an escaped DEL", _tree(link + '"\\u007f"'), "not-canonical"),
        ("a raw control character", _tree(link + '"\x1f"'), "not-canonical"),
        ("a lone surrogate, escaped", _tree(link + '"\\ud800"'), "not-canonical"),
        ("a surrogate pair, escaped", _tree(link + '"\\ud83d\\ude00"'), "not-canonical"),
        (
            "a lone surrogate, raw",
            _tree(link + '"@"').encode().replace(b"@", b"\xed\xa0\x80"),
            "not-canonical",
        ),
        ("not UTF-8", good.encode().replace(b'"a"', b'"\xff"'), "not-canonical"),
        ("an overlong slash", good.encode().replace(b'"a"', b'"\xc0\xaf"'), "not-canonical"),
        (
            "a null where the field is left out",
            _tree(f'"blake3":null,"kind":"directory","name":"a","tree":"{ZERO}"'),
            "not-canonical",
        ),
        ("a newer format", '{"entries":[],"format":"provstore/tree/v2"}', "newer-format"),
        ("a format of somebody else", '{"entries":[],"format":"elsewhere/tree/v1"}', "newer-format"),
        ("no format", '{"entries":[]}', "not-canonical"),
        ("a number for the format", '{"entries":[],"format":1}', "not-canonical"),
        ("no entries", "{" + TREE + "}", "not-canonical"),
        ("an object for a list", '{"entries":{},' + TREE + "}", "not-canonical"),
        ("a kind that is none", _tree('"kind":"socket","name":"a"'), "not-canonical"),
        ("another record where a tree belongs", '{"entries":[],"format":"provstore/packet/v1"}', "malformed"),
    ]
    table += _names() + _fields() + _indexes()
    return {
        "what": "bytes that no reader of tree records accepts, with the code of the refusal",
        "cases": [_case(*row) for row in table],
    }


def _names() -> list[tuple[str, str | bytes, str]]:
    def directory(field: str) -> str:
        return f'"kind":"directory",{field},"tree":"{ZERO}"'

    unsafe = [
        ("name and name_hex", '"name":"a","name_hex":"ff"'),
        ("hex of a name that is UTF-8", '"name_hex":"61"'),
        ("hex of nothing", '"name_hex":""'),
        ("upper-case name_hex", '"name_hex":"FF"'),
        ("name_hex of odd length", '"name_hex":"fff"'),
        ("an empty name", '"name":""'),
        ("a dot", '"name":"."'),
        ("two dots", '"name":".."'),
        ("a slash in a name", '"name":"a/b"'),
        ("a slash in name_hex", '"name_hex":"ff2f61"'),
        ("NUL in a name", '"name":"a\\u0000"'),
        ("NUL in name_hex", '"name_hex":"ff00"'),
        ("4,097 bytes", '"name":"' + "a" * 4097 + '"'),
    ]
    rows: list[tuple[str, str | bytes, str]] = [
        (name, _tree(directory(field)), "unsafe-path") for name, field in unsafe
    ]
    rows.append(("neither name nor name_hex", _tree(f'"kind":"directory","tree":"{ZERO}"'), "unsafe-path"))
    pair = [f'"kind":"directory","name":"{name}","tree":"{ZERO}"' for name in ("a", "b", "\u00e9")]
    hexed = f'"kind":"directory","name_hex":"80","tree":"{ZERO}"'
    rows += [
        ("names out of order", _tree(pair[1], pair[0]), "not-canonical"),
        ("a name twice", _tree(pair[0], pair[0]), "not-canonical"),
        ("name_hex out of the order of bytes", _tree(pair[2], hexed), "not-canonical"),
    ]
    return rows


def _fields() -> list[tuple[str, str | bytes, str]]:
    fields = [
        ("a directory without a tree", '"kind":"directory","name":"a"'),
        ("a directory with a digest", f'"blake3":"{ZERO}","kind":"directory","name":"a","tree":"{ZERO}"'),
        ("a directory with a size", f'"kind":"directory","name":"a","size_bytes":0,"tree":"{ZERO}"'),
        ("a directory with a short tree", '"kind":"directory","name":"a","tree":"00"'),
        ("a directory with an upper-case tree", f'"kind":"directory","name":"a","tree":"{"A" * 64}"'),
        ("a link without a target", '"kind":"symlink","name":"a"'),
        ("a link with two targets", '"kind":"symlink","name":"a","target":"b","target_hex":"ff"'),
        ("a link with an empty target_hex", '"kind":"symlink","name":"a","target_hex":""'),
        ("a link with NUL in its target", '"kind":"symlink","name":"a","target":"b\\u0000"'),
        ("a link with NUL in its target_hex", '"kind":"symlink","name":"a","target_hex":"ff00"'),
        ("a link whose target_hex is UTF-8", '"kind":"symlink","name":"a","target_hex":"62"'),
        ("a link with an empty target", '"kind":"symlink","name":"a","target":""'),
        ("a link with a digest", f'"blake3":"{ZERO}","kind":"symlink","name":"a","target":"b"'),
        ("a file without a digest", '"kind":"file","name":"a"'),
        ("a file with a target", f'{FILE},"name":"a","sha256":"{ZERO}","size_bytes":0,"target":"b"'),
        ("a file with both digests and no size", f'{FILE},"name":"a","sha256":"{ZERO}"'),
        ("a file with a malformed digest", '"blake3":"xyz","kind":"file","name":"a"'),
        ("a file with an empty sha256", f'{FILE},"name":"a","sha256":"","size_bytes":0'),
        (
            "a file with an empty blake3",
            f'"blake3":"","kind":"file","name":"a","sha256":"{ZERO}","size_bytes":0',
        ),
        ("a file with an upper-case sha256", f'{FILE},"name":"a","sha256":"{"A" * 64}","size_bytes":0'),
        ("an unreadable file with a digest", f'{FILE},"name":"a","state":"unreadable"'),
        ("a state that is none", f'{FILE},"name":"a","state":"fine"'),
    ]
    return [(name, _tree(field), "not-canonical") for name, field in fields]


def _indexes() -> list[tuple[str, str | bytes, str]]:
    def index(level: int, *children: str) -> str:
        inner = ",".join("{" + child + "}" for child in children)
        return '{"children":[' + inner + f'],"format":"provstore/tree-index/v1","level":{level}' + "}"

    a, b = (f'"entries":1,"last":"{name}","tree":"{ZERO}"' for name in "ab")
    return [
        ("an index of level 0", index(0, a), "not-canonical"),
        ("an index without children", index(1), "not-canonical"),
        ("children out of order", index(1, b, a), "not-canonical"),
        ("a child without a last name", index(1, f'"entries":1,"tree":"{ZERO}"'), "unsafe-path"),
        ("a child with a malformed tree", index(1, '"entries":1,"last":"a","tree":"00"'), "bad-digest"),
    ]


def packets() -> Json:
    """Packets that are canonical JSON and still refused, and some that are not."""
    entry: Json = {"role": "a", "kind": "file", "files": 1, "blake3": ZERO, "sha256": ZERO, "size_bytes": 1}

    def packet(*entries: Json, **fields: object) -> str:
        return canonical({"format": "provstore/packet/v1", "entries": list(entries), **fields}).decode()

    manifest = {"kind": "manifest", "value": "x"}
    table: list[tuple[str, str | bytes, str]] = [
        ("no entries", packet(), "not-canonical"),
        ("roles out of order", packet({**entry, "role": "b"}, entry), "not-canonical"),
        ("a role twice", packet(entry, entry), "not-canonical"),
        ("a role below another", packet(entry, {**entry, "role": "a/b"}), "not-canonical"),
        (
            "a role below another, with one between",
            packet(entry, {**entry, "role": "a-b"}, {**entry, "role": "a/b"}),
            "not-canonical",
        ),
        ("a role that climbs", packet({**entry, "role": "../x"}), "unsafe-path"),
        ("a role with a dot", packet({**entry, "role": "a/./x"}), "unsafe-path"),
        ("an absolute role", packet({**entry, "role": "/x"}), "unsafe-path"),
        ("a role that ends in a slash", packet({**entry, "role": "x/"}), "unsafe-path"),
        ("an empty part", packet({**entry, "role": "x//y"}), "unsafe-path"),
        ("an escape sequence in a role", packet({**entry, "role": "x\x1b[2J"}), "unsafe-path"),
        ("a direction character in a role", packet({**entry, "role": "x\u202ey"}), "unsafe-path"),
        ("an empty role beside others", packet({**entry, "role": ""}, entry), "unsafe-path"),
        ("a directory and a file", packet({**entry, "tree": ZERO}), "not-canonical"),
        ("a negative number of files", packet({**entry, "files": -1}), "not-canonical"),
        ("a negative size", packet({**entry, "size_bytes": -1}), "not-canonical"),
        ("a malformed digest", packet({**entry, "blake3": "x"}), "bad-digest"),
        ("an upper-case digest", packet({**entry, "sha256": "A" * 64}), "bad-digest"),
        ("a malformed facts id", packet({**entry, "facts": ["x"]}), "bad-digest"),
        ("a malformed manifest pin", packet({**entry, "pins": [manifest]}), "bad-digest"),
        ("a malformed parent", packet(entry, parents=["x"]), "bad-digest"),
        ("custody stated though it is the default", packet({**entry, "custody": "held"}), "not-canonical"),
        ("claims stated though there are none", packet(entry, claims=[]), "not-canonical"),
        ("a custody that is none", packet({**entry, "custody": "lost"}), "not-canonical"),
        ("a kind that is none", packet({**entry, "kind": "thing"}), "not-canonical"),
        ("an unknown field", packet({**entry, "mtime": 1}), "unknown-field"),
        ("no number of files", packet({k: v for k, v in entry.items() if k != "files"}), "not-canonical"),
        ("a float for a value", packet(entry, claims=[{"name": "x", "value": 1.5}]), "float-in-record"),
        ("a newer format", packet(entry).replace("packet/v1", "packet/v2"), "newer-format"),
    ]
    return {"what": "bytes that no reader of packets accepts", "cases": [_case(*row) for row in table]}
