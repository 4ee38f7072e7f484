"""Packets verified, policies judged by, verdicts kept; only commands that judge import it."""

from collections.abc import Sequence
from pathlib import Path

from provstore.cli.console import Console
from provstore.cli.meter import ProgressMeter
from provstore.cli.opening import packet_of, readable_store
from provstore.errors import NotFoundError, ProvError
from provstore.files.hashing import read_file
from provstore.ids import RawId
from provstore.reports import Check, VerifyReport
from provstore.store.opening import open_store
from provstore.store.protocol import Reader
from provstore.verbs import seldom
from provstore.verbs.judging import (
    Judging,
    judge,
    judge_own,
    judged,
    keep,
    own_policies,
    policy_of,
    set_aside,
    unjudged,
)
from provstore.verbs.verifying import verify


def policies_of(reader: Reader, packet: RawId, policy: str | None) -> list[tuple[str, bytes]]:
    """Return name and bytes of the policies to judge by: the one that is named, else the packet's own."""
    if policy is None:
        return own_policies(reader, packet)
    path = Path(policy)
    if path.is_file():
        return [(policy, read_file(path, seldom.MAX_POLICY_BYTES))]
    try:
        return [(policy, policy_of(reader, packet, policy))]
    except NotFoundError as error:
        raise NotFoundError(policy, "no file of this name, and no member of the packet") from error


def verify_packet(
    out: Console,
    name: str,
    *,
    against: str | None,
    only: str | None,
    at: Sequence[str],
    policy: str | None,
) -> VerifyReport:
    """Verify a packet, or a directory against it; where all of it was looked at, judge it as well."""
    judgings: list[Judging] = []
    unusable: tuple[Check, ...] = ()
    with ProgressMeter("verify", quiet=out.quiet) as meter, packet_of(out, name) as (reader, packet, _):
        if against is not None:
            from provstore.verbs.comparing import verify_against

            report = verify_against(reader, packet, against, only=only, progress=meter.reporter)
        else:
            report = verify(reader, packet, only=only, at=tuple(at), progress=meter.reporter)
        if only is not None or against is not None:
            report = set_aside(reader, packet, report)
        else:
            judgings, unusable = judge_by(reader, packet, policy, at)
            report = report if judgings or unusable else unjudged(reader, packet, report)
    ids = keep_verdicts(out, packet, judgings) if judgings else []
    return judged(report, judgings, ids, unusable) if judgings or unusable else report


def judge_by(
    reader: Reader, packet: RawId, policy: str | None, at: Sequence[str]
) -> tuple[list[Judging], tuple[Check, ...]]:
    """Judge by the policy that is named, else by the packet's own; only of those may one be unusable.

    Raises:
        PolicyError: the policy that is named cannot be judged by.
    """
    if policy is None:
        return judge_own(reader, packet, at=at)
    found = policies_of(reader, packet, policy)
    return [judge(reader, packet, data, where=place, at=at) for place, data in found], ()


def keep_verdicts(out: Console, packet: RawId, judgings: Sequence[Judging]) -> list[str]:
    """Keep verdicts in the store that holds the packet; say on stderr when it cannot be written."""
    path = readable_store(out)
    if path is None or not judgings:
        return []
    try:
        store = open_store(path)
    except ProvError as error:
        out.note(f"the verdict was not kept: {error.message}")
        return []
    try:
        if store.record(packet) is None:
            return []
        return [keep(store, judging).hex() for judging in judgings]
    except ProvError as error:
        out.note(f"the verdict was not kept: {error.message}")
        return []
    finally:
        store.close()
