"""Rules for the records of a registry: recipes, speed sweeps, model instances."""

from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from provstore.evidence.jsonreader import ABSENT, Value
from provstore.graph.documents.recipe_status import Parts, derive_status
from provstore.graph.documents.registry_shape import LEADERBOARDS, SWEEP_LISTS
from provstore.graph.rules.citing import inside
from provstore.graph.rules.conventions import known_runs
from provstore.graph.rules.formats import HARDWARE, INSTANCE, PAGE, RECIPE, REGISTRY, SWEEP
from provstore.graph.rules.places import COMMIT, Place, decimal, is_count, is_number, same, shown
from provstore.graph.rules.rule import (
    ABSENT_EVIDENCE,
    Context,
    Document,
    Violation,
    bad,
    missing_evidence,
    rule,
    wrong_kind,
)

_REQUIRED: Final = (
    "schema_version",
    "id",
    "recipe_source",
    "status",
    "model_instance_id",
    "hardware_id",
    "hardware_count",
    "engine",
    "launch",
    "serving",
    "capabilities",
    "speed_sweep_ids",
    "metadata",
    "provenance",
    "facts",
)
_OPTIONAL: Final = ("description", "recommended", "draft_launch")
_LAUNCHES: Final = ("reference", "docker", "docker-compose", "controller", "script", "native", "host")
_CAPABILITIES: Final = ("chat", "reasoning", "tools", "vision", "video")
_ROW: Final = (
    "concurrency",
    "context_tokens",
    "output_tokens",
    "prefill_tok_s",
    "decode_tok_s",
    "ttft_ms_p50",
    "peak_vram_gb",
    "samples",
)

_LARGEST: Final = Decimal(10) ** 8
"""Rates below this are rounded to two digits."""

_FOLDERS: Final = {SWEEP: "speed-sweep", INSTANCE: "model-instance", HARDWARE: "hardware", RECIPE: "recipe"}


def beside(document: Document, format: str, id: str, context: Context) -> Document | None:
    """Return another record by its id: among what is checked, else in the folder of its kind."""
    found = context.only(format, id)
    if found is not None or not id or "/" in id:
        return found
    registry = "/".join(document.path.split("/")[:-2])
    path = f"{registry}/{_FOLDERS[format]}/{id}.json".lstrip("/")
    return context.cited(path) if inside(path) else None


@rule("recipe-shape", 58, on=RECIPE)
def recipe_shape(document: Document, context: Context) -> Iterator[Violation]:
    """A recipe has every member of its format with the right kind of value, and no other member."""
    root = document.root
    names = {name for name, _ in root.members()}
    for name in _REQUIRED:
        if name not in names:
            yield bad(root.at(name), f"a recipe has {name}", "present")
    for name in sorted(names - {*_REQUIRED, *_OPTIONAL}):
        yield bad(root.at(name), "no member of a recipe", "absent")
    for name in ("id", "recipe_source", "model_instance_id", "hardware_id"):
        if not root.at(name).said:
            yield bad(root.at(name), f"{name} is text", "text")
    if root.at("status").value not in ("candidate", "validated"):
        yield bad(root.at("status"), "no status of a recipe", "candidate or validated")
    if not is_count(root.at("hardware_count").value):
        yield bad(root.at("hardware_count"), "at least one device", "a positive integer")
    if root.at("launch", "kind").value not in _LAUNCHES:
        yield bad(root.at("launch", "kind"), "no kind of launch", ", ".join(_LAUNCHES))
    for name in ("name", "version", "graph_mode"):
        place = root.at("engine", name)
        if place.value is ABSENT or not (place.value is None or isinstance(place.value, str)):
            yield bad(place, f"the engine states {name}, or null", "text or null")
    for name in _CAPABILITIES:
        place = root.at("capabilities", name)
        absent = place.value is ABSENT and name != "video"
        if absent or not (place.value is None or place.value is ABSENT or isinstance(place.value, bool)):
            yield bad(place, f"capability {name} is known, or null", "true, false or null")
    yield from _sweep_ids(root.at("speed_sweep_ids"))


def _sweep_ids(place: Place) -> Iterator[Violation]:
    if place.given and not isinstance(place.value, list):
        yield wrong_kind(place, "array")
    seen: set[str] = set()
    for item in place.elements():
        if not item.said or item.text in seen:
            yield bad(item, "a sweep is named once", "an id that was not named before")
        seen.add(item.text)


