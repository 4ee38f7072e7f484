"""Do questions about a registry of 10,000 packets and 5 million relations answer in milliseconds? (P15)."""

import gc
import json
import random
import sqlite3
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import data
import msgspec
import registry
import upkeep
from measure import CommandFailedError, Sample, Spread, Timings, spread
from rows import Finding, Goal, Row, row
from setting import Setting

import provstore
from provstore.graph.index import Index
from provstore.graph.nodes import Node
from provstore.graph.questions import walking
from provstore.store.protocol import Reader
from provstore.verbs.closures import closure
from provstore.verbs.refreshing import refresh
from provstore.verbs.scoping import scope

RIVALLED: Final = ("uses", "why", "closure", "shared")
"""Questions that SQLite is asked as well."""

QUESTIONS: Final = (*RIVALLED, "scope")
ASKED: Final = 400
"""Random questions of each kind in a round."""

PAGE: Final = 200
"""Rows of an answer that are taken, as the command does unless told otherwise."""

SQLITE_ASKED: Final = 20
JQ_PART: Final = 0.02
"""Part of the packets whose relations are written out for jq, which reads all of them for each question."""

_HOLDING: Final = ", ".join(f"'{kind}'" for kind in sorted(walking.HOLDING))

P15_P99: Final = {name: Goal(f"{name}, p99 of random questions", 5.0, "ms") for name in QUESTIONS}
P15_SQLITE: Final = {name: Goal(f"SQLite recursive query / {name}", 50.0, at_least=True) for name in RIVALLED}
P15_JQ: Final = Goal("jq over the files / uses", 1000.0, at_least=True)
P15_IMPORT: Final = Goal("deriving and indexing / bare decoding of the same JSON", 100.0)


class Made(NamedTuple):
    """A registry with its index open, and things to ask about.

    Attributes:
        registry: what was made.
        reader: its store.
        graph: its index.
        objects: keys of objects, in random order.
        packets: hex ids.
        chance: gives the random questions.
    """

    registry: registry.Registry
    reader: Reader
    graph: Index
    objects: list[str]
    packets: list[str]
    chance: random.Random


def questions(setting: Setting) -> Row:
    """Measure P15: random questions over a registry, beside SQLite and jq over the same relations."""
    size = registry.scaled(setting.fraction)
    place = setting.fresh("registry")
    place.mkdir()
    setting.say(f"making a registry of {size.packets} packets and {size.families} families")
    made = registry.make(place, size)
    seconds, memory, _ = upkeep.apart(lambda: _refresh(made.store))
    setting.say(f"index made in {seconds:.1f} s with {memory} MiB")
    decoding = _decoding(made.store)
    with closing(provstore.open_store(made.store, writable=False)) as reader:
        found = refresh(reader)
        with closing(found.graph) as graph:
            asked = _asked(made, reader, graph)
            nodes, relations = graph.sizes()
            timings = Timings([*QUESTIONS, *(f"SQLite {name}" for name in RIVALLED), "jq uses"])
            single = _ours(asked, setting, timings)
            with closing(_sqlite(place / "relations.db", graph)) as database:
                _theirs(asked, database, timings)
            if setting.has("jq"):
                _jq(asked, place, timings)
    findings = [Finding(P15_P99[name], _p99(single[name])) for name in QUESTIONS]
    findings += [
        Finding(P15_SQLITE[name], _times_faster(timings, f"SQLite {name}", name)) for name in RIVALLED
    ]
    findings.append(
        Finding(P15_JQ, _times_faster(timings, "jq uses", "uses", 1 / JQ_PART))
        if "jq uses" in timings
        else Finding(P15_JQ, None, "no jq here")
    )
    findings.append(Finding(P15_IMPORT, spread([seconds / decoding])))
    facts: dict[str, float] = {
        "packets": size.packets,
        "nodes": nodes,
        "relations": relations,
        "relations/s taken in": relations / seconds,
        "MiB of memory while taken in": memory,
        "index bytes/relation": (made.store / "graph/data.mdb").stat().st_size / relations,
    }
    for name in QUESTIONS:
        facts[f"{name}, p50 in ms"] = statistics.median(single[name]) * 1e3
        facts[f"{name}, p99 in ms"] = _p99(single[name]).median
    notes = (
        f"{ASKED} random questions of each kind in a round; of `uses` and `shared` the first {PAGE} rows",
        "SQLite has the same relations with text keys in one table with an index each way, opened and warm",
        f"jq reads the relations of {JQ_PART:.0%} of the packets; its time is taken {1 / JQ_PART:.0f}-fold",
    )
    kept = Timings([name for name in timings.samples if timings.samples[name]])
    kept.samples.update({name: samples for name, samples in timings.samples.items() if samples})
    return row("P15", "questions about a registry", kept, findings, facts, notes)


