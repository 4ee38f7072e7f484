"""Reader of the page form of a registry recipe: the text of the site that shows one recipe.

The page is read back into the members of a recipe and a sweep, each with its line, and then read as those.
What the page does not show stays absent; ``unknown`` is null. A dash in the table of speeds is null too.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from provstore.evidence.jsonreader import Number, Value, child
from provstore.graph.documents.draft import Draft, Source
from provstore.graph.documents.registry import recipe, sweep
from provstore.graph.documents.registry_shape import SCHEMA
from provstore.graph.statements import Measurement, Understood
from provstore.records.facts import Fact

_FIRST: Final = {
    "Status": "/status",
    "Source": "/recipe_source",
    "Engine": "/engine/name",
    "Engine version": "/engine/version",
    "Accelerators": "/hardware_count",
    "Tensor parallel": "/serving/tensor_parallel",
    "Context tokens": "/serving/max_context_tokens",
    "Max concurrency": "/serving/max_concurrency",
    "chat": "/capabilities/chat",
    "reasoning": "/capabilities/reasoning",
    "tools": "/capabilities/tools",
    "vision": "/capabilities/vision",
    "video": "/capabilities/video",
}
"""Labels of the first section and the members that they show."""

_SECTIONS: Final = {
    "Record": "first",
    "Identity": "identity",
    "Observed configuration": "other",
    "Provenance & metadata": "other",
    "Measured speed": "speeds",
    "Remaining fields": "rest",
    "capabilities": "/capabilities",
    "engine": "/engine",
    "serving": "/serving",
    "facts": "/facts",
    "metadata": "/metadata",
    "provenance": "/provenance",
    "sources": "sources",
}
_COLUMNS: Final = {
    "Concurrency": "concurrency",
    "Context": "context_tokens",
    "Prefill": "prefill_tok_s",
    "Decode": "decode_tok_s",
    "TTFT ms": "ttft_ms_p50",
    "Status": "status",
}
_NUMBER: Final = re.compile(r"-?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|-?[0-9]+(?:\.[0-9]+)?")
_FACT: Final = re.compile(r"(\S+(?: \S+)*) · (reason|state) (\S.*)")
_LAUNCH: Final = re.compile(r"[^·]+ · (?:candidate|validated) · ([a-z][a-z-]*)")
_LINK: Final = re.compile(r"(?:https?://)?([\w.-]+\.[a-z]{2,}/\S+?)(?: ↗)?")
_NULLS: Final = ("—", "unknown")
_LISTS: Final = ("/speed_sweep_ids", "/speed_sweeps_ids")
MAX_LINES: Final = 20_000
MAX_TITLES: Final = 5


class Shown(NamedTuple):
    """One value that a page shows.

    Attributes:
        text: as the page writes it.
        line: number of its line.
    """

    text: str
    line: int


class Page(NamedTuple):
    """A page, read.

    Attributes:
        recipe: what it shows of the recipe, by JSON pointer.
        rows: its table of speeds, each row by member.
        sweeps: id of the sweep of each row.
        left: lines that no rule covers.
    """

    recipe: dict[str, Shown]
    rows: list[dict[str, Shown]]
    sweeps: list[str]
    left: list[str]


def is_page(data: bytes) -> bool:
    """Say whether a text is the page of a recipe."""
    return data[:200].lstrip().startswith(b"Recipe\n") and f"- schema version\n- {SCHEMA}\n".encode() in data


def parse_page(data: bytes) -> Page:
    """Return what a page shows, with its lines."""
    lines = data.decode("utf-8", "replace").split("\n")[:MAX_LINES]
    return _Parsing(lines).run()


class _Parsing:
    """One walk over the lines of a page."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.page = Page({}, [], [], [])
        self.section = ""
        self.columns: list[str] = []

    def run(self) -> Page:
        at = 0
        while at < len(self.lines):
            at += self.line(at, self.lines[at].strip())
        self.titles()
        return self.page

    def titles(self) -> None:
        """Take the lines at the top that repeat the id; what follows it there is the description."""
        id = self.page.recipe.get("/id", Shown("", 0)).text
        for place in list(self.page.left) if id else ():
            number = int(place.removeprefix("line "))
            line = self.lines[number - 1].strip()
            if line.startswith(id) and number <= MAX_TITLES:
                self.page.left.remove(place)
                if line != id:
                    self.page.recipe.setdefault("/description", Shown(line.removeprefix(id), number))

    def line(self, at: int, line: str) -> int:
        """Take one line, or a label and its value; return how many were taken."""
        if not line or line == "Recipe":
            return 1
        if (heading := line.partition(" (")[0]) in _SECTIONS:
            self.section = _SECTIONS[heading]
            return 1
        before, dash, label = line.partition("- ")
        if before and self.section == "identity" and _LINK.fullmatch(before):
            self.show("/identity/url", before, at + 1)
        elif before:
            label = ""
        value = self.lines[at + 1].strip() if at + 1 < len(self.lines) else ""
        if line.startswith("|"):
            self.row([cell.strip() for cell in line.strip("|").split("|")], at + 1)
        elif found := _FACT.fullmatch(line):
            self.show(child("/facts", found[1].replace(" ", "_")) + f"/{found[2]}", found[3], at + 1)
        elif launch := _LAUNCH.fullmatch(line):
            self.show("/launch/kind", launch[1], at + 1)
        elif dash and label and value.startswith("- ") and self.pair(label, value.removeprefix("- "), at):
            return 2
        else:
            self.page.left.append(f"line {at + 1}")
        return 1

    def pair(self, label: str, value: str, at: int) -> bool:
        """Take a label and the value on the next line; say whether the label is known."""
        pointer = self.pointer(label)
        if pointer is None:
            return False
        self.show(pointer, value, at + 2)
        return True

    def pointer(self, label: str) -> str | None:
        if self.section == "first":
            return _FIRST.get(label)
        if self.section == "identity":
            return child("/identity", label.lower().replace(" ", "_"))
        if self.section == "rest":
            return "/" + label.replace(" ", "_")
        if not self.section.startswith("/"):
            return None
        place = self.section
        for part in label.split(" · "):
            place = child(place, part.strip().replace(" ", "_"))
        return place

    def show(self, pointer: str, text: str, line: int) -> None:
        """Note a value; where a page shows it first counts, and another value shown later is left over."""
        shown = self.page.recipe.setdefault(pointer, Shown(text, line))
        if shown.text != text:
            self.page.left.append(f"line {line}")

    def row(self, cells: list[str], line: int) -> None:
        if set("".join(cells)) <= {"-", ":", " "}:
            return
        if self.section == "speeds" and "Decode" in cells:
            self.columns = cells
        elif self.section == "speeds" and len(cells) == len(self.columns):
            named = dict(zip(self.columns, cells, strict=True))
            shown = {_COLUMNS[name]: Shown(text, line) for name, text in named.items() if name in _COLUMNS}
            self.page.rows.append(shown)
            self.page.sweeps.append(named.get("Sweep", ""))
        elif self.section == "sources" and (link := next(filter(None, map(_LINK.fullmatch, cells)), None)):
            self.show("/provenance/sources/0/url", f"https://{link[1]}", line)
        elif "url" not in cells:
            self.page.left.append(f"line {line}")