@rule("registry-reference", 58, on=(RECIPE, SWEEP))
def registry_reference(document: Document, context: Context) -> Iterator[Violation]:
    """A recipe's sweeps, instance and hardware are there and point back; so is the recipe of a sweep."""
    root = document.root
    if document.format == SWEEP:
        recipe = beside(document, RECIPE, root.at("recipe_id").text, context)
        if recipe is None:
            yield missing_evidence(root.at("recipe_id"), f"recipe {root.at('recipe_id').text}")
        elif not any(
            same(i.value, root.at("id").value) for i in recipe.root.at("speed_sweep_ids").elements()
        ):
            yield bad(
                root.at("recipe_id"), f"{recipe.path} does not name this sweep", "a recipe that names it"
            )
        return
    parts = [(SWEEP, item) for item in root.at("speed_sweep_ids").elements()]
    parts += [(INSTANCE, root.at("model_instance_id")), (HARDWARE, root.at("hardware_id"))]
    for format, place in parts:
        if not place.said:
            continue
        found = beside(document, format, place.text, context)
        if found is None:
            yield missing_evidence(place, f"{_FOLDERS[format]} {place.text}")
        elif format == SWEEP and not same(found.root.at("recipe_id").value, root.at("id").value):
            yield bad(place, f"{found.path} is of another recipe", shown(found.root.at("recipe_id").value))


@rule("status-derived", 59, on=(RECIPE, PAGE))
def status_derived(document: Document, context: Context) -> Iterator[Violation]:
    """The status of a recipe is the one that its launch, its instance and its sweeps give."""
    root = document.root
    if not isinstance(document.value, dict):
        return
    found = derive_status(document.value, _parts(document, context), context.trusted)
    status = root.at("status")
    if same(status.value, found.status):
        return
    lacks = [one for one in found.requirements if not one.holds]
    for one in (one for one in lacks if one.here):
        message = f"{one.name} is missing: {one.because}"
        yield Violation(status.pointer, message[:400], found.status, shown(status.value))
    if any(one.here for one in lacks):
        return
    for one in lacks:
        message = f"status {shown(status.value)} was not worked out: {one.because}"
        yield Violation(status.pointer, message[:400], "at hand", "absent", ABSENT_EVIDENCE, "unknown")
    if not lacks:
        held = "; ".join(found.supported_by)
        yield Violation(
            status.pointer, f"every requirement holds: {held}"[:600], found.status, shown(status.value)
        )


def _parts(document: Document, context: Context) -> Parts:
    """Return what a recipe refers to, as far as it is at hand."""
    root = document.root

    def value(format: str, id: Place) -> dict[str, Value] | None:
        found = beside(document, format, id.text, context)
        return found.value if found is not None and isinstance(found.value, dict) else None

    sweeps = [value(SWEEP, id) for name in SWEEP_LISTS for id in root.at(name).elements()]
    return Parts(
        instance=value(INSTANCE, root.at("model_instance_id")),
        hardware=value(HARDWARE, root.at("hardware_id")),
        sweeps=[sweep for sweep in sweeps if sweep is not None],
    )


@rule("recommended", 58, on=RECIPE)
def recommended(document: Document, context: Context) -> Iterator[Violation]:
    """A recommended recipe is validated, for one card, on a bridge network; one for each hardware."""
    root = document.root
    place = root.at("recommended")
    if place.value is not True:
        return
    launch = root.at("launch")
    if root.at("status").value != "validated":
        yield bad(root.at("status"), "recommended and not validated", "validated")
    if root.at("hardware_count").value != 1:
        yield bad(root.at("hardware_count"), "recommended for more than one card", "1")
    if launch.at("network_mode").given and launch.at("network_mode").value != "bridge":
        yield bad(launch.at("network_mode"), "recommended with another network", "bridge")
    if launch.at("ipc").value == "host":
        yield bad(launch.at("ipc"), "recommended with the IPC of the host", "no host IPC")
    for other in context.of_format(RECIPE):
        if (
            other.path != document.path
            and other.root.at("recommended").value is True
            and same(other.root.at("hardware_id").value, root.at("hardware_id").value)
        ):
            yield bad(place, f"{other.path} is recommended for the same hardware", "one for a hardware")


@rule("imported-status", 60, on=(RECIPE, PAGE))
def imported_status(document: Document, context: Context) -> Iterator[Violation]:
    """A recipe taken over from a leaderboard is a candidate for reference; a validated one is none."""
    root = document.root
    kind, status = root.at("launch", "kind"), root.at("status")
    if root.at("recipe_source").value in LEADERBOARDS:
        if status.value != "candidate":
            yield bad(status, "an observation that was taken over is a candidate", "candidate")
        if kind.value != "reference" and (kind.given or document.format == RECIPE):
            yield bad(kind, "an observation that was taken over is for reference", "reference")
    if status.value == "validated" and kind.value == "reference":
        yield bad(kind, "a validated recipe can be launched", "an executable launch")


@rule("unknown-reason", 60, on=RECIPE)
def unknown_reason(document: Document, context: Context) -> Iterator[Violation]:
    """A null has a fact that says why it is unknown; what a fact says is unknown is null."""
    facts = document.root.at("facts")
    for group in ("capabilities", "engine", "serving"):
        for name, place in document.root.at(group).members():
            fact = facts.at(f"{group}.{name}")
            state = fact.at("state").value
            if place.value is None and (state != "unknown" or not fact.at("reason").given):
                yield bad(
                    place, "null without a reason", f"facts has {group}.{name} with state unknown and reason"
                )
            if place.value is not None and state == "unknown":
                yield bad(place, f"{fact.pointer} says it is unknown", "null")


