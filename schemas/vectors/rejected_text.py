"""Vectors of specs, digests, frames, checksum files and paths: good ones, and those that must be refused.

Codes are written by hand: they are the contract. ``make.py`` writes the files.
"""

import hashlib
import struct

from reference import Json
from rejected_records import ZERO


def specs() -> Json:
    """Packet specs that are refused before anything is read."""
    head = 'format = "provstore/packet-spec/v1"\nname = "n"\n'
    entry = '[[entry]]\nrole = "a"\nkind = "file"\npath = "x"\n'
    declared = '[[entry]]\nrole = "a"\nkind = "file"\nkeep = "declared"\n'
    table = [
        ("no TOML", "format = ", "bad-spec"),
        ("no format", 'name = "n"\n' + entry, "bad-spec"),
        ("a newer format", head.replace("v1", "v2") + entry, "newer-format"),
        ("no name", head.splitlines()[0] + "\n" + entry, "bad-spec"),
        ("no entry", head, "bad-spec"),
        ("a key that is none", head + entry + 'sha265 = "x"\n', "bad-spec"),
        ("a kind that is none", head + entry.replace('"file"', '"thing"'), "bad-spec"),
        ("a role twice", head + entry + entry, "bad-spec"),
        ("a role below another", head + entry + entry.replace('"a"', '"a/b"'), "bad-spec"),
        ("a role that climbs", head + entry.replace('"a"', '"../a"'), "unsafe-path"),
        ("an empty role", head + entry.replace('"a"', '""'), "unsafe-path"),
        ("a variable without a value", head + entry.replace('"x"', '"{models}/x"'), "bad-spec"),
        ("no path", head + entry.replace('path = "x"\n', ""), "bad-spec"),
        ("declared with a path", head + declared + 'path = "x"\n', "bad-spec"),
        ("declared, declaring nothing", head + declared, "bad-spec"),
        ("values of a sealed entry", head + entry + 'values = { "a" = 1 }\n', "bad-spec"),
        ("a size of a sealed entry", head + entry + "size_bytes = 1\n", "bad-spec"),
        ("a prefix without a manifest", head + entry + 'prefix = "p/"\n', "bad-spec"),
        ("a manifest and a digest", head + entry + f'manifest = "m"\nsha256 = "{ZERO}"\n', "bad-spec"),
        ("a short digest", head + entry + 'sha256 = "00"\n', "bad-digest"),
        (
            "a short commit",
            head + entry.replace('"file"', '"source-tree"') + 'commit = "4772f72"\n',
            "bad-spec",
        ),
        ("a commit of a file", head + entry + f'commit = "{"0" * 40}"\n', "bad-spec"),
        ("a revision that can move", head + entry + 'hub = "a/b"\nrevision = "main"\n', "bad-spec"),
        ("a revision of nothing", head + entry + f'revision = "{"0" * 40}"\n', "bad-spec"),
        ("two origins", head + entry + 'hub = "a/b"\nurl = "https://example.org"\n', "bad-spec"),
        (
            "a claim on no role",
            head + entry + '[[claim]]\nname = "c"\nvalue = "1"\nunit = "s"\nmetric = "m"\n'
            'convention = "v"\nevidence = ["z"]\n',
            "bad-spec",
        ),
        (
            "a claim with a float",
            head + entry + '[[claim]]\nname = "c"\nvalue = 1.5\nunit = "s"\nmetric = "m"\nconvention = "v"\n',
            "bad-spec",
        ),
        ("a malformed parent", head.rstrip() + '\nparents = ["x"]\n' + entry, "bad-digest"),
    ]
    return {
        "what": "packet specs that are refused, with no variable set",
        "cases": [{"name": name, "input": text, "code": code} for name, text, code in table],
    }


def digests() -> Json:
    """Text forms of digests."""
    good = ["blake3:" + ZERO, "sha256:" + "ab" * 32, "git:" + "01" * 20]
    bad = [
        "",
        ZERO,
        "blake3:" + "0" * 63,
        "blake3:" + "0" * 65,
        "blake3:" + "A" * 64,
        "BLAKE3:" + ZERO,
        "sha1:" + "0" * 40,
        "git:" + ZERO,
        "blake3: " + "0" * 63,
        "blake3:" + "\u0660" * 64,
        "sha256-" + ZERO,
    ]
    return {
        "what": "text forms of digests; every bad one is refused with bad-digest",
        "good": good,
        "cases": [{"name": text[:24] or "nothing", "input": text, "code": "bad-digest"} for text in bad],
    }


def frames() -> Json:
    """Stored frames, good and bad."""
    plain = b"a line of a log\n" * 64
    packed = bytes.fromhex("28b52ffd600003bd00008061206c696e65206f662061206c6f670a0100da4f3597")
    unsized = bytes.fromhex("28b52ffd0000bd00008061206c696e65206f662061206c6f670a0100da4f3597")

    def frame(codec: int, size: int, payload: bytes, stored: int | None = None) -> bytes:
        return struct.pack("<BII", codec, size, len(payload) if stored is None else stored) + payload

    good = [
        {"name": "stored as it is", "input_hex": frame(0, 1, b"x").hex(), "plain_hex": b"x".hex()},
        {"name": "nothing", "input_hex": frame(0, 0, b"").hex(), "plain_hex": ""},
        {"name": "Zstandard", "input_hex": frame(1, len(plain), packed).hex(), "plain_hex": plain.hex()},
    ]
    bad: list[tuple[str, bytes]] = [
        ("nothing", b""),
        ("a header cut short", frame(0, 1, b"x")[:8]),
        ("a payload cut short", frame(1, len(plain), packed)[:-1]),
        ("a byte too many", frame(0, 1, b"x") + b"y"),
        ("an unknown codec", frame(2, 1, b"x")),
        ("a stored size that differs", frame(0, 2, b"x", 1)),
        ("more stored than plain bytes", frame(1, 4, packed)),
        ("a bomb: 4 GiB stated", frame(1, 0xFFFFFFFF, packed)),
        ("a bomb: 16 MiB and a byte stated", frame(1, (16 << 20) + 1, packed)),
        ("a plain size that differs", frame(1, len(plain) + 1, packed)),
        ("no content size", frame(1, len(plain), unsized)),
        ("no Zstandard frame", frame(1, 64, b"y" * 32)),
        ("two frames for one", frame(1, len(plain), packed + packed)),
        ("an altered payload", frame(1, len(plain), packed[:-4] + b"\xff" * 4)),
    ]
    return {
        "what": "frames; every bad one is refused with bad-frame before memory for it is asked for",
        "good": good,
        "cases": [{"name": name, "input_hex": data.hex(), "code": "bad-frame"} for name, data in bad],
    }


