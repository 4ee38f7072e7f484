"""Safetensors files: a summary of the header, with every check that the format asks for; no tensor is read.

Layout: 8 bytes, little-endian, the length of the header; the header, a JSON object that begins with ``{`` and
may be padded with blanks; then the data. Each tensor states ``dtype``, ``shape`` and ``data_offsets``, which
count from the end of the header. ``__metadata__`` maps text to text.

Source: the format section of the safetensors README, and release 0.8 of its own reader for what it refuses
and for the data types. Here a name that is stated twice and a field that the format does not know are refused
as well; that reader takes the last of the one and passes over the other.
"""

import io
import re
from collections import Counter
from collections.abc import Collection
from typing import BinaryIO, Final

import msgspec

from provstore.canon import MAX_INTEGER, parse
from provstore.errors import EmptyError, InspectError, MalformedError
from provstore.ids import digests
from provstore.paths import check_path, show
from provstore.records.facts import Fact, Integer

EXTRACTOR: Final = "safetensors"
VERSION: Final = 1

MAX_HEADER_BYTES: Final = 100_000_000
"""Largest header, the limit of the format."""

MAX_READ_BYTES: Final = 32 << 20
"""Largest header that is read here, some 300,000 tensors; it takes about ten times its size in memory."""

MAX_INDEX_BYTES: Final = 24 << 20
"""Largest index of shards, some 230,000 tensors."""

MAX_METADATA_BYTES: Final = 65_536
"""Longest metadata text that becomes a fact; of a longer one the digest does."""

DTYPE_BITS: Final = {
    **dict.fromkeys(("F4",), 4),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("BOOL", "U8", "I8"), 8),
    **dict.fromkeys(("F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 16),
    **dict.fromkeys(("I32", "U32", "F32"), 32),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), 64),
}
"""Bits of one element of each data type that safetensors 0.8 knows."""

_LENGTH_BYTES: Final = 8
_METADATA: Final = "__metadata__"
_KEY: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"(?:[ \t\r\n]*+(:))?', re.DOTALL)
_SERIES: Final = re.compile(r"(.+)-([0-9]{5})-of-([0-9]{5})(\.[^/]+)", re.DOTALL)


class _Tensor(msgspec.Struct, forbid_unknown_fields=True):
    dtype: str
    shape: list[Integer]
    data_offsets: tuple[Integer, Integer]


def inspect_safetensors(stream: BinaryIO, path: str, size_bytes: int | None = None) -> tuple[Fact, ...]:
    """Return what the header of a safetensors file states, after checking it against the file's size.

    Facts: ``safetensors.tensors`` (how many), ``safetensors.data_bytes``, ``safetensors.dtypes`` (``BF16:12``
    is twelve tensors of BF16; sorted), ``safetensors.parameters`` (elements as stored: a packed weight counts
    its words, not what is packed into them), and for each metadata key ``safetensors.metadata.<key>``, the
    key in the form of :func:`provstore.paths.show`. A metadata text longer than :data:`MAX_METADATA_BYTES`
    gives ``safetensors.metadata_digest.<key>`` instead, ``sha256:…`` of its UTF-8 bytes.

    A data type that is not in :data:`DTYPE_BITS` is listed as it is stated; only the length of its tensors
    cannot be checked.

    Args:
        stream: the file, seekable; its first byte is at position 0. Only the header is read.
        path: shown path of the file below its entry, for the facts and for errors.
        size_bytes: length of the file where it is known, as sealed; else the stream is asked.

    Raises:
        InspectError: no safetensors header, one that is no strict JSON, or tensors that overlap, leave holes,
            have another size than shape and type give, or do not end where the file ends.
        OSError: the stream cannot be read.

    Example:
        >>> header = b'{"w":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]}}'
        >>> data = len(header).to_bytes(8, "little") + header + bytes(12)
        >>> [fact.value for fact in inspect_safetensors(io.BytesIO(data), "w.safetensors")]
        [1, 12, ('F16:1',), 6]
    """
    where = path or "safetensors file"
    header, data_bytes = _read_header(stream, size_bytes, where)
    tensors, metadata = _parse_header(header, where)
    _check_layout(tensors, data_bytes, where)
    parameters = 0
    for name, tensor in tensors.items():
        parameters += _elements(name, tensor, where)
        if parameters > MAX_INTEGER:
            raise InspectError(where, f"more than {MAX_INTEGER} elements")
    dtypes = Counter(show(tensor.dtype) for tensor in tensors.values())
    facts = [
        Fact(key="safetensors.tensors", value=len(tensors), path=path),
        Fact(key="safetensors.data_bytes", value=data_bytes, path=path),
        Fact(key="safetensors.dtypes", value=tuple(f"{k}:{n}" for k, n in sorted(dtypes.items())), path=path),
        Fact(key="safetensors.parameters", value=parameters, path=path),
    ]
    for key in sorted(metadata):
        value, kind = metadata[key], "metadata"
        raw = value.encode()
        if len(raw) > MAX_METADATA_BYTES:
            value, kind = f"sha256:{digests(raw).sha256.hex()}", "metadata_digest"
        pointer = f"/{_METADATA}/" + key.replace("~", "~0").replace("/", "~1")
        facts.append(
            Fact(key=f"safetensors.{kind}.{show(key)}", value=value, path=path, location=show(pointer))
        )
    return tuple(facts)