def page_values(page: Page) -> tuple[dict[str, Value], list[dict[str, Value]]]:
    """Return what a page shows as the members of a recipe and of its sweeps."""
    recipe: dict[str, Value] = {"schema_version": SCHEMA}
    for pointer, shown in page.recipe.items():
        if pointer.startswith("/identity/") or pointer == "/schema_version":
            continue
        listed: list[Value] = [item.strip() for item in shown.text.split(",")]
        is_list = pointer in _LISTS or pointer.endswith("/arguments")
        _put(recipe, pointer, listed if is_list else value_of(shown.text))
    run = _run(page)
    sweeps: dict[str, dict[str, Value]] = {}
    for id, row in zip(page.sweeps, page.rows, strict=True):
        made = sweeps.setdefault(id, {"id": id, "recipe_id": recipe.get("id"), "rows": []})
        if run:
            made["source"] = {"kind": "leaderboard", "url": run}
        rows = made["rows"]
        if isinstance(rows, list):
            rows.append({name: value_of(shown.text) for name, shown in row.items()})
    return recipe, list(sweeps.values())


def _run(page: Page) -> str:
    """Return the address of the leaderboard run that the page was taken from, when it names one."""
    address = page.recipe.get("/provenance/sources/0/url", Shown("", 0)).text
    ids = [shown.text for pointer, shown in page.recipe.items() if pointer.endswith("/run_id")]
    return address if any(address.endswith(f"/runs/{id}") for id in ids) else ""


