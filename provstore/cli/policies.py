"""The policies that a command judges by, and where verdicts are kept; only commands that judge import it."""

from collections.abc import Sequence
from pathlib import Path

from provstore.cli.console import Console
from provstore.cli.opening import readable_store
from provstore.errors import NotFoundError, ProvError
from provstore.files.hashing import read_file
from provstore.gates.policy import MAX_POLICY_BYTES
from provstore.ids import RawId
from provstore.reports import Check
from provstore.store.opening import open_store
from provstore.store.protocol import Reader
from provstore.verbs.judging import Judging, judge, judge_own, keep, own_policies, policy_of


def policies_of(reader: Reader, packet: RawId, policy: str | None) -> list[tuple[str, bytes]]:
    """Return name and bytes of the policies to judge by: the one that is named, else the packet's own."""
    if policy is None:
        return own_policies(reader, packet)
    path = Path(policy)
    if path.is_file():
        return [(policy, read_file(path, MAX_POLICY_BYTES))]
    try:
        return [(policy, policy_of(reader, packet, policy))]
    except NotFoundError as error:
        raise NotFoundError(policy, "no file of this name, and no member of the packet") from error


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
