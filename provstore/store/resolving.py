"""What people call things: refs, full digests, hex prefixes."""

from provstore import ids
from provstore.errors import AmbiguousError, NotFoundError
from provstore.ids import RawId
from provstore.paths import show
from provstore.store.protocol import Reader


def resolve(reader: Reader, name: str) -> RawId:
    """Return the id that a person means: a ref, a full digest, or 8 or more hex digits of an id.

    Raises:
        AmbiguousError: the digits fit several ids; all are listed.
        DigestError: it looks like a digest but is malformed.
        NotFoundError: nothing fits.
    """
    found = reader.ref(name) if not ids.is_prefix(name) and ":" not in name else None
    if found is not None:
        return found
    if name.startswith(("blake3:", "sha256:", "git:")):
        digest = ids.parse_digest(name)
        matches = reader.match(digest.algorithm, digest.raw.hex())
    elif ids.is_prefix(name):
        matches = reader.match("blake3", name)
        if not matches:
            matches = reader.match("sha256", name)
    elif ":" in name:
        ids.parse_digest(name)
        matches = []
    else:
        raise NotFoundError(show(name), f"no ref of this name in {reader.where}, and no id prefix")
    if not matches:
        raise NotFoundError(show(name), f"no id in {reader.where} begins like this")
    if len(matches) > 1:
        raise AmbiguousError(name, [match.hex() for match in matches])
    return matches[0]


def resolve_packet(reader: Reader, name: str) -> RawId:
    """Return the id of the packet that a person means; a prefix need only be unique among packets.

    Raises:
        AmbiguousError, NotFoundError: see :func:`resolve`.
    """
    try:
        return resolve(reader, name)
    except AmbiguousError as error:
        packets = [raw for raw in map(bytes.fromhex, error.matches) if _is_packet(reader.record(raw))]
        if len(packets) == 1:
            return packets[0]
        raise


def _is_packet(data: bytes | None) -> bool:
    return data is not None and b'"format":"provstore/packet/' in data