def value_of(text: str) -> Value:
    """Return a value as a recipe would hold it: numbers without marks of thousands, null for the unknown.

    Example:
        >>> value_of("5,960.3"), value_of("8,192"), value_of("—"), value_of("vllm")
        (Number(text='5960.3', double=5960.3), 8192, None, 'vllm')
    """
    if text in _NULLS:
        return None
    if text in ("yes", "true", "no", "false"):
        return text in ("yes", "true")
    if _NUMBER.fullmatch(text) and len(text) < 30:
        plain = text.replace(",", "")
        return Number(plain, float(plain)) if "." in plain else int(plain)
    return text


def _put(document: dict[str, Value], pointer: str, value: Value) -> None:
    names = [name.replace("~1", "/").replace("~0", "~") for name in pointer[1:].split("/")]
    if names[:2] == ["provenance", "sources"]:
        document["provenance"] = {**_table(document, "provenance"), "sources": [{"url": value}]}
        return
    here = document
    for name in names[:-1]:
        here[name] = _table(here, name)
        below = here[name]
        if isinstance(below, dict):
            here = below
    here[names[-1]] = value


def _table(document: dict[str, Value], name: str) -> dict[str, Value]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def read_page(source: Source) -> tuple[Understood, tuple[Fact, ...]]:
    """Return what a page states: relations and measurements as those of a recipe, each with its line."""
    page = parse_page(source.data)
    document, sweeps = page_values(page)
    draft = Draft(source, "recipe-page")
    node = recipe(draft, document)
    address = page.recipe.get("/identity/url")
    if address is not None:
        draft.cite(node, "evidenced-by", address.text, "/identity/url")
    for found in sweeps:
        sweep(draft, found)
    draft.left += page.left
    made = draft.finish(node)
    places = _Places(page)
    relations = tuple(edge._replace(location=places.line(edge.location)) for edge in made.relations)
    statements = msgspec.structs.replace(
        made.statements,
        measurements=tuple(places.measurement(item) for item in made.statements.measurements),
    )
    return msgspec.structs.replace(made, relations=relations, statements=statements), tuple(_facts(page))


class _Places:
    """Lines of a page by the pointers of what was read back from it."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def line(self, pointer: str) -> str:
        """Return the line that shows a member, or the first one below it."""
        parts = pointer.split("/")
        if parts[1:2] == ["rows"] and len(parts) > 2 and int(parts[2]) < len(self.page.rows):
            row = self.page.rows[int(parts[2])]
            return f"line {next(iter(row.values())).line}" if row else ""
        shown = self.page.recipe.get(pointer)
        while shown is None and pointer:
            near = [
                found.line for place, found in self.page.recipe.items() if place.startswith(f"{pointer}/")
            ]
            if near:
                return f"line {min(near)}"
            pointer = pointer.rpartition("/")[0]
            shown = self.page.recipe.get(pointer)
        return "" if shown is None else f"line {shown.line}"

    def measurement(self, item: Measurement) -> Measurement:
        samples = tuple(
            msgspec.structs.replace(sample, location=self.line(sample.location)) for sample in item.samples
        )
        return msgspec.structs.replace(item, samples=samples, location=self.line(item.location))


def _facts(page: Page) -> Iterator[Fact]:
    """Yield everything that the page shows, as it is written there."""
    for pointer, shown in page.recipe.items():
        key = "recipe-page" + pointer.replace("/", ".")
        yield Fact(key=key, value=shown.text, location=f"line {shown.line}")
    for row in page.rows:
        for name, shown in row.items():
            yield Fact(key=f"recipe-page.rows.{name}", value=shown.text, location=f"line {shown.line}")
