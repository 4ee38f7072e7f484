"""Rules for packages: what somebody needs to run a model, and the number that is shown for it."""

import re
from collections.abc import Iterator
from typing import Final

from provstore.evidence.jsonreader import ABSENT, Absent, Value
from provstore.graph.rules.citing import inside, not_there
from provstore.graph.rules.family import stated
from provstore.graph.rules.formats import FAMILY, GUIDES, PACKAGE
from provstore.graph.rules.places import COMMIT, DATE, SLUG, Place, decimal, is_count, same, shown, walk
from provstore.graph.rules.rule import Context, Document, Violation, bad, missing_evidence, rule

STATUSES: Final = ("candidate", "starter", "preview")
COMMANDS: Final = ("preflight", "launch", "health", "benchmark", "stop")

_STRINGS: Final = ("model_family", "publisher", "variant", "summary", "quantization", "runtime_label")
_LISTS: Final = ("operating_systems", "delivery", "modalities", "use_cases", "tags")
_ENUMERATED: Final = {"operating_systems": ("Linux", "Windows"), "delivery": ("native", "container")}
_HOST_PATH: Final = re.compile(r"file://|/(?:home|mnt|media)/")
_IMAGE: Final = re.compile(r".+@sha256:[0-9a-f]{64}")
_PROFILE: Final = re.compile(r"https?://[^/\s]+")
_UNITS: Final = {"decode": "tok/s", "prefill": "tok/s", "ttft": "ms", "aggregate_decode": "tok/s"}
_X: Final = ("context_tokens", "concurrent_sequences", "speculative_tokens")
CATALOG: Final = "repro/guide-catalog.json"


def cites(place: Place, context: Context) -> Iterator[Violation]:
    """Yield what is wrong with one cited path: no text, outside the repository, or not there."""
    if not place.said:
        yield bad(place, "it cites no file", "a path")
    elif not inside(place.text) or context.files.escapes(place.text):
        yield bad(place, "the path does not stay inside the repository", "a relative path")
    else:
        yield from not_there(place, context)


@rule("package-head", 40, on=PACKAGE)
def package_head(document: Document, context: Context) -> Iterator[Violation]:
    """A package has format, id, name, guide, a known status, and says whether a clean host was tested."""
    root = document.root
    if root.at("format").value != PACKAGE:
        yield bad(root.at("format"), "the format is not that of a package", PACKAGE)
    for name in ("id", "name", "guide", "audience"):
        if not root.at(name).said:
            yield bad(root.at(name), f"a package needs {name}", "text")
    if root.at("status").value not in STATUSES:
        yield bad(root.at("status"), "no status of a package", ", ".join(STATUSES))
    if not isinstance(root.at("clean_host_tested").value, bool):
        yield bad(root.at("clean_host_tested"), "it says whether a clean host was tested", "true or false")
    if root.at("status").value == "starter" and root.at("clean_host_tested").value is not True:
        yield bad(root.at("clean_host_tested"), "a starter package was tested on a clean host", "true")


@rule("package-guide", 40, on=PACKAGE)
def package_guide(document: Document, context: Context) -> Iterator[Violation]:
    """Id, guide, audience and clean-host flag equal the guide catalog's entry.

    A starter's guide is certified.
    """
    root = document.root
    catalog = next(context.of_format(GUIDES), None) or context.cited(CATALOG)
    if catalog is None:
        yield missing_evidence(root.at("guide"), CATALOG, "the package was not compared with its guide")
        return
    entries = catalog.root.at("guides").objects()
    entry = next((item for item in entries if item.at("package").value == document.path), None)
    entry = entry or next((item for item in entries if same(item.at("id").value, root.at("id").value)), None)
    if entry is None:
        yield bad(root.at("id"), f"{catalog.path} has no such entry", "the id of a guide")
        return
    for name in ("id", "guide", "audience", "clean_host_tested"):
        if not same(entry.at(name).value, root.at(name).value):
            yield bad(root.at(name), f"{catalog.path} says otherwise", shown(entry.at(name).value))
    if root.at("status").value == "starter" and entry.at("classification").value != "starter-guide":
        yield bad(root.at("status"), "the guide is no starter guide", "candidate or preview")


