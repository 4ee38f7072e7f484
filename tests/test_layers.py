"""The order of the house: what may import what, how big a room may be, and who may touch the outside."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "provstore"

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 7

ORDER: tuple[str, ...] = (
    # words
    "provstore.errors.base",
    "provstore.errors.malformed",
    "provstore.errors.source",
    "provstore.errors.stores",
    "provstore.errors",
    "provstore.late",
    "provstore.libraries",
    "provstore.ids",
    "provstore.paths",
    # shapes
    "provstore.canon",
    "provstore.gitids",
    "provstore.records.facts",
    "provstore.records.observation",
    "provstore.records.tree",
    "provstore.records.ledger",
    "provstore.records.packet",
    "provstore.records.verdict",
    "provstore.records",
    "provstore.merkle",
    "provstore.treediff",
    "provstore.reports.base",
    "provstore.reports.asked",
    "provstore.reports.checked",
    "provstore.reports.compared",
    "provstore.reports.imported",
    "provstore.reports.judged",
    "provstore.reports.looked",
    "provstore.reports.verified",
    "provstore.reports.attempted",
    "provstore.reports.sealed",
    "provstore.reports.scoped",
    "provstore.reports.hosted",
    "provstore.reports.prepared",
    "provstore.reports",
    # store
    "provstore.store",
    "provstore.store.ahead",
    "provstore.store.frame",
    "provstore.store.frame_cache",
    "provstore.store.frame_check",
    "provstore.store.gate",
    "provstore.store.chained",
    "provstore.store.runs",
    "provstore.store.pack_format",
    "provstore.store.moment",
    "provstore.store.page_walk",
    "provstore.store.prefixes",
    "provstore.store.profile",
    "provstore.store.protocol",
    "provstore.store.objects",
    "provstore.store.contract",
    "provstore.store.resolving",
    "provstore.store.rows",
    "provstore.store.lmdb_txn",
    "provstore.store.refs",
    "provstore.store.memory_stage",
    "provstore.store.memory",
    "provstore.store.pack_writer",
    "provstore.store.steps",
    "provstore.store.system",
    "provstore.store.blobs",
    "provstore.store.data_file",
    "provstore.store.gathering",
    "provstore.store.lmdb_env",
    "provstore.store.lmdb_checks",
    "provstore.store.lmdb_ledger",
    "provstore.store.lmdb_registry",
    "provstore.store.lmdb_reader",
    "provstore.store.lmdb_replace",
    "provstore.store.pack",
    "provstore.store.frame_workers",
    "provstore.store.writer_lock",
    "provstore.store.lmdb_commit",
    "provstore.store.lmdb_stage",
    "provstore.store.lmdb_sweep",
    "provstore.store.lmdb_store",
    "provstore.store.lmdb_rebuild",
    "provstore.store.opening",
    # files
    "provstore.files",
    "provstore.files.checksums",
    "provstore.files.excluding",
    "provstore.files.git_program",
    "provstore.files.git_urls",
    "provstore.files.git_view",
    "provstore.files.inspect_bundle",
    "provstore.files.inspect_elf",
    "provstore.files.inspect_safetensors",
    "provstore.files.inspect_text",
    "provstore.files.progress",
    "provstore.files.python_origins",
    "provstore.files.inspect_python",
    "provstore.files.publishing",
    "provstore.files.root",
    "provstore.files.standins",
    "provstore.files.git_state",
    "provstore.files.hashing",
    "provstore.files.checklist",
    "provstore.files.crew",
    "provstore.files.encoding",
    "provstore.files.inspect_git",
    "provstore.files.inspect_hub",
    "provstore.files.inspectors",
    "provstore.files.outcome",
    "provstore.files.pool",
    "provstore.files.stat_cache",
    "provstore.files.cache_blocks",
    "provstore.files.threads",
    "provstore.files.walk",
    "provstore.files.plans",
    "provstore.files.remembering",
    "provstore.files.ingest",
    "provstore.files.ingest_file",
    # evidence
    "provstore.evidence",
    "provstore.evidence.aggregation",
    "provstore.evidence.finding",
    "provstore.evidence.folding",
    "provstore.evidence.jsonreader",
    "provstore.evidence.documents",
    "provstore.evidence.lines",
    "provstore.evidence.keyvalue",
    "provstore.evidence.prometheus",
    "provstore.evidence.recognising",
    "provstore.evidence.rows",
    "provstore.evidence.bench",
    "provstore.evidence.book",
    "provstore.evidence.ledger",
    "provstore.evidence.contrasting",
    "provstore.evidence.idle",
    "provstore.evidence.locks",
    "provstore.evidence.metrics",
    "provstore.evidence.comparing",
    "provstore.evidence.conventions",
    "provstore.evidence.oracle",
    "provstore.evidence.outputs",
    "provstore.evidence.expressions",
    "provstore.evidence.serverlog",
    "provstore.evidence.tallies",
    # gates
    "provstore.gates",
    "provstore.gates.extracts",
    "provstore.gates.findings",
    "provstore.gates.evidence",
    "provstore.gates.kinds",
    "provstore.gates.attempts",
    "provstore.gates.chain",
    "provstore.gates.composite",
    "provstore.gates.environment",
    "provstore.gates.exactness",
    "provstore.gates.frozen",
    "provstore.gates.identity",
    "provstore.gates.loader",
    "provstore.gates.operation",
    "provstore.gates.sealing",
    "provstore.gates.structure",
    "provstore.gates.attribution",
    "provstore.gates.timeline",
    "provstore.gates.workload",
    "provstore.gates.measure",
    "provstore.gates.claims",
    "provstore.gates.counters",
    "provstore.gates.conservation",
    "provstore.gates.registry",
    "provstore.gates.policy",
    "provstore.gates.verdict",
    # graph
    "provstore.graph",
    "provstore.graph.nodes",
    "provstore.graph.relations",
    "provstore.graph.statements",
    "provstore.graph.index",
    "provstore.graph.places",
    "provstore.graph.memory",
    "provstore.graph.scope",
    "provstore.graph.coverage",
    "provstore.graph.claims",
    "provstore.graph.documents",
    "provstore.graph.documents.shapes",
    "provstore.graph.documents.values",
    "provstore.graph.documents.draft",
    "provstore.graph.documents.naming",
    "provstore.graph.documents.family_shape",
    "provstore.graph.documents.family",
    "provstore.graph.documents.record_numbers",
    "provstore.graph.documents.record",
    "provstore.graph.documents.registry_shape",
    "provstore.graph.documents.registry",
    "provstore.graph.documents.page",
    "provstore.graph.documents.package",
    "provstore.graph.documents.submission",
    "provstore.graph.documents.evidence_files",
    "provstore.graph.documents.manifest",
    "provstore.graph.documents.attestation",
    "provstore.graph.documents.lanes",
    "provstore.graph.documents.note",
    "provstore.graph.documents.guide_page",
    "provstore.graph.documents.recipe_status",
    "provstore.graph.documents.splicing",
    "provstore.graph.documents.reading",
    "provstore.graph.documents.clashing",
    "provstore.graph.documents.facts",
    "provstore.graph.documents.joining",
    "provstore.graph.documents.disagreeing",
    "provstore.graph.documents.registering",
    "provstore.graph.deriving",
    "provstore.graph.questions",
    "provstore.graph.questions.walking",
    "provstore.graph.questions.resting",
    "provstore.graph.questions.stating",
    "provstore.store.graph_rows",
    "provstore.store.graph_adding",
    "provstore.store.graph_index",
    "provstore.graph.rules",
    "provstore.graph.rules.places",
    "provstore.graph.rules.rule",
    "provstore.graph.rules.formats",
    "provstore.graph.rules.family",
    "provstore.graph.rules.labels",
    "provstore.graph.rules.prose",
    "provstore.graph.rules.cells",
    "provstore.graph.rules.family_shape",
    "provstore.graph.rules.family_numbers",
    "provstore.graph.rules.citing",
    "provstore.graph.rules.conventions",
    "provstore.graph.rules.views",
    "provstore.graph.rules.coverage",
    "provstore.graph.rules.cell_rules",
    "provstore.graph.rules.standing",
    "provstore.graph.rules.prose_rules",
    "provstore.graph.rules.projections",
    "provstore.graph.rules.packages",
    "provstore.graph.rules.guides",
    "provstore.graph.rules.attestations",
    "provstore.graph.rules.recipes",
    "provstore.graph.rules.records",
    "provstore.graph.rules.notes",
    "provstore.graph.rules.table",
    "provstore.graph.rules.checking",
    "provstore.graph.rules.examples",
    "provstore.graph.following",
    "provstore.graph.joined",
    # host
    "provstore.host",
    "provstore.host.secrets",
    "provstore.host.sheet",
    "provstore.host.system",
    "provstore.host.devices",
    "provstore.host.toolchains",
    "provstore.host.recorded",
    "provstore.host.commands",
    "provstore.host.capture",
    "provstore.host.dimensions",
    "provstore.host.maps",
    "provstore.host.ldcache",
    "provstore.host.loader",
    "provstore.host.processes",
    "provstore.host.mapped",
    "provstore.host.observing",
    # runs
    "provstore.runs",
    "provstore.runs.ledger",
    "provstore.runs.raw",
    "provstore.runs.stream",
    "provstore.runs.suite",
    "provstore.runs.wire",
    "provstore.runs.asking",
    "provstore.runs.views",
    "provstore.runs.words",
    "provstore.runs.places",
    "provstore.runs.recipe",
    "provstore.runs.reading",
    "provstore.runs.filling",
    "provstore.runs.expected",
    "provstore.runs.expecting",
    "provstore.runs.preflight",
    # verbs
    "provstore.verbs",
    "provstore.verbs.checksumming",
    "provstore.verbs.capturing",
    "provstore.verbs.running",
    "provstore.verbs.closing",
    "provstore.verbs.doctoring",
    "provstore.verbs.inspecting",
    "provstore.verbs.keeping",
    "provstore.verbs.relating",
    "provstore.verbs.refreshing",
    "provstore.verbs.collecting",
    "provstore.verbs.locating",
    "provstore.verbs.measuring",
    "provstore.verbs.ledgering",
    "provstore.verbs.members",
    "provstore.verbs.holding",
    "provstore.verbs.comparing",
    "provstore.verbs.exporting",
    "provstore.verbs.naming",
    "provstore.verbs.passing",
    "provstore.verbs.checking",
    "provstore.verbs.packing",
    "provstore.verbs.unpacking",
    "provstore.verbs.pins",
    "provstore.verbs.gathering",
    "provstore.verbs.spec",
    "provstore.verbs.declaring",
    "provstore.verbs.entries",
    "provstore.verbs.sealing",
    "provstore.verbs.seldom",
    "provstore.verbs.judging",
    "provstore.verbs.explaining",
    "provstore.verbs.listing",
    "provstore.verbs.proving",
    "provstore.verbs.restoring",
    "provstore.verbs.document_files",
    "provstore.verbs.stored_documents",
    "provstore.verbs.importing",
    "provstore.verbs.ruling",
    "provstore.verbs.generating",
    "provstore.verbs.diffing",
    "provstore.verbs.fetching",
    "provstore.verbs.layering",
    "provstore.verbs.attributing",
    "provstore.verbs.supplying",
    "provstore.verbs.repairing",
    "provstore.verbs.rehashing",
    "provstore.verbs.verifying",
    "provstore.verbs.standing",
    "provstore.verbs.scoping",
    "provstore.verbs.covering",
    "provstore.verbs.asking",
    "provstore.verbs.closures",
    "provstore.verbs.paging",
    "provstore.verbs.surveying",
    "provstore.verbs.querying",
    "provstore.verbs.unpinned",
    # surface
    "provstore.cli.options",
    "provstore.report",
    "provstore.report.exits",
    "provstore.report.failures",
    "provstore.cli.console",
    "provstore.cli.commands",  # imports the modules of commands by name, when they are asked for
    "provstore.cli.app",
    "provstore.cli.watching",
    "provstore.cli.opening",
    "provstore.report.schemas",
    "provstore.cli.schemas",
    "provstore.report.text",
    "provstore.cli.meter",
    "provstore.cli.policies",
    "provstore.report.changes",
    "provstore.cli.diffing",
    "provstore.report.hosted",
    "provstore.cli.host",
    "provstore.report.prepared",
    "provstore.cli.running",
    "provstore.report.imports",
    "provstore.report.rulings",
    "provstore.cli.importing",
    "provstore.report.judged",
    "provstore.cli.judging",
    "provstore.report.cards",
    "provstore.report.listings",
    "provstore.report.scoped",
    "provstore.report.answers",
    "provstore.report.attempts",
    "provstore.cli.ledger",
    "provstore.cli.listing",
    "provstore.cli.querying",
    "provstore.report.summaries",
    "provstore.cli.moving",
    "provstore.cli.graph",
    "provstore.cli.scoping",
    "provstore.cli.sealing",
    "provstore.report.verdicts",
    "provstore.cli.upkeep",
    "provstore.cli.verifying",
    "provstore.cli",
    "provstore.__main__",
)
"""A module imports only modules above it."""

ONLY_IN = {
    "zstandard": ("provstore.store.frame",),
    "lmdb": ("provstore.store.lmdb",),
    "typer": ("provstore.cli",),
    "elftools": ("provstore.files.inspect_elf",),
    "prometheus_client": ("provstore.libraries",),
    "regex": ("provstore.libraries",),
    "huggingface_hub": (),
    "rich": (),
    "click": (),
}
"""Foreign packages that one room alone knows; a name stands for the modules that begin with it."""

LATE_ONLY_IN = {
    "ctypes": "provstore.store.system",
    "regex": "provstore.evidence.expressions",
    "text_string_to_metric_families": "provstore.evidence.prometheus",
}
"""What one module alone takes from ``provstore.libraries``."""

SPEAKS_OVER_PIPES = {"provstore.files.pool", "provstore.store.frame_workers"}
"""A worker process of ours talks to its parent over its own standard streams; nobody sees them."""

SLOW_TO_IMPORT = (
    "asyncio",
    "concurrent.futures",
    "ctypes",
    "dataclasses",
    "logging",
    "prometheus_client",
    "prometheus_client.parser",
    "regex",
    "secrets",
    "tomllib",
)
"""Take longer to import than a module of ours; ``provstore.libraries`` has those that are needed at all."""


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text()) for name, path in FILES.items()}
STUBS = {name_of(path): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*/*.pyi"))}
STUBS["provstore.libraries"] = ast.parse((PACKAGE / "libraries.pyi").read_text())
"""What modules import when a name of theirs is first used; the package itself may promise anything."""


def imported(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """Yield every imported module (of ours: the most precise one) with its statement."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                yield (inner if inner in FILES else module), node


