"""Rules for the catalog of guides, the catalog of packages, and the lanes of a coverage registry."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final

from provstore.evidence.jsonreader import ABSENT
from provstore.graph.rules.citing import inside, not_there
from provstore.graph.rules.formats import FAMILY, GUIDES, LANES, PACKAGE_CATALOG
from provstore.graph.rules.packages import CATALOG, cites
from provstore.graph.rules.places import SLUG, Place, shown
from provstore.graph.rules.rule import Context, Document, Violation, bad, missing_evidence, rule

CLASSES: Final = (
    "starter-guide",
    "candidate-portable-repro",
    "lab-replay",
    "record-capsule",
    "research-status",
    "archived",
)
AUDIENCES: Final = ("beginner", "intermediate", "expert", "researcher", "historical")
COMPONENTS: Final = (
    "platform_install",
    "model_download",
    "source_restore",
    "build",
    "launch",
    "validation",
    "patch_links",
    "hashes",
)
KINDS: Final = ("package", "repro", "result", "result-index", "rapid-snapshot", "rapid-snapshot-index")

_LANDING: Final = "index.html"
_LANDING_BYTES: Final = 4 << 20


@rule("guide-entry", 34, on=GUIDES)
def guide_entry(document: Document, context: Context) -> Iterator[Violation]:
    """The catalog has its format; ids and paths of guides are unique, and each guide is there."""
    if document.root.at("format").value != GUIDES:
        yield bad(document.root.at("format"), "the format is not that of a guide catalog", GUIDES)
    if not isinstance(document.root.at("guides").value, list):
        yield bad(document.root.at("guides"), "a catalog lists its guides", "a list")
    ids: set[str] = set()
    paths: set[str] = set()
    for item in document.root.at("guides").objects():
        for place, seen in ((item.at("id"), ids), (item.at("guide"), paths)):
            if not place.said or place.text in seen:
                yield bad(place, "it must be there once", "text that no other entry has")
            seen.add(place.text)
        yield from cites(item.at("guide"), context)


@rule("guide-class", 35, on=GUIDES)
def guide_class(document: Document, context: Context) -> Iterator[Violation]:
    """A guide has a known classification and audience, and says whether a clean host was tested."""
    for item in document.root.at("guides").objects():
        if item.at("classification").value not in CLASSES:
            yield bad(item.at("classification"), "no class of a guide", ", ".join(CLASSES))
        if item.at("audience").value not in AUDIENCES:
            yield bad(item.at("audience"), "no audience of a guide", ", ".join(AUDIENCES))
        if not isinstance(item.at("clean_host_tested").value, bool):
            yield bad(
                item.at("clean_host_tested"), "it says whether a clean host was tested", "true or false"
            )


@rule("guide-components", 36, on=GUIDES)
def guide_components(document: Document, context: Context) -> Iterator[Violation]:
    """A guide says of exactly eight components whether it has them."""
    for item in document.root.at("guides").objects():
        place = item.at("components")
        if sorted(name for name, _ in place.members()) != sorted(COMPONENTS):
            yield bad(place, "these are not the eight components", ", ".join(COMPONENTS))
        for _, member in place.members():
            if not isinstance(member.value, bool):
                yield bad(member, "a component is there or not", "true or false")


@rule("guide-links", 37, on=GUIDES)
def guide_links(document: Document, context: Context) -> Iterator[Violation]:
    """Every dependency link of a guide resolves inside the repository."""
    for item in document.root.at("guides").objects():
        place = item.at("dependency_links")
        if not isinstance(place.value, list):
            yield bad(place, "a guide lists its dependency links", "a list")
        for link in place.elements():
            path = link.text.partition("/blob/main/")[2] if "://" in link.text else link.text
            yield from cites(Place(link.pointer, path), context)


@rule("guide-gates", 38, on=GUIDES)
def guide_gates(document: Document, context: Context) -> Iterator[Violation]:
    """A starter guide is whole, replayed on a clean host and for beginners.

    Any other lists what is missing.
    """
    for item in document.root.at("guides").objects():
        missing = item.at("missing")
        if not isinstance(missing.value, list) or not all(gate.said for gate in missing.elements()):
            yield bad(missing, "missing gates are a list of texts", "a list of texts")
        if item.at("classification").value != "starter-guide":
            if not missing.elements():
                yield bad(missing, "it does not say which gates are missing", "at least one")
            continue
        if missing.elements():
            yield bad(missing, "a starter guide has no open gates", "an empty list")
        if item.at("clean_host_tested").value is not True:
            yield bad(item.at("clean_host_tested"), "a starter guide was replayed on a clean host", "true")
        if item.at("audience").value != "beginner":
            yield bad(item.at("audience"), "a starter guide is for beginners", "beginner")
        for _, component in item.at("components").members():
            if component.value is not True:
                yield bad(component, "a starter guide has all components", "true")


@rule("guide-uncatalogued", 39, on=GUIDES)
def guide_uncatalogued(document: Document, context: Context) -> Iterator[Violation]:
    """Every ``repro/*/README.md`` is catalogued, every catalogued path is one; so are packages registered."""
    guides = {item.at("guide").text for item in document.root.at("guides").objects()}
    packages = {item.at("package").text for item in document.root.at("guides").objects()}
    for folder, name, known in (("repro", "README.md", guides), ("packages", "package.json", packages)):
        for path in context.files.names(folder, name):
            if path not in known:
                yield Violation("/guides", f"{path} is in no entry of the catalog", path, "absent")
    for item in document.root.at("guides").objects():
        parts = item.at("guide").text.split("/")
        if item.at("guide").said and (len(parts) != 3 or parts[0] != "repro" or parts[2] != "README.md"):
            yield bad(item.at("guide"), "it is no guide of the repository", "repro/*/README.md")