@rule("package-library", 41, on=PACKAGE)
def package_library(document: Document, context: Context) -> Iterator[Violation]:
    """What a library page shows is text, non-empty lists of known systems and deliveries, and a date."""
    library = document.root.at("library")
    for name in _STRINGS:
        if not library.at(name).said:
            yield bad(library.at(name), f"a library page needs {name}", "text")
    for name in _LISTS:
        place = library.at(name)
        if not place.elements() or not all(item.said for item in place.elements()):
            yield bad(place, f"{name} is a list of texts that is not empty", "a list of texts")
        for item in place.elements():
            if name in _ENUMERATED and item.value not in _ENUMERATED[name]:
                yield bad(item, f"not known as one of {name}", ", ".join(_ENUMERATED[name]))
    if not DATE.fullmatch(library.at("published_at").text):
        yield bad(library.at("published_at"), "it is no date", "YYYY-MM-DD")
    kind = document.root.at("runtime", "kind")
    if kind.said and not any(item.value == kind.value for item in library.at("delivery").elements()):
        yield bad(library.at("delivery"), f"it does not name the kind of the runtime, {kind.text}", kind.text)


@rule("package-headline", 42, on=PACKAGE)
def package_headline(document: Document, context: Context) -> Iterator[Violation]:
    """A headline is a positive number with unit, label, scope and evidence.

    Without one, the status says why.
    """
    library = document.root.at("library")
    headline = library.at("featured_metric")
    if not headline.given:
        if not library.at("benchmark_status").said:
            yield bad(library.at("benchmark_status"), "a package without a headline says why", "text")
        if document.root.at("status").value == "starter":
            yield bad(headline, "a starter package has a headline", "a featured metric")
        return
    value = decimal(headline.at("value").value)
    if value is None or value <= 0:
        yield bad(headline.at("value"), "a headline is a positive number", "a positive number")
    for name in ("unit", "label", "scope"):
        if not headline.at(name).said:
            yield bad(headline.at(name), f"a headline needs {name}", "text")
    yield from cites(headline.at("evidence"), context)


@rule("contributor", 43, on=PACKAGE)
def contributor(document: Document, context: Context) -> Iterator[Violation]:
    """A contributor has a slug, kind, status, HTTP address, contribution, effect, and evidence."""
    listed = document.root.at("contributors")
    if not listed.objects():
        yield bad(listed, "a package has contributors", "a list that is not empty")
    seen: set[str] = set()
    for item in listed.objects():
        id = item.at("id")
        if not SLUG.fullmatch(id.text) or id.text in seen:
            yield bad(id, "the id is a lowercase slug of its own", "a slug that no other has")
        seen.add(id.text)
        for name in ("name", "contribution", "validated_effect"):
            if not item.at(name).said:
                yield bad(item.at(name), f"a contributor needs {name}", "text")
        if item.at("kind").value not in ("lab", "external"):
            yield bad(item.at("kind"), "no kind of contributor", "lab or external")
        statuses = ("acknowledged", "credited", "validated-boost", "integrated")
        if item.at("status").value not in statuses:
            yield bad(item.at("status"), "no status of a contributor", ", ".join(statuses))
        if not _PROFILE.match(item.at("profile").text):
            yield bad(item.at("profile"), "no address", "an HTTP address")
        yield from cites(item.at("evidence"), context)


@rule("performance-profile", 44, on=PACKAGE)
def performance_profile(document: Document, context: Context) -> Iterator[Violation]:
    """A profile has a known metric, evidence, and points with growing x and positive values."""
    listed = document.root.at("performance_profiles")
    if listed.given and not listed.objects():
        yield bad(listed, "profiles are a list that is not empty, if there is one", "a list of profiles")
    for item in listed.objects():
        metric = item.at("metric").text
        if metric not in _UNITS:
            yield bad(item.at("metric"), "no metric of a profile", ", ".join(_UNITS))
        elif item.at("unit").value != _UNITS[metric]:
            yield bad(item.at("unit"), f"{metric} has another unit", _UNITS[metric])
        yield from cites(item.at("evidence"), context)
        axis = item.at("x_metric").text or "context_tokens"
        if axis not in _X:
            yield bad(item.at("x_metric"), "no axis of a profile", ", ".join(_X))
        yield from _profile_points(item, axis)


