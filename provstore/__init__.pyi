"""Types of the promised names; a test holds this in step with ``__init__.py``."""

from provstore.errors import ProvError
from provstore.host.capture import Wanted, capture_host
from provstore.host.observing import capture_processes
from provstore.ids import RawId, object_id, parse_digest, record_id, to_raw
from provstore.records import Record
from provstore.records.facts import Fact, Facts
from provstore.records.observation import Observation
from provstore.records.packet import Claim, Entry, Origin, Packet, Pin
from provstore.records.tree import TreeChild, TreeEntry, TreeIndex, TreeLeaf
from provstore.reports import (
    Check,
    CheckReport,
    Damage,
    DiffReport,
    DoctorReport,
    FsckReport,
    GcReport,
    Listed,
    Missing,
    PackReport,
    ProveReport,
    RefStep,
    Repaired,
    RestoreReport,
    SealReport,
    StatsReport,
    UnpackReport,
    VerifyReport,
)
from provstore.store.opening import init_store, open_pack, open_reader, open_store
from provstore.store.protocol import Reader, Store
from provstore.store.resolving import resolve
from provstore.verbs.asking import Asked
from provstore.verbs.attributing import diff
from provstore.verbs.checking import fsck, fsck_for
from provstore.verbs.checksumming import verify_checksums
from provstore.verbs.closures import closure
from provstore.verbs.collecting import gc
from provstore.verbs.comparing import verify_against
from provstore.verbs.covering import claims, coverage
from provstore.verbs.diffing import side
from provstore.verbs.doctoring import doctor
from provstore.verbs.document_files import ImportOptions
from provstore.verbs.exporting import export
from provstore.verbs.generating import generate
from provstore.verbs.importing import import_documents
from provstore.verbs.listing import cat, cat_object, log, ls, stats
from provstore.verbs.listing import show_packet as show
from provstore.verbs.locating import Located, locate
from provstore.verbs.packing import pack
from provstore.verbs.proving import prove, verify_proof
from provstore.verbs.querying import asking, pins, shared, stale, uses, why
from provstore.verbs.repairing import rebuild_index, repair
from provstore.verbs.restoring import restore
from provstore.verbs.ruling import check_documents
from provstore.verbs.running import prepare
from provstore.verbs.scoping import scope
from provstore.verbs.sealing import SealOptions, seal_spec
from provstore.verbs.sealing import seal_paths as seal
from provstore.verbs.surveying import convention, select, timeline
from provstore.verbs.unpacking import unpack
from provstore.verbs.unpinned import unpinned
from provstore.verbs.verifying import verify

__version__: str

__all__ = [
    "Asked",
    "Check",
    "CheckReport",
    "Claim",
    "Damage",
    "DiffReport",
    "DoctorReport",
    "Entry",
    "Fact",
    "Facts",
    "FsckReport",
    "GcReport",
    "ImportOptions",
    "Listed",
    "Located",
    "Missing",
    "Observation",
    "Origin",
    "PackReport",
    "Packet",
    "Pin",
    "ProvError",
    "ProveReport",
    "RawId",
    "Reader",
    "Record",
    "RefStep",
    "Repaired",
    "RestoreReport",
    "SealOptions",
    "SealReport",
    "StatsReport",
    "Store",
    "TreeChild",
    "TreeEntry",
    "TreeIndex",
    "TreeLeaf",
    "UnpackReport",
    "VerifyReport",
    "Wanted",
    "__version__",
    "asking",
    "capture_host",
    "capture_processes",
    "cat",
    "cat_object",
    "check_documents",
    "claims",
    "closure",
    "convention",
    "coverage",
    "diff",
    "doctor",
    "export",
    "fsck",
    "fsck_for",
    "gc",
    "generate",
    "import_documents",
    "init_store",
    "locate",
    "log",
    "ls",
    "object_id",
    "open_pack",
    "open_reader",
    "open_store",
    "pack",
    "parse_digest",
    "pins",
    "prepare",
    "prove",
    "rebuild_index",
    "record_id",
    "repair",
    "resolve",
    "restore",
    "scope",
    "seal",
    "seal_spec",
    "select",
    "shared",
    "show",
    "side",
    "stale",
    "stats",
    "timeline",
    "to_raw",
    "unpack",
    "unpinned",
    "uses",
    "verify",
    "verify_against",
    "verify_checksums",
    "verify_proof",
    "why",
]
