"""Results of questions about the graph; a node is written ``kind:key``."""

from typing import Literal

from provstore.reports.base import Report, Verdict


class AskedStep(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One relation, with what states it.

    Attributes:
        source: node that it starts from.
        relation: what it says.
        target: node that it leads to.
        stated_by: hex id of the object or record that states it.
        location: JSON pointer, line, role or name in there; empty for the whole.
        reason: the statement's own words, if it has some.
    """

    source: str
    relation: str
    target: str
    stated_by: str
    location: str = ""
    reason: str = ""


class UseRow(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that refers to what was asked about.

    Attributes:
        distance: relations between the two.
        kind: kind of its node.
        node: its node.
        step: its relation to the next node on the way.
    """

    distance: int
    kind: str
    node: str
    step: AskedStep


class UsesReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who refers to a node, directly or through others.

    Attributes:
        node: what was asked about.
        rows: nearest first, then by kind and key; each node once.
        kinds: how many of each kind there are; null unless everything is on this page.
        next: for ``--after``, to go on behind this page; null at the end.
    """

    node: str
    rows: tuple[UseRow, ...]
    kinds: dict[str, int] | None
    next: str | None = None


class PinRow(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A packet that holds or pins a file.

    Attributes:
        packet: its id.
        names: refs that name it now.
        distance: relations between the two.
        via: what names the file itself: the packet, a tree of it, a lock, a manifest, an identity.
        step: relation from there to the file.
    """

    packet: str
    names: tuple[str, ...]
    distance: int
    via: str
    step: AskedStep


class PinsReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which packets fail when a file changes.

    Attributes:
        node: the file.
        rows: by name and id.
        next: for ``--after``.
    """

    node: str
    rows: tuple[PinRow, ...]
    next: str | None = None


class WhyReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A shortest way between two nodes.

    Attributes:
        a: the one.
        b: the other.
        connected: there is a way.
        direction: ``forward`` if every relation is walked as it is stated, ``backward`` if every one against
            that, ``mixed`` otherwise; null without a way.
        steps: in order; each as it is stated, so ``source`` is the later node where it is walked back.
    """

    a: str
    b: str
    connected: bool
    direction: Literal["forward", "backward", "mixed"] | None
    steps: tuple[AskedStep, ...]


class SharedRow(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that two packets both hold or pin.

    Attributes:
        kind: kind of its node.
        node: its node; a directory stands for all that is in it.
        here: role in the first, or what leads there.
        there: role in the second.
    """

    kind: str
    node: str
    here: str
    there: str


class SharedReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What two nodes have in common.

    Attributes:
        a: the one.
        b: the other.
        rows: by kind and key.
        kinds: how many of each kind there are, in all.
        next: for ``--after``.
    """

    a: str
    b: str
    rows: tuple[SharedRow, ...]
    kinds: dict[str, int]
    next: str | None = None


class StaleRow(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that rests on what no longer stands.

    Attributes:
        node: what rests on it; at distance 0 the fallen thing itself.
        on: what fell.
        why: in one word.
        reason: in the source's words.
        by: the relation that says so.
        distance: relations between ``node`` and ``on``.
        step: relation from ``node`` to the next thing on the way; null at distance 0.
        gates: gates of the verdict that did not pass, with their codes; for what failed.
    """

    node: str
    on: str
    why: Literal["superseded", "corrected", "withdrawn", "quarantined", "failed", "not-exact"]
    reason: str
    by: AskedStep | None
    distance: int
    step: AskedStep | None = None
    gates: tuple[str, ...] = ()


class StaleReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that rests on what no longer stands.

    Attributes:
        rows: by what fell, then nearest first.
        next: for ``--after``.
    """

    rows: tuple[StaleRow, ...]
    next: str | None = None


class SaidRow(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number, or a place in the space, as it is stated.

    Attributes:
        node: claim, measurement or other node that it is of.
        subject: what the document or packet is about.
        metric: name of the metric.
        value: source text.
        unit: its unit.
        convention: how it was counted; empty when neither a field nor a claim says so.
        state: the source's word.
        selectors: its place in the space.
        stated_by: hex id of the object, or of the packet.
        location: where in there.
        date: when, as the document says.
        told: why the convention is known, where another document tells it.
    """

    node: str
    subject: str
    metric: str
    value: str
    unit: str
    convention: str
    state: str
    selectors: dict[str, str | int | bool]
    stated_by: str
    location: str
    date: str = ""
    told: str = ""


class SaidReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers and places that fit a question.

    Attributes:
        rows: by the id of what states them, then in its order; places before numbers.
        next: for ``--after``.
    """

    rows: tuple[SaidRow, ...]
    next: str | None = None


class TimelineRow(SaidRow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number in time.

    Attributes:
        when: date of the document, of one in the packet, or UTC time at which a ref first named the packet;
            empty if nothing says one.
        best: it is the greatest of its day and greater than every earlier one of its metric, unit,
            convention, workload and selectors; null where that cannot be said.
    """

    when: str
    best: bool | None


class TimelineReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers over time, conventions apart.

    Attributes:
        name: what was asked about.
        rows: by metric, unit and convention, then by time; those without a date last.
        next: for ``--after``.
    """

    name: str
    rows: tuple[TimelineRow, ...]
    next: str | None = None


class RoleNeed(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What of one role is here and what is not.

    Attributes:
        role: the role.
        kind: what it is evidence of.
        custody: where the packet says that the bytes are.
        files: files it has, as far as known.
        held: those whose bytes are here.
        missing: those whose bytes are not.
        held_bytes: bytes that are here.
        fetch_bytes: bytes to fetch, of those files whose size is known.
        unsized: missing files whose size nobody stated.
        origins: where the bytes can be had again.
        places: paths at which missing bytes were seen when they were sealed.
        levels: replays that need the role.
    """

    role: str
    kind: str
    custody: str
    files: int
    held: int
    missing: int
    held_bytes: int
    fetch_bytes: int
    unsized: int
    origins: tuple[str, ...]
    places: tuple[str, ...]
    levels: tuple[str, ...]


class LevelNeed(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one kind of replay needs.

    Attributes:
        level: ``audit``, ``host-exact``, ``artifact-exact`` or ``source-equivalent``.
        outcome: ``PASS`` if every byte is here, ``INCOMPLETE`` otherwise; the bytes are not judged.
        missing: roles that lack bytes.
        absent: kinds of evidence that the packet names nothing of, though such a replay needs them.
        fetch_bytes: bytes to fetch, of files whose size is known.
        unsized: missing files whose size nobody stated.
        without_origin: roles that lack bytes and name no place to get them from.
    """

    level: str
    outcome: Verdict
    missing: tuple[str, ...]
    absent: tuple[str, ...]
    fetch_bytes: int
    unsized: int
    without_origin: tuple[str, ...]


class ClosureReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a packet needs, and what of it is not here.

    Attributes:
        packet: its id.
        levels: one for each kind of replay.
        roles: in the order of roles; with ``--missing`` only those that lack something.
        records: tree and facts records that are needed and cannot be read.
    """

    packet: str
    levels: tuple[LevelNeed, ...]
    roles: tuple[RoleNeed, ...]
    records: tuple[str, ...] = ()


class LoadedRow(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that was loaded.

    Attributes:
        name: module or library.
        path: where it was loaded from.
        place: file of the packet that saw it.
        location: where in there.
    """

    name: str
    path: str
    place: str
    location: str


class UnpinnedReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was loaded and is pinned by nothing.

    Attributes:
        packet: its id.
        outcome: ``PASS`` if something was seen to be loaded and all of it is pinned, ``FAIL`` if some is not,
            ``INCOMPLETE`` if nobody looked.
        loaded: how many files were seen.
        pinned: how many names the locks and native entries of the packet pin.
        observations: files of the packet that say what was loaded.
        absent: observations that the packet names and whose bytes are not here.
        rows: loaded and not pinned, by name and path.
    """

    packet: str
    outcome: Verdict
    loaded: int
    pinned: int
    observations: tuple[str, ...]
    absent: tuple[str, ...]
    rows: tuple[LoadedRow, ...]