def _profile_points(item: Place, axis: str) -> Iterator[Violation]:
    points = item.at("points").objects()
    if len(points) < 2:
        yield bad(item.at("points"), "a curve has two points at least", "two or more points")
    before = -1
    for point in points:
        x, value = point.at(axis).value, decimal(point.at("value").value)
        if type(x) is not int or x <= before:
            yield bad(point.at(axis), "x is an integer that grows from point to point", f"more than {before}")
        before = x if type(x) is int else before
        if value is None or value <= 0:
            yield bad(point.at("value"), "a value is a positive number", "a positive number")
        if point.at("samples").given and not is_count(point.at("samples").value):
            yield bad(point.at("samples"), "samples are counted from one", "a positive integer")


@rule("package-pins", 45, on=PACKAGE)
def package_pins(document: Document, context: Context) -> Iterator[Violation]:
    """The model is pinned to a full commit and a manifest that is there; a container image to a digest."""
    root = document.root
    if not is_count(root.at("hardware", "cards").value):
        yield bad(root.at("hardware", "cards"), "it says how many cards", "a positive integer")
    if not COMMIT.fullmatch(root.at("model", "revision").text):
        yield bad(root.at("model", "revision"), "the model is not pinned to a full commit", "40 hex digits")
    yield from cites(root.at("model", "manifest"), context)
    kind = root.at("runtime", "kind")
    if kind.value not in ("container", "native"):
        yield bad(kind, "no kind of runtime", "container or native")
    if kind.value == "container" and not _IMAGE.fullmatch(root.at("runtime", "image").text):
        yield bad(
            root.at("runtime", "image"), "the image is not pinned to a digest", "NAME@sha256:64 hex digits"
        )


@rule("package-patches", 46, on=PACKAGE)
def package_patches(document: Document, context: Context) -> Iterator[Violation]:
    """Patches are listed exactly if they are required, and each one is there; so is every dependency."""
    required = document.root.at("project_patches", "required")
    items = document.root.at("project_patches", "items")
    if not isinstance(required.value, bool):
        yield bad(required, "it says whether patches are required", "true or false")
    elif required.value != bool(items.elements()):
        yield bad(items, f"required is {shown(required.value)}", "patches if and only if they are required")
    for item in items.elements():
        yield from cites(item, context)
    dependencies = document.root.at("dependencies")
    if not dependencies.elements():
        yield bad(dependencies, "a package lists its dependencies", "a list that is not empty")
    for item in dependencies.elements():
        yield from cites(item, context)


@rule("package-commands", 47, on=PACKAGE)
def package_commands(document: Document, context: Context) -> Iterator[Violation]:
    """A package has exactly five commands, none empty, none with a path of one host."""
    commands = document.root.at("commands")
    names = [name for name, _ in commands.members()]
    if sorted(names) != sorted(COMMANDS):
        yield bad(
            commands, f"it has {', '.join(shown(n) for n in names) or 'none'}"[:300], ", ".join(COMMANDS)
        )
    for _, item in commands.members():
        if not item.said:
            yield bad(item, "the command is empty", "a command")
        found = _HOST_PATH.search(item.text)
        if found:
            yield Violation(item.pointer, "the command has a path of one host", "a relative path", found[0])


@rule("missing-gates", 48, on=PACKAGE)
def missing_gates(document: Document, context: Context) -> Iterator[Violation]:
    """A package that is no starter lists the gates that are missing; a starter lists none."""
    missing, status = document.root.at("missing"), document.root.at("status").value
    if status == "starter" and missing.elements():
        yield bad(missing, "a starter package has no open gates", "an empty list")
    if status != "starter" and (not missing.elements() or not all(item.said for item in missing.elements())):
        yield bad(missing, "it does not say which gates are missing", "a list that is not empty")


_PINNED: Final = (
    (("model", "revision"), ("target_revision", "model_revision")),
    (("runtime", "revision"), ("vllm_commit", "runtime_revision", "engine_commit")),
)
"""Members of a package, and what a record calls the same thing."""