def _read_header(stream: BinaryIO, size_bytes: int | None, where: str) -> tuple[bytes, int]:
    """Return the header and how many bytes follow it."""
    size = stream.seek(0, io.SEEK_END) if size_bytes is None else size_bytes
    stream.seek(0)
    start = stream.read(_LENGTH_BYTES)
    if len(start) < _LENGTH_BYTES:
        raise InspectError(where, f"{size} bytes are too few for the length of a safetensors header")
    length = int.from_bytes(start, "little")
    if length > MAX_HEADER_BYTES:
        raise InspectError(
            where, f"no safetensors file: a header of {length} bytes, at most {MAX_HEADER_BYTES}"
        )
    if length > MAX_READ_BYTES:
        raise InspectError(
            where, f"a header of {length} bytes is more than the {MAX_READ_BYTES} that are read here"
        )
    data_bytes = size - _LENGTH_BYTES - length
    if data_bytes < 0:
        raise InspectError(
            where, f"the header ends at byte {_LENGTH_BYTES + length} of a file of {size} bytes"
        )
    header = stream.read(length)
    if len(header) != length:
        raise InspectError(where, f"the header of {length} bytes could not be read whole")
    if not header.startswith(b"{"):
        raise InspectError(where, "no safetensors file: the header does not begin with {")
    return header, data_bytes


def _parse_header(header: bytes, where: str) -> tuple[dict[str, _Tensor], dict[str, str]]:
    """Parse by shape, which keeps a crafted header from growing; more keys than that are repeated ones."""
    tensors: dict[str, _Tensor] = {}
    metadata: dict[str, str] = {}
    name = ""
    try:
        stated = msgspec.json.decode(header, type=dict[str, msgspec.Raw])
        for name, raw in stated.items():
            if name == _METADATA:
                metadata = msgspec.json.decode(raw, type=dict[str, str] | None) or {}
            else:
                tensors[name] = msgspec.json.decode(raw, type=_Tensor)
        keys = len(stated) + len(tensors) * len(_Tensor.__struct_fields__) + len(metadata)
        if sum(1 for key in _KEY.finditer(header) if key[1]) != keys:
            parse(header, where, limit_bytes=MAX_READ_BYTES)
    except MalformedError as error:
        raise InspectError(where, f"header: {error.reason}") from error
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        at = f" at {_shown(name)}" if name else ""
        raise InspectError(where, f"header{at}: {error}") from error
    return tensors, metadata


def _check_layout(tensors: dict[str, _Tensor], data_bytes: int, where: str) -> None:
    """Check that the tensors cover the data, without a hole and without overlap."""
    place = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: item[1].data_offsets):
        begin, end = tensor.data_offsets
        if end < begin:
            raise InspectError(where, f"tensor {_shown(name)} ends at {end}, before its begin at {begin}")
        if begin != place:
            what = "overlaps the one before it" if begin < place else "leaves a hole"
            raise InspectError(
                where, f"tensor {_shown(name)} begins at {begin} and {what}, which ends at {place}"
            )
        place = end
    if place != data_bytes:
        raise InspectError(where, f"the tensors end at byte {place} of {data_bytes} bytes of data")


