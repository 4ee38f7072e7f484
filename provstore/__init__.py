"""A content-addressed provenance store for LLM benchmark evidence.

The promised names; each is loaded when it is first used, so that ``import provstore`` costs next to nothing.
``__init__.pyi`` beside this file tells type checkers the same.

Example:
    >>> import tempfile, pathlib, provstore
    >>> with tempfile.TemporaryDirectory() as place:
    ...     run = pathlib.Path(place, "run")
    ...     run.mkdir()
    ...     _ = run.joinpath("result.json").write_text("{}")
    ...     store = provstore.init_store(pathlib.Path(place, "store"))
    ...     sealed = provstore.seal(store, [run])
    ...     report = provstore.verify(store, provstore.resolve(store, sealed.name))
    ...     store.close()
    >>> report.outcome
    'PASS'
"""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "provstore.errors": ("ProvError",),
    "provstore.host.capture": ("Wanted", "capture_host"),
    "provstore.host.observing": ("capture_processes",),
    "provstore.ids": ("RawId", "object_id", "parse_digest", "record_id", "to_raw"),
    "provstore.records": ("Record",),
    "provstore.records.facts": ("Fact", "Facts"),
    "provstore.records.observation": ("Observation",),
    "provstore.records.packet": ("Claim", "Entry", "Origin", "Packet", "Pin"),
    "provstore.records.tree": ("TreeChild", "TreeEntry", "TreeIndex", "TreeLeaf"),
    "provstore.reports": (
        "Check",
        "CheckReport",
        "Damage",
        "DiffReport",
        "DoctorReport",
        "FsckReport",
        "GcReport",
        "Listed",
        "Missing",
        "PackReport",
        "ProveReport",
        "RefStep",
        "Repaired",
        "RestoreReport",
        "SealReport",
        "StatsReport",
        "UnpackReport",
        "VerifyReport",
    ),
    "provstore.store.opening": ("init_store", "open_pack", "open_reader", "open_store"),
    "provstore.store.protocol": ("Reader", "Store"),
    "provstore.store.resolving": ("resolve",),
    "provstore.verbs.checking": ("fsck", "fsck_for"),
    "provstore.verbs.collecting": ("gc",),
    "provstore.verbs.checksumming": ("verify_checksums",),
    "provstore.verbs.comparing": ("verify_against",),
    "provstore.verbs.asking": ("Asked",),
    "provstore.verbs.attributing": ("diff",),
    "provstore.verbs.diffing": ("side",),
    "provstore.verbs.doctoring": ("doctor",),
    "provstore.verbs.document_files": ("ImportOptions",),
    "provstore.verbs.exporting": ("export",),
    "provstore.verbs.generating": ("generate",),
    "provstore.verbs.importing": ("import_documents",),
    "provstore.verbs.listing": ("cat", "cat_object", "log", "ls", "show_packet", "stats"),
    "provstore.verbs.locating": ("Located", "locate"),
    "provstore.verbs.packing": ("pack",),
    "provstore.verbs.unpacking": ("unpack",),
    "provstore.verbs.proving": ("prove", "verify_proof"),
    "provstore.verbs.repairing": ("rebuild_index", "repair"),
    "provstore.verbs.restoring": ("restore",),
    "provstore.verbs.ruling": ("check_documents",),
    "provstore.verbs.covering": ("claims", "coverage"),
    "provstore.verbs.scoping": ("scope",),
    "provstore.verbs.sealing": ("SealOptions", "seal_paths", "seal_spec"),
    "provstore.verbs.closures": ("closure",),
    "provstore.verbs.querying": ("asking", "pins", "shared", "stale", "uses", "why"),
    "provstore.verbs.surveying": ("convention", "select", "timeline"),
    "provstore.verbs.unpinned": ("unpinned",),
    "provstore.verbs.running": ("prepare",),
    "provstore.verbs.verifying": ("verify",),
}

_RENAMED = {"seal_paths": "seal", "show_packet": "show"}
"""Names that are longer at home, where their kin stands beside them."""

_PLACES = {_RENAMED.get(name, name): (home, name) for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_PLACES)]


def __getattr__(name: str) -> object:
    """Load a promised name (PEP 562)."""
    if name not in _PLACES:
        raise AttributeError(f"module 'provstore' has no attribute {name!r}")
    home, at_home = _PLACES[name]
    value: object = getattr(import_module(home), at_home)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the promised names and whatever else is loaded."""
    return sorted({*globals(), *_PLACES})
