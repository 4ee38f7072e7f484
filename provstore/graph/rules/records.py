"""Rules for records, queues and receipts: numbers that follow from others, and what was sent."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from provstore.graph.rules.citing import inside
from provstore.graph.rules.conventions import sibling
from provstore.graph.rules.formats import COMPOSED, HARDWARE, QUEUE, RECEIPT, RECORD
from provstore.graph.rules.places import COMMIT, Place, decimal, same, shown, walk
from provstore.graph.rules.rule import Context, Document, Violation, bad, missing_evidence, rule

_CLOSE: Final = Decimal("1e-12")
"""Largest part by which a number that a program worked out in doubles may differ."""

_SENT: Final = (
    ("model", ("hfId",)),
    ("model_revision", ("modelRevision",)),
    ("gpu_name", ("hardware", "gpuName")),
    ("gpu_count", ("hardware", "gpuCount")),
    ("vram_gb_per_gpu", ("hardware", "vramGb")),
    ("engine", ("engineName",)),
    ("quantization", ("quantization",)),
    ("cpu", ("hardware", "cpu")),
    ("ram_gb", ("hardware", "ramGb")),
)
"""Members of a public row, and where a payload has the same."""


def close(one: Decimal, other: Decimal) -> bool:
    """Say whether two numbers are the same but for the rounding of doubles.

    Example:
        >>> close(Decimal("102.97143559613157"), Decimal("102.9714355961316"))
        True
    """
    return abs(one - other) <= _CLOSE * max(abs(one), abs(other), Decimal(1))


@rule("record-accounting", on=RECORD)
def record_accounting(document: Document, context: Context) -> Iterator[Violation]:
    """The rate per interval follows from the counted events; a margin is a difference."""
    place = document.root.at("metric_accounting")
    names = ("published_value_tok_s", "timestamped_events", "inter_token_intervals")
    published, events, intervals = (decimal(place.at(name).value) for name in names)
    said = decimal(place.at("conventional_interval_value_tok_s").value)
    if said is not None and published is not None and events and intervals is not None:
        wanted = published * intervals / events
        if not close(said, wanted):
            derived = place.at("conventional_interval_value_tok_s")
            yield bad(derived, "it does not follow from events and intervals", str(wanted)[:24])
    goal, margin = (
        decimal(place.at(f"conventional_{n}").value) for n in ("goal_tok_s", "margin_to_goal_tok_s")
    )
    if said is not None and goal is not None and margin is not None and not close(said - goal, margin):
        yield bad(
            place.at("conventional_margin_to_goal_tok_s"), "no difference of value and goal", str(said - goal)
        )


@rule("record-difference", on=RECORD)
def record_difference(document: Document, context: Context) -> Iterator[Violation]:
    """``delta_vs_NAME_tok_s`` is the record's value less ``prior_NAME_tok_s``."""
    for name, place in walk(document.root):
        if not (name.startswith("delta_vs_") and name.endswith("_tok_s")):
            continue
        other = sibling(document.root, place, "prior_" + name.removeprefix("delta_vs_"))
        value = sibling(document.root, place, "value_tok_s")
        numbers = [decimal(item.value) for item in (value, other, place)]
        if None in numbers:
            continue
        mine, prior, said = (number or Decimal(0) for number in numbers)
        if not close(mine - prior, said):
            yield bad(place, f"{value.pointer} less {other.pointer} is another number", str(mine - prior))


@rule("record-part", on=COMPOSED)
def record_part(document: Document, context: Context) -> Iterator[Violation]:
    """Every part of a composed result has a name, a status, and digests of its files."""
    for part in document.root.at("artifacts").objects():
        if not any(part.at(name).said for name in ("path", "id")):
            yield bad(part, "a part that nothing names", "path or id")
        if not any(name.endswith("status") and item.said for name, item in part.members()):
            yield bad(part, "a part without a status", "a status")
        if not any(name.endswith("sha256") and item.said for name, item in part.members()):
            yield bad(part, "a part without digests", "a SHA-256 of its files")


@rule("queue-payload", on=QUEUE)
def queue_payload(document: Document, context: Context) -> Iterator[Violation]:
    """What is sent to a leaderboard names model and full revision, and its rate is a positive number."""
    for entry in document.root.objects():
        payload = entry.at("payload")
        if not entry.at("label").said:
            yield bad(entry.at("label"), "an entry has a label", "text")
        if not payload.at("hfId").said:
            yield bad(payload.at("hfId"), "a payload names its model", "text")
        if not COMMIT.fullmatch(payload.at("modelRevision").text):
            yield bad(
                payload.at("modelRevision"), "the model is not pinned to a full commit", "40 hex digits"
            )
        rate = decimal(payload.at("tokSOut").value)
        if rate is None or rate <= 0:
            yield bad(payload.at("tokSOut"), "a rate is a positive number", "a positive number")


@rule("receipt-row", on=RECEIPT)
def receipt_row(document: Document, context: Context) -> Iterator[Violation]:
    """A receipt says the same id and status in the response and in the public row."""
    root = document.root
    status = root.at("http_status")
    if status.value not in (200, 201):
        yield bad(status, "the request was not accepted", "200 or 201")
    public = root.at("public_verification")
    for name in ("id", "status"):
        if not root.at("response", name).said:
            yield bad(root.at("response", name), f"a response has {name}", "text")
        elif public.members() and not same(public.at(name).value, root.at("response", name).value):
            yield bad(public.at(name), "the response says otherwise", shown(root.at("response", name).value))


@rule("receipt-payload", on=RECEIPT)
def receipt_payload(document: Document, context: Context) -> Iterator[Violation]:
    """The public row shows what was sent: model, revision, devices and rate."""
    path = document.root.at("payload_path")
    queue = context.cited(path.text) if inside(path.text) else None
    if queue is None:
        yield missing_evidence(path, path.text or "payload_path", "the public row was not compared with it")
        return
    public = document.root.at("public_verification")
    entries = queue.root.objects()
    payload = entries[0].at("payload") if len(entries) == 1 else Place("", None)
    if len(entries) != 1:
        yield bad(path, f"{path.text} has {len(entries)} entries", "one entry")
    for name, sent in _SENT:
        there, mine = public.at(name), payload.at(*sent)
        if there.given and mine.given and not same(there.value, mine.value):
            yield bad(there, f"{path.text}{mine.pointer} says otherwise"[:300], shown(mine.value))
    rates = [decimal(item.value) for item in (public.at("tok_s_out"), payload.at("tokSOut"))]
    if rates[0] is not None and rates[1] is not None and not close(rates[0], rates[1]):
        yield bad(public.at("tok_s_out"), f"{path.text} has another rate", shown(payload.at("tokSOut").value))


@rule("hardware-shape", 58, on=HARDWARE)
def hardware_shape(document: Document, context: Context) -> Iterator[Violation]:
    """A hardware has id, name, vendor and kind, and its memory is a number or null."""
    root = document.root
    for name in ("id", "name", "vendor", "kind"):
        if not root.at(name).said:
            yield bad(root.at(name), f"a hardware has {name}", "text")
    memory = root.at("memory", "vram_gb")
    number = decimal(memory.value)
    if memory.given and (number is None or number <= 0):
        yield bad(memory, "memory is a positive number, or null", "a positive number or null")