@rule("sweep-shape", 58, on=SWEEP)
def sweep_shape(document: Document, context: Context) -> Iterator[Violation]:
    """A sweep has id, recipe, source and rows with numbers or null; its totals are those of its rows."""
    root = document.root
    for name in ("id", "recipe_id"):
        if not root.at(name).said:
            yield bad(root.at(name), f"{name} is text", "text")
    if root.at("schema_version").value != REGISTRY:
        yield bad(root.at("schema_version"), "the format is not that of the registry", REGISTRY)
    rows = root.at("rows").objects()
    if not rows:
        yield bad(root.at("rows"), "a sweep has rows", "a list that is not empty")
    for row in rows:
        for name in _ROW:
            place = row.at(name)
            if place.given and not is_number(place.value):
                yield bad(place, f"{name} is a number, or null", "a number or null")
        if not row.at("status").said:
            yield bad(row.at("status"), "a row has a status", "text")


_PEAKS: Final = (("peak_generation_tps", "decode_tok_s"), ("peak_prompt_tps", "prefill_tok_s"))


@rule("sweep-totals", on=SWEEP)
def sweep_totals(document: Document, context: Context) -> Iterator[Violation]:
    """What a sweep states of all rows is so: how many there are, and the highest rates among them."""
    metrics, rows = document.root.at("metrics"), document.root.at("rows").objects()
    count = metrics.at("point_count")
    if count.given and not same(count.value, len(rows)):
        yield bad(count, f"there are {len(rows)} rows", str(len(rows)))
    for name, column in _PEAKS:
        numbers = [n for row in rows for n in (decimal(row.at(column).value),) if n is not None]
        said = decimal(metrics.at(name).value)
        if said is not None and (not numbers or max(numbers) != said):
            yield bad(
                metrics.at(name), f"no highest {column} of the rows", str(max(numbers, default="absent"))
            )


def _rows(document: Document) -> list[Place]:
    """Return the rows of a sweep, or of every sweep that a page shows."""
    sweeps = document.root.at("speed_sweeps").objects() if document.format == PAGE else [document.root]
    return [row for sweep in sweeps for row in sweep.at("rows").objects()]


def printed(shown_number: Place, exact: Place) -> bool:
    """Say whether a number is another one, or that one rounded to the digits that are shown."""
    one, other = decimal(shown_number.value), decimal(exact.value)
    if one is None or other is None or same(shown_number.value, exact.value):
        return one is not None and other is not None
    exponent = one.as_tuple().exponent
    small = isinstance(exponent, int) and -17 <= exponent < 0 and abs(other) < _LARGEST
    return small and other.quantize(one, ROUND_HALF_EVEN) == one


@rule("legacy-convention", on=(SWEEP, PAGE), severity="warn")
def legacy_convention(document: Document, context: Context) -> Iterator[Violation]:
    """The rate of a sweep is not comparable with rates per interval when the run's own lab counted events."""
    known = list(known_runs(document, context))
    for row in _rows(document):
        rate = row.at("decode_tok_s")
        for record, value, conventional in known:
            if printed(rate, value):
                small = abs(conventional) < _LARGEST
                text = str(conventional.quantize(Decimal("0.01"), ROUND_HALF_EVEN) if small else conventional)
                name = shown(record.root.at("metric_accounting", "published_convention").value)
                message = f"{record.path}{value.pointer} counts it as {name}; per interval it is {text}"
                yield Violation(rate.pointer, message[:400], text, shown(rate.value))


@rule("context-is-configured-maximum", on=(SWEEP, PAGE), severity="warn")
def context_is_configured_maximum(document: Document, context: Context) -> Iterator[Violation]:
    """The context of an observed row is the length of its prompts, not the most that a server takes."""
    root = document.root
    page = document.format == PAGE
    recipe = document if page else beside(document, RECIPE, root.at("recipe_id").text, context)
    limits = [root.at("metrics", "max_context_tokens")]
    limits += [recipe.root.at("serving", "max_context_tokens")] if recipe is not None else []
    observed = root.at("source", "kind").value == "leaderboard"
    observed |= recipe is not None and recipe.root.at("recipe_source").value in LEADERBOARDS
    for row in _rows(document) if observed else ():
        place = row.at("context_tokens")
        if place.given and any(same(place.value, limit.value) for limit in limits):
            yield bad(
                place,
                "it equals the configured maximum; no row says how long prompts were",
                "a prompt length",
            )


@rule("instance-shape", 58, on=INSTANCE)
def instance_shape(document: Document, context: Context) -> Iterator[Violation]:
    """A model instance has id, repository and weights; its revision is a full commit or null."""
    root = document.root
    for name in ("id", "model_id", "repository"):
        if not root.at(name).said:
            yield bad(root.at(name), f"{name} is text", "text")
    revision = root.at("revision")
    if revision.given and not COMMIT.fullmatch(revision.text):
        yield bad(revision, "the revision is no full commit", "40 hex digits or null")
    said = root.at("huggingface", "repository")
    if said.given and not same(said.value, root.at("repository").value):
        yield bad(said, "two repositories are named", shown(root.at("repository").value))