def ours(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    yield from ((name, node) for name, node in imported(tree) if name.split(".")[0] == "provstore")


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or 0) - function.lineno + 1


def in_cli(name: str) -> bool:
    return name in ("provstore.cli", "provstore.__main__") or name.startswith("provstore.cli.")


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def test_the_order_names_every_module_once() -> None:
    assert len(set(ORDER)) == len(ORDER)
    assert set(ORDER) == set(FILES) - {"provstore"}


@pytest.mark.parametrize("name", FILES)
def test_a_module_imports_only_what_stands_above_it(name: str) -> None:
    above = set(ORDER[: ORDER.index(name)]) if name != "provstore" else set()
    above.add("provstore")  # the package itself: its version; the names it promises load lazily
    late = ours(STUBS[name]) if name in STUBS else ()
    assert {module for module, _ in (*ours(TREES[name]), *late)} - above - {name} == set()


@pytest.mark.parametrize("name", STUBS)
def test_what_is_imported_late_is_what_its_stub_says(name: str) -> None:
    places: dict[str, tuple[str, str]] = vars(import_module(name))["PLACES"]
    stated: dict[str | None, tuple[str | None, str]] = {}
    for node in STUBS[name].body:
        if isinstance(node, ast.ImportFrom):
            stated |= {alias.asname: (node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            stated |= {alias.asname: (alias.name, "") for alias in node.names}
    assert stated == places
    for late in places:
        assert getattr(import_module(name), late) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = import_module(name).nonsense


@pytest.mark.parametrize("name", FILES)
def test_no_import_of_ours_hides_in_a_function(name: str) -> None:
    if in_cli(name):
        return
    hidden = [node.lineno for function in functions(TREES[name]) for _, node in ours(function)]
    assert hidden == []


@pytest.mark.parametrize("name", FILES)
def test_types_are_imported_for_real(name: str) -> None:
    assert "TYPE_CHECKING" not in FILES[name].read_text()


@pytest.mark.parametrize("name", FILES)
def test_modules_and_functions_stay_small(name: str) -> None:
    assert len(FILES[name].read_text().splitlines()) <= MAX_FILE_LINES
    long = [f.name for f in functions(TREES[name]) if lines_of(f) > MAX_FUNCTION_LINES]
    assert long == []


@pytest.mark.parametrize("name", FILES)
def test_functions_take_few_parameters(name: str) -> None:
    if in_cli(name):
        return  # a command has one parameter for each of its options
    wide = []
    for function in functions(TREES[name]):
        given = function.args
        own = [
            a.arg
            for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)
            if a.arg not in ("self", "cls")
        ]
        if len(own) > MAX_PARAMETERS:
            wide.append((function.name, len(own)))
    assert wide == []


@pytest.mark.parametrize("name", FILES)
def test_only_the_surface_prints_exits_or_reads_the_environment(name: str) -> None:
    if in_cli(name):
        return
    found = []
    for node in ast.walk(TREES[name]):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("print", "input")
        ):
            found.append((node.lineno, node.func.id))
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and (node.value.id, node.attr)
            in {("os", "environ"), ("os", "getenv"), ("sys", "exit"), ("sys", "stdout"), ("sys", "stderr")}
            and not (node.attr == "stdout" and name in SPEAKS_OVER_PIPES)
        ):
            found.append((node.lineno, node.attr))
    assert found == []