class _Links(HTMLParser):
    """Collects links with their text."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self._target: str | None = None
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self._target, self._text = dict(attrs).get("href"), ""

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._target is not None:
            self.links.append((" ".join(self._text.split()).casefold(), self._target))
            self._target = None


@rule("landing-page", 50, on=GUIDES)
def landing_page(document: Document, context: Context) -> Iterator[Violation]:
    """The landing page says "read guide" for starter guides only."""
    page = context.files.read(_LANDING, _LANDING_BYTES)
    if page is None:
        yield missing_evidence(document.root, _LANDING, "its links were not looked at")
        return
    reader = _Links()
    reader.feed(page[:_LANDING_BYTES].decode("utf-8", "replace"))
    guides = document.root.at("guides").objects()
    certified = {g.at("guide").text for g in guides if g.at("classification").value == "starter-guide"}
    for text, target in reader.links:
        path = target.partition("/blob/main/")[2] if "://" in target else target
        if text == "read guide" and path not in certified:
            yield Violation(
                "/guides", f"{_LANDING} offers {shown(target)} to read", "a starter guide", shown(path)
            )


@rule("package-catalog", 49, on=PACKAGE_CATALOG)
def package_catalog(document: Document, context: Context) -> Iterator[Violation]:
    """The generated catalog has every package as its manifest has it, sorted by id, and no other."""
    listed = document.root.at("packages").objects()
    ids = [item.at("id").text for item in listed]
    if ids != sorted(ids):
        yield bad(document.root.at("packages"), "packages are not sorted by id", "sorted by id")
    for item in listed:
        path = item.at("manifest")
        package = context.cited(path.text) if inside(path.text) else None
        if package is None:
            yield from not_there(path, context)
            if context.has(path.text):
                yield bad(path, "the manifest is no JSON", "a package")
            continue
        own = dict(item.members())
        fresh = dict(package.root.members())
        for name in sorted((own.keys() | fresh.keys()) - {"manifest"}):
            wanted, said = (side.get(name, Place("", ABSENT)).value for side in (fresh, own))
            if wanted != said:
                yield bad(item.at(name), f"{path.text} says otherwise", shown(wanted))
    known = {item.at("manifest").text for item in listed}
    for name in context.files.names("packages", "package.json"):
        if name not in known:
            yield Violation("/packages", f"{name} is not in the catalog", name, "absent")


@rule("lane-family", 51, on=LANES)
def lane_family(document: Document, context: Context) -> Iterator[Violation]:
    """The registry has its format; planned families have slugs that no planned or published family has."""
    if document.root.at("format").value != LANES:
        yield bad(document.root.at("format"), "the format is not that of a coverage registry", LANES)
    taken = {family.root.at("id").text for family in context.of_format(FAMILY)}
    for item in document.root.at("planned_families").objects():
        id = item.at("id")
        if not SLUG.fullmatch(id.text) or id.text in taken:
            yield bad(id, "a planned family has a slug of its own", "a slug that no family has")
        taken.add(id.text)
        if not item.at("label").said:
            yield bad(item.at("label"), "a planned family has a label", "text")


@rule("lane-shape", 52, on=LANES)
def lane_shape(document: Document, context: Context) -> Iterator[Violation]:
    """A lane has a unique id and belongs to a known family, or to archive or excluded with a reason."""
    published = [family.root.at("id").text for family in context.of_format(FAMILY)]
    planned = [item.at("id").text for item in document.root.at("planned_families").objects()]
    seen: set[str] = set()
    for item in document.root.at("lanes").objects():
        if not SLUG.fullmatch(item.at("id").text) or item.at("id").text in seen:
            yield bad(item.at("id"), "a lane has a slug of its own", "a slug that no lane has")
        seen.add(item.at("id").text)
        kind, family = item.at("disposition").value, item.at("family_id")
        if kind not in ("family", "archive", "excluded"):
            yield bad(item.at("disposition"), "no such disposition", "family, archive or excluded")
        elif kind != "family":
            if family.given:
                yield bad(family, "only a lane of a family names one", "absent")
            if not item.at("reason").said:
                yield bad(item.at("reason"), f"a lane that is {shown(kind)} has a reason", "text")
        elif family.text not in (*published, *planned):
            yield from _family_of_lane(family, context)


def _family_of_lane(family: Place, context: Context) -> Iterator[Violation]:
    path = f"families/{family.text}.json"
    if not family.said or context.files.whole:
        yield bad(family, "no family has this id", "the id of a family")
    elif not context.has(path):
        yield missing_evidence(family, path, "whether the family exists was not looked up")


@rule("lane-artifact", 53, on=LANES)
def lane_artifact(document: Document, context: Context) -> Iterator[Violation]:
    """Every artifact of a lane has the kind that its path tells, is there, and sits in one lane."""
    seen: dict[str, str] = {}
    for lane in document.root.at("lanes").objects():
        if not lane.at("artifacts").objects():
            yield bad(lane.at("artifacts"), "a lane holds at least one artifact", "a list that is not empty")
        for item in lane.at("artifacts").objects():
            path, kind = item.at("path"), item.at("kind")
            wanted = kind_of_artifact(path.text)
            if kind.value not in KINDS or (wanted and kind.value != wanted):
                yield bad(kind, "the path is of another kind", wanted or ", ".join(KINDS))
            yield from cites(path, context)
            if path.text in seen:
                yield bad(path, f"it sits in {seen[path.text]} too", "one lane")
            seen.setdefault(path.text, lane.at("id").text or lane.pointer)


def kind_of_artifact(path: str) -> str:
    """Return the kind of a public artifact by its place in the repository; empty when it has none.

    Example:
        >>> kind_of_artifact("packages/a/package.json"), kind_of_artifact("results/README.md")
        ('package', 'result-index')
    """
    match path.split("/"):
        case ["packages", _, "package.json"]:
            return "package"
        case ["repro", _, "README.md"]:
            return "repro"
        case ["results", "README.md"]:
            return "result-index"
        case ["results", "rapid-model-snapshots-b70", "README.md"]:
            return "rapid-snapshot-index"
        case ["results", "rapid-model-snapshots-b70", _, "README.md"]:
            return "rapid-snapshot"
        case ["results", _, "README.md"]:
            return "result"
    return ""


@rule("lane-unmapped", 54, on=LANES)
def lane_unmapped(document: Document, context: Context) -> Iterator[Violation]:
    """Every public artifact of the repository sits in a lane."""
    mapped = {
        item.at("path").text
        for lane in document.root.at("lanes").objects()
        for item in lane.at("artifacts").objects()
    }
    folders = (("packages", "package.json"), ("repro", "README.md"), ("results", "README.md"),
               ("results/rapid-model-snapshots-b70", "README.md"))  # fmt: skip
    for folder, name in folders:
        for path in context.files.names(folder, name):
            if path not in mapped:
                yield Violation("/lanes", f"{path} sits in no lane", path, "absent")
    if not context.files.whole:
        yield missing_evidence(document.root.at("lanes"), CATALOG, "files that are not here may be unmapped")