def _refresh(store: Path) -> str:
    with closing(provstore.open_store(store)) as target:
        found = refresh(target)
        found.graph.close()
        return str(found.work.packets)


def _decoding(store: Path) -> float:
    """Return the seconds that decoding every record takes, with nothing done to it."""
    decode = msgspec.json.Decoder().decode
    total = 0.0
    for record in registry.tree_bytes(store):
        begun = time.perf_counter()
        decode(record)
        total += time.perf_counter() - begun
    return total


def _asked(made: registry.Registry, reader: Reader, graph: Index) -> Made:
    chance = random.Random(data.SEED)
    prefixes = {f"{chance.randrange(1 << 16):04x}" for _ in range(400)}
    objects = [node.key for prefix in sorted(prefixes) for _, node in graph.nodes("object", prefix)]
    chance.shuffle(objects)
    return Made(made, reader, graph, objects, [id.hex() for id in made.packets], chance)


def _question(made: Made, name: str) -> Callable[[], object]:
    """Return one random question of a kind."""
    graph, chance = made.graph, made.chance

    def number(node: Node) -> int:
        found = graph.number(node)
        if found is None:
            raise CommandFailedError(f"{node} is not in the graph")
        return found

    def packet() -> Node:
        return Node("packet", chance.choice(made.packets))

    if name == "uses":
        node = Node("object", chance.choice(made.objects))
        return lambda: [use for use, _ in zip(walking.uses(graph, number(node)), range(PAGE), strict=False)]
    if name == "why":
        a, b = packet(), Node("object", chance.choice(made.objects))
        return lambda: walking.connection(graph, number(a), number(b))
    if name == "shared":
        one, other = packet(), packet()
        return lambda: walking.shared(graph, number(one), number(other))[:PAGE]
    if name == "scope":
        node, where = packet(), {"cards": chance.choice((1, 2, 4, 8, 16)), "kv": "fp8"}
        return lambda: scope(made.reader, graph, node, where)
    id = bytes.fromhex(chance.choice(made.packets))
    return lambda: closure(made.reader, id, missing=True)


def _ours(made: Made, setting: Setting, timings: Timings) -> dict[str, list[float]]:
    single: dict[str, list[float]] = {name: [] for name in QUESTIONS}
    for turn in range(setting.rounds):
        for name in QUESTIONS:
            taken = []
            gc.collect()
            own = time.process_time()
            for _ in range(ASKED):
                ask = _question(made, name)
                begun = time.perf_counter()
                ask()
                taken.append(time.perf_counter() - begun)
            own = time.process_time() - own
            single[name] += taken
            timings.samples[name].append(Sample(statistics.mean(taken), own / ASKED))
            setting.say(f"round {turn + 1}: {name} {statistics.mean(taken) * 1e3:.3f} ms")
    return single


def _p99(values: list[float]) -> Spread:
    ordered = sorted(values)
    at = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)] * 1e3
    return Spread(at, at, at)


def _times_faster(timings: Timings, slow: str, fast: str, factor: float = 1.0) -> Spread:
    """Return how often the median of one case fits into that of another."""
    value = timings.time(slow).median * factor / timings.time(fast).median
    return Spread(value, value, value)


# -- the same relations elsewhere -------------------------------------------------------------------


def _relations(graph: Index) -> Iterator[tuple[str, str, str]]:
    nodes, _ = graph.sizes()
    names: list[str] = [""]
    for start in range(1, nodes + 1, 4096):
        numbers = range(start, min(start + 4096, nodes + 1))
        names += [str(node) for node in graph.nodes_at(numbers)]
    for start in range(1, nodes + 1, 4096):
        for number, edge in graph.edges(range(start, min(start + 4096, nodes + 1))):
            yield names[number], edge.kind, names[edge.node]


