"""Rules for attestations, publications and claims: decisions that bind a number to evidence."""

import hashlib
import re
from collections.abc import Iterator
from typing import Final

from provstore.evidence.jsonreader import ABSENT
from provstore.graph.rules.citing import inside
from provstore.graph.rules.formats import ATTESTATION, CLAIM, PUBLICATION
from provstore.graph.rules.packages import cites
from provstore.graph.rules.places import COMMIT, SHA256, SLUG, Place, decimal, is_count, shown, walk
from provstore.graph.rules.rule import Context, Document, Violation, bad, missing_evidence, rule

GATES: Final = (
    "varied_task_quality_passed",
    "exact_or_target_oracle_passed",
    "deterministic_repeats_passed",
    "fresh_server_repeat_passed",
    "target_model_unchanged",
    "no_quality_loss",
)
"""Gates of an attestation."""

MAX_HASHED: Final = 64 << 20
"""Longest file that a rule hashes."""

STATUSES: Final = (
    "submitted",
    "queued",
    "reproducing",
    "confirmed",
    "confirmed-adjusted",
    "refuted",
    "stale",
    "lab-verified",
)
JUDGED: Final = ("confirmed", "confirmed-adjusted", "refuted", "stale", "lab-verified")

_STATED: Final = (
    ("model",),
    ("recipe", "engine"),
    ("recipe", "quant"),
    ("claimed", "metric"),
    ("claimed", "date"),
    ("claimed", "by"),
)
_DAY: Final = re.compile(r"\d{4}(-\d{2}){0,2}")
_UTC: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
_HOST_PATH: Final = re.compile(r"file://|/(?:home|mnt|media)/")
_RELEASE: Final = ("build-log", "wheel", "toolchain-inventory")


def hash_of(path: Place, digest: Place, context: Context) -> Iterator[Violation]:
    """Yield what is wrong with a file and its digest: no digest, not there, other bytes."""
    if not SHA256.fullmatch(digest.text):
        yield bad(digest, "no SHA-256", "64 hex digits")
    if not path.said or not inside(path.text):
        yield from cites(path, context)
        return
    data = context.files.read(path.text, MAX_HASHED)
    if data is None:
        yield missing_evidence(path, path.text, "its digest was not compared")
    elif len(data) > MAX_HASHED:
        yield missing_evidence(path, path.text, f"it is longer than {MAX_HASHED} bytes, so it was not hashed")
    elif digest.said and hashlib.sha256(data).hexdigest() != digest.text:
        yield Violation(
            digest.pointer, f"{path.text} has other bytes", hashlib.sha256(data).hexdigest(), digest.text
        )


@rule("attestation-bytes", 55, on=ATTESTATION)
def attestation_bytes(document: Document, context: Context) -> Iterator[Violation]:
    """Every file of an attestation is there with the digest that it states.

    A performance file is among them.
    """
    for item in (document.root.at("performance_evidence"), *document.root.at("quality_evidence").objects()):
        yield from hash_of(item.at("path"), item.at("sha256"), context)
    if not document.root.at("quality_evidence").objects():
        yield bad(
            document.root.at("quality_evidence"), "an attestation cites quality evidence", "a list of files"
        )


@rule("attestation-identity", 55, on=ATTESTATION)
def attestation_identity(document: Document, context: Context) -> Iterator[Violation]:
    """An attestation states model, runtime and optimization; they are those of the performance file."""
    identity = document.root.at("identity")
    for name in ("model_revision", "runtime_revision", "optimization_identity"):
        if not identity.at(name).said:
            yield bad(identity.at(name), f"an attestation states {name}", "text")
    path = document.root.at("performance_evidence", "path")
    judged = context.cited(path.text) if inside(path.text) else None
    if judged is None:
        if path.said:
            yield missing_evidence(path, path.text, "the identity was not compared")
        return
    for name in ("model_revision", "runtime_revision"):
        for found, place in walk(judged.root):
            if found == name and place.said and place.text != identity.at(name).text:
                yield bad(identity.at(name), f"{path.text}{place.pointer} says otherwise", shown(place.value))


@rule("attestation-gates", 55, on=ATTESTATION)
def attestation_gates(document: Document, context: Context) -> Iterator[Violation]:
    """All six gates are true, and each is supported by a quality file that names it."""
    gates = document.root.at("gates")
    supported = {
        gate.text
        for item in document.root.at("quality_evidence").objects()
        for gate in item.at("supports").elements()
    }
    for name in GATES:
        if gates.at(name).value is not True:
            yield bad(gates.at(name), f"gate {name} is not true", "true")
        elif name not in supported:
            yield bad(
                gates.at(name),
                f"gate {name} is true, and no quality file supports it",
                "a file that supports it",
            )
    for name, place in gates.members():
        if name not in GATES:
            yield bad(place, "no gate of an attestation", ", ".join(GATES))


@rule("publication-bytes", 56, on=PUBLICATION)
def publication_bytes(document: Document, context: Context) -> Iterator[Violation]:
    """Every input of a publication has its digest; every script is there, with no path of one host in it."""
    repository = document.root.at("repository")
    yield from cites(document.root.at("guide"), context)
    for listed in (repository.at("build_scripts"), repository.at("immutable_inputs")):
        if not listed.elements():
            yield bad(listed, "a publication lists them", "a list that is not empty")
    for item in repository.at("immutable_inputs").objects():
        yield from hash_of(item.at("path"), item.at("sha256"), context)
    for item in repository.at("build_scripts").elements():
        yield from cites(item, context)
        data = context.files.read(item.text, MAX_HASHED) if inside(item.text) else None
        found = _HOST_PATH.search((data or b"").decode("utf-8", "replace"))
        if found:
            yield Violation(item.pointer, f"{item.text} has a path of one host", "no such path", found[0])
    for item in document.root.at("validation", "quality_evidence").elements():
        yield from cites(item, context)