@pytest.mark.parametrize("name", FILES)
def test_foreign_packages_stay_in_their_rooms(name: str) -> None:
    late = imported(STUBS[name]) if name in STUBS else ()
    for module, node in (*imported(TREES[name]), *late):
        rooms = ONLY_IN.get(module.split(".")[0])
        if rooms is not None:
            assert any(name.startswith(room) for room in rooms), f"{module} at line {node.lineno}"


def test_libraries_that_come_late_stay_in_their_rooms_too() -> None:
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "libraries":
                assert LATE_ONLY_IN.get(node.attr, name) == name, f"{node.attr} at line {node.lineno}"


@pytest.mark.parametrize("name", FILES)
def test_nothing_slow_is_imported_at_the_start(name: str) -> None:
    at_top = [n for n in TREES[name].body if isinstance(n, ast.Import | ast.ImportFrom)]
    names = {module for node in at_top for module, _ in imported(node)}
    assert names & set(SLOW_TO_IMPORT) == set()


def is_broad(handler: ast.ExceptHandler) -> bool:
    kind = handler.type
    return kind is None or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException"))


def cleans_up(handler: ast.ExceptHandler) -> bool:
    """Say whether a handler always passes on what it caught."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


@pytest.mark.parametrize("name", FILES)
def test_no_broad_except(name: str) -> None:
    broad = [
        node.lineno
        for node in ast.walk(TREES[name])
        if isinstance(node, ast.ExceptHandler) and is_broad(node) and not cleans_up(node)
    ]
    assert broad == []


def test_unchecked_bytes_are_read_through_the_one_door() -> None:
    """``Reader.chunks`` and ``Reader.record`` are called by stores themselves and by ``store.objects``."""
    callers = {
        name
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "chunks"
        and not name.startswith("provstore.store.")
    }
    assert callers == set()


def test_rooms_have_names_that_say_something() -> None:
    vague = {"utils", "util", "helpers", "common", "misc", "constants"}
    assert {name for name in FILES if vague & set(name.split("."))} == set()


def test_nothing_is_promised_for_later() -> None:
    words = ("TODO", "FIXME", "XXX", "NotImplementedError")
    assert [(name, word) for name, path in FILES.items() for word in words if word in path.read_text()] == []