def _sqlite(path: Path, graph: Index) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = off")
    database.execute("PRAGMA synchronous = off")
    database.execute("PRAGMA cache_size = -500000")
    database.execute("CREATE TABLE relations (source TEXT, kind TEXT, target TEXT)")
    database.executemany("INSERT INTO relations VALUES (?, ?, ?)", _relations(graph))
    database.execute("CREATE INDEX forward ON relations (source, kind, target)")
    database.execute("CREATE INDEX back ON relations (target, kind, source)")
    database.execute("ANALYZE")
    database.commit()
    return database


_USES: Final = f"""
WITH RECURSIVE up(node, distance) AS (
  SELECT ?1, 0 UNION SELECT source, distance + 1 FROM relations JOIN up ON target = node WHERE distance < 8
) SELECT node, min(distance) AS d FROM up GROUP BY node ORDER BY d, node LIMIT {PAGE}"""
_CLOSURE: Final = f"""
WITH RECURSIVE down(node) AS (
  SELECT ?1 UNION SELECT target FROM relations JOIN down ON source = node WHERE kind IN ({_HOLDING})
) SELECT node FROM down"""
_SHARED: Final = f"""
WITH RECURSIVE a(node) AS (
  SELECT ?1 UNION SELECT target FROM relations JOIN a ON source = node WHERE kind IN ({_HOLDING})
), b(node) AS (
  SELECT ?2 UNION SELECT target FROM relations JOIN b ON source = node WHERE kind IN ({_HOLDING})
) SELECT node FROM a INTERSECT SELECT node FROM b ORDER BY node LIMIT {PAGE}"""
_WHY: Final = """
WITH RECURSIVE way(node, path, length) AS (
  SELECT ?1, ?1, 0 UNION
  SELECT target, path || ' ' || target, length + 1 FROM relations JOIN way ON source = node WHERE length < 5
) SELECT path FROM way WHERE node = ?2 ORDER BY length LIMIT 1"""


def _theirs(made: Made, database: sqlite3.Connection, timings: Timings) -> None:
    """Ask SQLite; a way only along the relations, since one that goes both ways does not end there."""
    chance = made.chance

    def packet() -> str:
        return f"packet:{chance.choice(made.packets)}"

    def member() -> str:
        return f"object:{chance.choice(made.objects)}"

    asked: dict[str, Callable[[], tuple[str, tuple[str, ...]]]] = {
        "uses": lambda: (_USES, (member(),)),
        "why": lambda: (_WHY, (packet(), member())),
        "closure": lambda: (_CLOSURE, (packet(),)),
        "shared": lambda: (_SHARED, (packet(), packet())),
    }
    for name, question in asked.items():
        for _ in range(SQLITE_ASKED):
            query, values = question()
            own = time.process_time()
            begun = time.perf_counter()
            database.execute(query, values).fetchall()
            taken = time.perf_counter() - begun
            timings.samples[f"SQLite {name}"].append(Sample(taken, time.process_time() - own))


def _jq(made: Made, place: Path, timings: Timings) -> None:
    """Ask jq who refers to an object, in files that hold the relations of some packets."""
    folder = place / "json"
    folder.mkdir()
    part = max(1, int(len(made.packets) * JQ_PART))
    for number, id in enumerate(made.packets[:part]):
        folder.joinpath(f"{number:05d}.json").write_text(json.dumps(list(_of_packet(made.graph, id))))
    files = sorted(map(str, folder.iterdir()))
    for _ in range(3):
        wanted = f"object:{made.chance.choice(made.objects)}"
        query = "[.[] | select(.target == $wanted) | .source] | unique[]"
        begun = time.perf_counter()
        done = subprocess.run(
            ["jq", "-r", "--arg", "wanted", wanted, query, *files], capture_output=True, check=False
        )
        if done.returncode:
            raise CommandFailedError(f"jq ended with {done.returncode}")
        timings.samples["jq uses"].append(Sample(time.perf_counter() - begun, 0.0))


def _of_packet(graph: Index, id: str) -> Iterator[dict[str, str]]:
    start = graph.number(Node("packet", id))
    level = [] if start is None else [start]
    seen = set(level)
    while level:
        following = []
        for number, edge in graph.edges(level, kinds=walking.HOLDING):
            source, target = graph.nodes_at((number, edge.node))
            yield {"source": str(source), "kind": edge.kind, "target": str(target)}
            if edge.node not in seen:
                seen.add(edge.node)
                following.append(edge.node)
        level = following
