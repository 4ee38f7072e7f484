"""Canonical bytes of tree entries, written directly: a seal of many files cannot make a struct of each.

Each function gives exactly what encoding the :class:`~provstore.records.tree.TreeEntry` would give.
"""

import re
import stat
from binascii import hexlify
from typing import Final

from provstore import canon
from provstore.files import hashing
from provstore.files.hashing import Hashed
from provstore.files.root import ROW
from provstore.ids import RawId
from provstore.paths import name_fields
from provstore.records.tree import TreeEntry

_STATES: Final = {hashing.LFS_POINTER: b',"state":"pointer"', hashing.PREFIX: b',"state":"prefix"'}


_MODE: Final = ROW.size - 4
"""Place of the lowest byte of the mode in a row."""

_PLAIN_NAME: Final = re.compile(rb"[ !#-\[\]-~]+")


def _encoded_name(name: bytes) -> bytes:
    """Return the ``name`` or ``name_hex`` member of a tree entry's canonical form."""
    if _PLAIN_NAME.fullmatch(name):
        return b'"name":"%s"' % name
    text, text_hex = name_fields(name)
    return (
        b'"name":%s' % canon.encode(text)
        if text is not None
        else b'"name_hex":"%s"' % (text_hex or "").encode()
    )


def encoded_file(name: bytes, done: Hashed) -> bytes:
    """Return the canonical bytes of the tree entry of a file that was read, with the mode it had then.

    The same as encoding the :class:`~provstore.records.tree.TreeEntry`, which a seal of many files has no
    time to make for each.
    """
    blake3, sha256, size_bytes, _, flags, row, _, _ = done
    state = b""
    if flags:
        state = next((text for flag, text in _STATES.items() if flags & flag), b"")
    return b'{"blake3":"%b","kind":"%b",%b,"sha256":"%b","size_bytes":%d%b}' % (
        hexlify(blake3),
        b"executable" if row[_MODE] & stat.S_IXUSR else b"file",
        b'"name":"%b"' % name if _PLAIN_NAME.fullmatch(name) else _encoded_name(name),
        hexlify(sha256),
        size_bytes,
        state,
    )


_WHOLE_FILE: Final = re.compile(
    rb'\{"blake3":"([0-9a-f]{64})","kind":"(?:file|executable)","name":"([ !#-.0-\[\]-~]{1,255})"'
    rb',"sha256":"[0-9a-f]{64}","size_bytes":(0|[1-9][0-9]{0,14})\}'
)
"""The canonical entry of a file with both digests, no state and a plain name; groups: BLAKE3, name, size.

In a leaf it matches entries alone: inside a text a quotation mark is escaped, and after the end of one comes
no letter.
"""


def whole_files(leaf: bytes) -> dict[bytes, bytes]:
    """Return the canonical bytes of the entries of a leaf that are whole files with plain names, by name.

    Others, with names to escape or a state, are left out: decode the leaf for those.

    Args:
        leaf: canonical bytes of a leaf, checked against its id.
    """
    return {found[2]: found[0] for found in _WHOLE_FILE.finditer(leaf)}


def encoded_directory(name: bytes, tree: RawId) -> bytes:
    """Return the canonical bytes of the tree entry of a directory."""
    return b'{"kind":"directory",%s,"tree":"%s"}' % (_encoded_name(name), tree.hex().encode())


def encoded_hole(name: bytes) -> bytes:
    """Return the canonical bytes of the tree entry of something that could not be read."""
    return b'{"kind":"file",%s,"state":"unreadable"}' % _encoded_name(name)


def encoded_symlink(name: bytes, target: bytes) -> bytes:
    """Return the canonical bytes of the tree entry of a symlink."""
    text, text_hex = name_fields(name)
    target_text, target_hex = name_fields(target)
    entry = TreeEntry(kind="symlink", name=text, name_hex=text_hex, target=target_text, target_hex=target_hex)
    return canon.encode(entry, bounded=True)