@rule("copied-value", 42, on=PACKAGE)
def copied_value(document: Document, context: Context) -> Iterator[Violation]:
    """Cards, weights, runtime and headline of a package are those of its family and its record."""
    root, seen = document.root, False
    evidence = root.at("library", "featured_metric", "evidence").text
    record = context.cited(evidence) if inside(evidence) else None
    for path, names in _PINNED if record is not None else ():
        for name, place in walk(record.root if record else root):
            if name in names and root.at(*path).said and not same(place.value, root.at(*path).value):
                yield bad(
                    root.at(*path), f"{evidence}{place.pointer} says otherwise"[:300], shown(place.value)
                )
    for family in context.of_format(FAMILY):
        for packet in family.root.at("packets").objects():
            if packet.at("id").value == root.at("id").value or packet.at("manifest").value == document.path:
                seen = True
                yield from _against_family(document, family, packet, evidence)
    if not seen:
        yield missing_evidence(root.at("id"), "families/", "no family with this package was checked with it")


def _against_family(
    document: Document, family: Document, packet: Place, evidence: str
) -> Iterator[Violation]:
    root, headline = document.root, document.root.at("library", "featured_metric")
    cards = packet.at("cards")
    if cards.given and not same(cards.value, root.at("hardware", "cards").value):
        yield bad(
            root.at("hardware", "cards"), f"{family.path}{cards.pointer} says otherwise", shown(cards.value)
        )
    for revision in family.root.at("weight_revisions").objects():
        if revision.at("id").value == packet.at("revision").value:
            for name in ("repository", "revision"):
                wanted = revision.at(name)
                if wanted.said and not same(wanted.value, root.at("model", name).value):
                    message = f"{family.path}{wanted.pointer} says otherwise"
                    yield bad(root.at("model", name), message, shown(wanted.value))
    commit = root.at("runtime", "revision").text
    if COMMIT.fullmatch(commit) and packet.at("runtime").said and commit not in packet.at("runtime").text:
        message = f"{family.path}{packet.at('runtime').pointer} says otherwise"
        yield bad(root.at("runtime", "revision"), message, shown(packet.at("runtime").value))
    cited = [
        m for m in family.root.at("run_measurements").objects() if m.at("evidence").text == evidence != ""
    ]
    numbers = [s for m in cited for _, listed in m.at("metrics").members() for s in listed.elements()]
    if (
        cited
        and headline.at("value").given
        and not any(same(n.value, headline.at("value").value) for n in numbers)
    ):
        message = f"{family.path} has no such sample for {evidence}"
        yield bad(headline.at("value"), message[:300], ", ".join(shown(n.value) for n in numbers)[:160])


_DEFAULTS: Final = (("defaults",), ("configuration",), ("launch", "defaults"), ("runtime", "defaults"))


@rule("headline-configuration", 42, on=PACKAGE)
def headline_configuration(document: Document, context: Context) -> Iterator[Violation]:
    """The headline was measured with the configuration that the package launches; else it has no headline."""
    root, headline = document.root, document.root.at("library", "featured_metric")
    if not headline.members():
        return
    launched = {n: p for path in _DEFAULTS for n, p in root.at(*path).members()}
    if root.at("hardware", "cards").given:
        launched.setdefault("cards", root.at("hardware", "cards"))
    for where, owner in _configurations(headline, context):
        for name, place in launched.items():
            there = _said(owner, name)
            if there is not ABSENT and not same(there, place.value):
                message = f"{where} was measured with {shown(name)} {shown(there)}, the package has another"
                yield bad(headline, message[:400], f"{shown(name)} {shown(place.value)}")


def _said(owner: Place, name: str) -> Value | Absent:
    there = stated(owner, name)
    return owner.at("configuration", name).value if there is ABSENT else there


def _configurations(headline: Place, context: Context) -> Iterator[tuple[str, Place]]:
    """Yield whatever says how a headline was measured: itself, its record, measurements of families."""
    yield "the headline", headline
    evidence = headline.at("evidence").text
    record = context.cited(evidence) if inside(evidence) else None
    if record is not None:
        yield evidence, record.root
    for family in context.of_format(FAMILY):
        for item in family.root.at("run_measurements").objects():
            samples = [s.value for _, listed in item.at("metrics").members() for s in listed.elements()]
            same_number = any(same(value, headline.at("value").value) for value in samples)
            if same_number and item.at("evidence").text == evidence:
                yield shown(item.at("id").value), item
