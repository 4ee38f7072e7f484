"""How a store behaves on one machine: sizes, limits and waiting, as data."""

from typing import Annotated

import msgspec

Positive = Annotated[int, msgspec.Meta(ge=1)]


class StoreProfile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one opening of a store; none of them changes what is stored under which id.

    Attributes:
        map_size_bytes: address space to reserve for the index at first; the file stays as small as its
            content. Less is taken where the process may not have as much.
        max_map_size_bytes: the index never grows over this.
        max_readers: reader slots of a new lock file.
        zstd_level: level for contents, 1 to 19.
        inline_limit_bytes: objects up to this size go into frames inside the index, larger ones beside it.
        wait_s: seconds to wait for another writer.
        sync: wait for the disk at a commit; False only for stores that may be lost.

    Example:
        >>> StoreProfile().inline_limit_bytes == 4 * 1024 * 1024
        True
    """

    map_size_bytes: Positive = 1 << 40
    max_map_size_bytes: Positive = 1 << 40
    max_readers: Positive = 1024
    zstd_level: Annotated[int, msgspec.Meta(ge=1, le=19)] = 3
    inline_limit_bytes: Annotated[int, msgspec.Meta(ge=0, le=8 << 20)] = 4 << 20
    wait_s: Annotated[float, msgspec.Meta(ge=0)] = 60.0
    sync: bool = True


DEFAULT = StoreProfile()