def _elements(name: str, tensor: _Tensor, where: str) -> int:
    """Return how many elements a tensor has, after checking them against its length."""
    count = 0 if 0 in tensor.shape else 1
    for size in tensor.shape:
        if size < 0:
            raise InspectError(where, f"tensor {_shown(name)} has the negative size {size}")
        count *= size
        if count > MAX_INTEGER:
            raise InspectError(where, f"tensor {_shown(name)} has more than {MAX_INTEGER} elements")
    bits = DTYPE_BITS.get(tensor.dtype)
    length = tensor.data_offsets[1] - tensor.data_offsets[0]
    if bits is not None and count * bits != length * 8:
        need = f"{count} elements of {tensor.dtype} need {count * bits} bits"
        raise InspectError(where, f"tensor {_shown(name)} has {length} bytes, but {need}")
    return count


def _shown(name: str) -> str:
    return show(name.encode(errors="surrogatepass")[:200])


def index_shards(data: bytes, where: str) -> tuple[str, ...]:
    """Return the file names that an index (``model.safetensors.index.json``) says hold a model's weights.

    Args:
        data: the whole index, a JSON object whose ``weight_map`` maps tensor names to file names.
        where: what to name in an error.

    Returns:
        Each name once, sorted; relative to the directory of the index.

    Raises:
        InspectError: no strict JSON, no ``weight_map``, or a value in it that is no text.
        UnsafePathError: a name that leaves the directory.
        EmptyError: the map is empty.

    Example:
        >>> index_shards(b'{"weight_map": {"a": "m-2.safetensors", "b": "m-1.safetensors"}}', "index")
        ('m-1.safetensors', 'm-2.safetensors')
    """
    try:
        index = parse(data, where, floats=True, limit_bytes=MAX_INDEX_BYTES)
    except MalformedError as error:
        raise InspectError(where, error.reason) from error
    weights = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weights, dict):
        raise InspectError(where, "no weight_map, or one that is no object")
    if not weights:
        raise EmptyError(f"{where}: weight_map")
    shards: set[str] = set()
    for tensor, shard in weights.items():
        if not isinstance(shard, str):
            raise InspectError(where, f"weight_map gives no file name for {_shown(tensor)}")
        shards.add(shard)
    try:
        for shard in shards:
            check_path(shard.encode(), where)
    except UnicodeEncodeError as error:
        raise InspectError(where, "weight_map names a file that is not valid Unicode") from error
    return tuple(sorted(shards))


def missing_shards(names: set[str], shards: Collection[str] = ()) -> tuple[str, ...]:
    """Return the files that a model should have and has not.

    Missing is what the index lists and ``names`` lacks. Files named ``…-NNNNN-of-MMMMM.…`` that no index
    lists are held to their own numbers: each one from 1 to M has to be there. Where more than two in a row
    are not, one text ``first to last`` stands for all of them.

    Args:
        names: the paths that are there, relative to the directory of the index.
        shards: what :func:`index_shards` found; nothing where there is no index.

    Example:
        >>> missing_shards({"a", "m-00001-of-00003.gguf", "m-00003-of-00003.gguf"}, ["a", "b"])
        ('b', 'm-00002-of-00003.gguf')
    """
    missing = set(shards) - names
    series: dict[tuple[str, str, str], list[int]] = {}
    for name in names.difference(shards):
        if match := _SERIES.fullmatch(name):
            stem, number, total, suffix = match.groups()
            series.setdefault((stem, total, suffix), []).append(int(number))
    for (stem, total, suffix), numbers in series.items():
        last = 0
        for number in [*sorted(numbers), int(total) + 1]:
            gap = [f"{stem}-{n:05}-of-{total}{suffix}" for n in (last + 1, number - 1)]
            if number - last > 3:
                missing.add(f"{gap[0]} to {gap[1]}")
            elif number - last > 1:
                missing.update(gap)
            last = number
    return tuple(sorted(missing))