def checksums() -> Json:
    """Checksum files, good and bad; all good names are those of a file that holds ``x`` alone."""
    sha = hashlib.sha256(b"x").hexdigest()
    good: list[tuple[str, bytes, list[bytes]]] = [
        ("plain", f"{sha}  a\n".encode(), [b"a"]),
        ("binary marker", f"{sha} *a\n".encode(), [b"a"]),
        ("no line feed at the end", f"{sha}  a".encode(), [b"a"]),
        ("tagged", f"SHA256 (a) = {sha}\n".encode(), [b"a"]),
        (
            "backslash, line feed and CR",
            "".join(f"\\{sha}  {n}\n" for n in ("back\\\\slash", "new\\nline", "car\\rret")).encode(),
            [b"back\\slash", b"new\nline", b"car\rret"],
        ),
        ("tagged and escaped", f"\\SHA256 (back\\\\slash) = {sha}\n".encode(), [b"back\\slash"]),
        ("a backslash in a line that is not escaped", f"{sha}  a\\nb\n".encode(), [b"a\\nb"]),
        (
            "blanks, a dash and parentheses",
            f"{sha}   lead\n{sha}  -rf\n{sha}  a) = b\n".encode(),
            [b" lead", b"-rf", b"a) = b"],
        ),
        ("a tagged name with the end mark in it", f"SHA256 (a) = b) = {sha}\n".encode(), [b"a) = b"]),
        ("not UTF-8", f"{sha}  ".encode() + b"\xff\n", [b"\xff"]),
        ("CR LF", f"{sha}  a\r\n{sha}  b\r\n".encode(), [b"a", b"b"]),
        ("a comment and an empty line", f"# made by hand\n\n{sha}  a\n".encode(), [b"a"]),
        ("upper-case hex", f"{sha.upper()}  a\n".encode(), [b"a"]),
    ]
    bad: list[tuple[str, bytes, str]] = [
        ("nothing", b"", "empty"),
        ("only a comment", b"# nothing\n", "empty"),
        ("a short digest", f"{sha[:-1]}  a\n".encode(), "bad-checksum-line"),
        ("no name", f"{sha}  \n".encode(), "bad-checksum-line"),
        ("one blank", f"{sha} a\n".encode(), "bad-checksum-line"),
        ("a tab", f"{sha}\ta\n".encode(), "bad-checksum-line"),
        ("an unknown tag", f"MD5 (a) = {sha}\n".encode(), "bad-checksum-line"),
        ("an unknown escape", f"\\{sha}  a\\tb\n".encode(), "bad-checksum-line"),
        ("a backslash at the end", f"\\{sha}  a\\\n".encode(), "bad-checksum-line"),
        ("a name twice", f"{sha}  a\n{sha}  a\n".encode(), "bad-checksum-line"),
        ("NUL", f"{sha}  a\0b\n".encode(), "bad-checksum-line"),
        ("a bad line after a good one", f"{sha}  a\nrubbish\n".encode(), "bad-checksum-line"),
        ("a byte order mark", b"\xef\xbb\xbf" + f"{sha}  a\n".encode(), "bad-checksum-line"),
        ("a blank before the digest", f" {sha}  a\n".encode(), "bad-checksum-line"),
    ]
    return {
        "what": "checksum files read with SHA-256 for lines without a tag; every good digest is that of x",
        "sha256": sha,
        "good": [
            {"name": n, "input_hex": d.hex(), "names_hex": [x.hex() for x in names]} for n, d, names in good
        ],
        "cases": [{"name": n, "input_hex": d.hex(), "code": code} for n, d, code in bad],
    }


def paths() -> Json:
    """Paths that can be stored, with the form in which people see them, and paths that cannot."""
    good = [
        (b"a", "a"),
        (b"weights/target", "weights/target"),
        (b"...", "..."),
        (b"..a/b..", "..a/b.."),
        (b" a ", " a "),
        (b"a\\b", "a\\x5cb"),
        (b"tab\there", "tab\\x09here"),
        (b"\xff", "\\xff"),
        ("\u00e9".encode(), "\u00e9"),
        (b"\x1b[31m", "\\x1b[31m"),
        ("a\u202eb".encode(), "a\\xe2\\x80\\xaeb"),
        (b"a\xc3", "a\\xc3"),
    ]
    bad = [b"", b"/", b"/a", b"a/", b"a//b", b".", b"..", b"a/../b", b"./a", b"a/.", b"a\0b", b"a" * 4097]
    return {
        "what": "paths as bytes, with the form that reports show; every bad one is refused with unsafe-path",
        "good": [{"path_hex": path.hex(), "shown": shown} for path, shown in good],
        "cases": [{"name": repr(path[:20]), "input_hex": path.hex(), "code": "unsafe-path"} for path in bad],
    }
