"""Readers of evidence that refers to other things by digest: locks, verifications, oracles, identities."""

import re
from typing import Final

from provstore.evidence.jsonreader import Value, child
from provstore.evidence.keyvalue import read_identity
from provstore.evidence.locks import read_lock, read_verification
from provstore.graph.documents.draft import Draft, Source
from provstore.graph.documents.shapes import ANYTHING, LEAF, Each, Many, Shape, leaves
from provstore.graph.documents.values import is_commit, is_sha256, part, parts, selectors, text
from provstore.graph.nodes import Node
from provstore.graph.relations import RelationKind
from provstore.graph.statements import Lineup, Understood
from provstore.records.facts import Fact

LOCK: Final[Shape] = leaves(
    "schema",
    scope=Each(LEAF),
    host=Each(LEAF),
    toolchain=Each(LEAF),
    python_packages=Each(LEAF),
    source=Each(Each(LEAF)),
    native_modules=Many(Each(LEAF)),
    mapped_kernel_libraries=Many(Each(LEAF)),
    external_native_module=Each(LEAF),
    runtime_files=Many(Each(LEAF)),
)
ORACLE: Final[Shape] = leaves("schema source_sha256", rows=Many(Each(LEAF)))
EXACTNESS: Final[Shape] = leaves("teacher all_exact", candidates=ANYTHING)
_IDENTITY_LINE: Final = re.compile(rb"[A-Za-z_][A-Za-z0-9_.]*=[^\n]*\n")
_JUDGED: Final = ("suite", "teacher", "oracle")
_BOUND: Final = ("verification", "lock", "verifier", "manifest")


def is_lock(value: Value) -> bool:
    """Say whether a document is a runtime lock: files and packages pinned for one host."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("host"), dict)
        and any(name in value for name in ("native_modules", "runtime_files"))
    )


def is_verification(value: Value) -> bool:
    """Say whether a document tells where modules and libraries were loaded from."""
    return isinstance(value, dict) and any(
        isinstance(found, dict) and (name.endswith("_origins") or name.startswith("mapped_"))
        for name, found in value.items()
    )


def is_oracle(value: Value) -> bool:
    """Say whether a document is a compact oracle: correct output, and the digest of the run it is of."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("source_sha256"), str)
        and isinstance(value.get("rows"), list)
    )


def is_exactness(value: Value) -> bool:
    """Say whether a document is a report of exactness: candidates compared with a teacher."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("teacher"), str)
        and isinstance(value.get("candidates"), list)
        and "all_exact" in value
    )


def read_lock_document(value: Value, source: Source) -> Understood:
    """Return what a runtime lock states."""
    draft = Draft(source, "runtime-lock")
    draft.covered(value, LOCK)
    document = value if isinstance(value, dict) else {}
    node = draft.subject("lock", "")
    for pin in read_lock(source.data).pins:
        target = Node("object", pin.sha256)
        draft.relate(node, "pins", target, pin.location, pin.name)
        if is_commit(pin.commit):
            draft.relate(target, "built-from", Node("commit", pin.commit or ""), pin.location, "observed")
    for name in part(document, "source"):
        tree, place = part(part(document, "source"), name), child("/source", name)
        if is_commit(tree.get("commit")):
            draft.relate(
                node, "built-from", Node("commit", text(tree, "commit")), child(place, "commit"), name
            )
        bundle = text(tree, "bundle")
        if bundle.endswith((".bundle", ".patch")):
            draft.relate(node, "restores-from", draft.file(bundle), child(place, "bundle"), name)
        _digests(draft, node, tree, place)
    _digests(draft, node, part(document, "host"), "/host")
    freeze = text(part(document, "python_packages"), "observed_full_freeze")
    if freeze:
        folder = source.path.rpartition("/")[0]
        path = f"{folder}/{freeze}" if folder else freeze
        draft.relate(node, "names", draft.file(path), "/python_packages/observed_full_freeze")
    chosen = {**selectors(part(document, "host")), **selectors(part(document, "toolchain"))}
    draft.lineups.append(Lineup(key=node.key, kind="lock", selectors=chosen))
    return draft.finish(node)


def _digests(draft: Draft, node: Node, table: dict[str, Value], place: str) -> None:
    for name, value in table.items():
        if isinstance(value, str) and name.endswith("_sha256") and is_sha256(value):
            draft.relate(
                node, "pins", Node("object", value), child(place, name), name.removesuffix("_sha256")
            )


def read_verification_document(value: Value, source: Source) -> Understood:
    """Return where things were loaded from: as paths of the host, which prove nothing about bytes."""
    draft = Draft(source, "runtime-verification")
    found = read_verification(source.data)
    node = draft.content()
    for origin in found.origins:
        for path in origin.paths:
            draft.relate(node, "observed", draft.file(path), origin.location, origin.name)
    return draft.finish(node)


def read_oracle_document(value: Value, source: Source) -> Understood:
    """Return what an oracle was derived from."""
    draft = Draft(source, "oracle")
    draft.covered(value, ORACLE)
    document = value if isinstance(value, dict) else {}
    node = draft.content()
    digest = document.get("source_sha256")
    if isinstance(digest, str) and is_sha256(digest):
        draft.relate(node, "derived-from", Node("object", digest), "/source_sha256")
    return draft.finish(node)


def read_exactness(value: Value, source: Source) -> Understood:
    """Return what a report of exactness compares: paths of the host, without digests."""
    draft = Draft(source, "exactness")
    draft.covered(value, EXACTNESS)
    document = value if isinstance(value, dict) else {}
    node = draft.content()
    draft.cite(node, "compares", document.get("teacher"), "/teacher")
    for place, item in parts(document, "candidates"):
        for name in ("candidate", "path"):
            draft.cite(node, "compares", item.get(name), child(place, name))
    return draft.finish(node)


def is_identity(data: bytes) -> bool:
    """Say whether a text is a run's identity: pairs that begin with a schema, then digests of files."""
    return data[:7] == b"schema=" and _IDENTITY_LINE.match(data) is not None and b"  /" in data


def read_identity_document(source: Source) -> tuple[Understood, tuple[Fact, ...]]:
    """Return what an identity binds a run to, and its facts."""
    draft = Draft(source, "identity")
    found = read_identity(source.data)
    node = draft.content()
    for fact in found.facts:
        name = fact.key.removeprefix("identity.")
        if fact.key == "identity#file" and isinstance(fact.value, tuple):
            digest, path = str(fact.value[0]), str(fact.value[1])
            draft.relate(node, "uses", Node("object", digest), fact.location, path)
            draft.relate(draft.file(path), "is-file", Node("object", digest), fact.location)
        elif isinstance(fact.value, str) and name.endswith("_sha256") and is_sha256(fact.value):
            draft.relate(node, _bond(name), Node("object", fact.value), fact.location, name)
        elif isinstance(fact.value, str) and name.endswith("_commit") and is_commit(fact.value):
            draft.relate(node, "built-from", Node("commit", fact.value), fact.location, name)
    draft.left += [finding.location for finding in found.findings if finding.severity == "error"]
    return draft.finish(node), found.facts


def _bond(name: str) -> RelationKind:
    if any(word in name for word in _JUDGED):
        return "judged-against"
    return "binds" if any(word in name for word in _BOUND) else "uses"
