"""Observations: what was seen on one host at one time; never part of a packet's identity."""

import msgspec


class Observation(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="format",
    tag="provstore/observation/v1",
):
    """Circumstances of one seal.

    Attributes:
        packet: hex id of the packet that was sealed.
        taken_ns: nanoseconds since 1970-01-01T00:00:00Z, by this host's clock, as text.
        tool: name and version of the program.
        variables: values that the spec's ``{name}`` variables had.
        sources: role to the absolute path (shown form) it was read from.
        excluded: shown paths that were left out, with the rule that did so.
        notes: anything else worth telling, in words.
    """

    packet: str
    taken_ns: str
    tool: str
    variables: dict[str, str] = {}
    sources: dict[str, str] = {}
    excluded: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