@rule("publication-pins", 56, on=PUBLICATION)
def publication_pins(document: Document, context: Context) -> Iterator[Violation]:
    """Sources are pinned to full commits, images to digests, public files to digest and size under HTTPS."""
    for item in document.root.at("source_repositories").objects():
        if not COMMIT.fullmatch(item.at("commit").text):
            yield bad(item.at("commit"), "the source is not pinned to a full commit", "40 hex digits")
        if not item.at("url").text.startswith("https://"):
            yield bad(item.at("url"), "no public address", "an HTTPS address")
    for name, place in walk(document.root):
        if (
            name in ("image", "base_image")
            and place.said
            and not re.search(r"@sha256:[0-9a-f]{64}$", place.text)
        ):
            yield bad(place, "the image is not pinned to a digest", "NAME@sha256:64 hex digits")
    seen: set[str] = set()
    for item in document.root.at("release", "assets").objects():
        if not item.at("name").said or item.at("name").text in seen:
            yield bad(item.at("name"), "an asset has a name of its own", "a name that no other asset has")
        seen.add(item.at("name").text)
        if not SHA256.fullmatch(item.at("sha256").text):
            yield bad(item.at("sha256"), "no SHA-256", "64 hex digits")
        if not is_count(item.at("size").value):
            yield bad(item.at("size"), "an asset states its size", "a positive integer")
        if not item.at("url").text.startswith("https://"):
            yield bad(item.at("url"), "no public address", "an HTTPS address")


@rule("publication-status", 56, on=PUBLICATION)
def publication_status(document: Document, context: Context) -> Iterator[Violation]:
    """A published recipe passed all validations, and its public files were read again at a time in UTC."""
    root = document.root
    status = root.at("publication_status")
    if status.value not in ("draft", "published"):
        yield bad(status, "no status of a publication", "draft or published")
    validation = root.at("validation")
    for name in ("clean_source_build", "runtime_smoke", "quality_gate"):
        place = validation.at(name)
        if not isinstance(place.value, bool):
            yield bad(place, "a validation passed or did not", "true or false")
        elif status.value == "published" and place.value is not True:
            yield bad(status, f"published, and {name} is false", "draft")
    if status.value != "published":
        return
    kinds = {item.at("kind").text for item in root.at("release", "assets").objects()}
    lacking = [kind for kind in _RELEASE if kind not in kinds]
    if lacking:
        yield bad(
            root.at("release", "assets"), f"published without {', '.join(lacking)}", ", ".join(_RELEASE)
        )
    verified = root.at("release", "remote_verified_at")
    if not _UTC.fullmatch(verified.text):
        yield bad(verified, "it does not say when the public files were read again", "YYYY-MM-DDTHH:MM:SSZ")


@rule("claim-shape", 57, on=CLAIM)
def claim_shape(document: Document, context: Context) -> Iterator[Violation]:
    """A claim's id is its file's name; it states engine, quant, cards, tp, rate, metric, date, author."""
    root = document.root
    name = document.path.rpartition("/")[2]
    if not SLUG.fullmatch(root.at("id").text) or name != f"{root.at('id').text}.json":
        yield bad(root.at("id"), "the id is not the name of the file", name.removesuffix(".json"))
    for path in _STATED:
        if not root.at(*path).said:
            yield bad(root.at(*path), f"a claim states {path[-1]}", "text")
    for part in ("cards", "tp"):
        if not is_count(root.at("recipe", part).value):
            yield bad(root.at("recipe", part), f"{part} is a count", "a positive integer")
    yield from _rate(root.at("claimed"))
    if root.at("claimed", "date").said and not _DAY.fullmatch(root.at("claimed", "date").text):
        yield bad(root.at("claimed", "date"), "no date", "YYYY, YYYY-MM or YYYY-MM-DD")
    if root.at("claimed", "evidence").given:
        yield from cites(root.at("claimed", "evidence"), context)
    outside = root.at("claimed", "by").said and root.at("claimed", "by").value != "lab"
    if outside and not root.at("submitter").given and not root.at("upstream").given:
        yield bad(root.at("submitter"), "a claim from outside says whose it is", "submitter or upstream")


def _rate(owner: Place) -> Iterator[Violation]:
    value = decimal(owner.at("tok_s").value)
    if value is None or value <= 0:
        yield bad(owner.at("tok_s"), "a rate is a positive number", "a positive number")


@rule("claim-status", 57, on=CLAIM)
def claim_status(document: Document, context: Context) -> Iterator[Violation]:
    """A claim has a known status and a history; judged ones have a verification, early ones none."""
    root, status = document.root, document.root.at("status")
    if status.value not in STATUSES:
        yield bad(status, "no status of a claim", ", ".join(STATUSES))
    verification = root.at("verification")
    if status.value in JUDGED:
        yield from _rate(verification)
        for name in ("metric", "date", "evidence"):
            if not verification.at(name).said:
                yield bad(verification.at(name), f"status {shown(status.value)} needs {name}", "text")
        if verification.at("evidence").said:
            yield from cites(verification.at("evidence"), context)
    elif status.value in ("submitted", "queued") and verification.value is not ABSENT and verification.given:
        yield bad(verification, f"status {shown(status.value)}, and there is a verification", "absent")
    history = root.at("history")
    if not history.objects():
        yield bad(history, "a claim has a history", "a list that is not empty")
    for item in history.objects():
        if not _DAY.fullmatch(item.at("date").text) or not item.at("event").said:
            yield bad(item, "a step of the history has a date and an event", "date and event")
