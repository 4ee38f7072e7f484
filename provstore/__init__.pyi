"""Types of the promised names; a test holds this in step with ``__init__.py``."""

from provstore.errors import ProvError as ProvError
from provstore.ids import (
    RawId as RawId,
    object_id as object_id,
    parse_digest as parse_digest,
    record_id as record_id,
    to_raw as to_raw,
)
from provstore.records import Record as Record
from provstore.records.facts import Fact as Fact, Facts as Facts
from provstore.records.observation import Observation as Observation
from provstore.records.packet import (
    Claim as Claim,
    Entry as Entry,
    Origin as Origin,
    Packet as Packet,
    Pin as Pin,
)
from provstore.records.tree import (
    TreeChild as TreeChild,
    TreeEntry as TreeEntry,
    TreeIndex as TreeIndex,
    TreeLeaf as TreeLeaf,
)
from provstore.reports import (
    Check as Check,
    Damage as Damage,
    DiffReport as DiffReport,
    DoctorReport as DoctorReport,
    FsckReport as FsckReport,
    GcReport as GcReport,
    Listed as Listed,
    Missing as Missing,
    PackReport as PackReport,
    ProveReport as ProveReport,
    RefStep as RefStep,
    RestoreReport as RestoreReport,
    SealReport as SealReport,
    StatsReport as StatsReport,
    UnpackReport as UnpackReport,
    VerifyReport as VerifyReport,
)
from provstore.store.opening import (
    init_store as init_store,
    open_pack as open_pack,
    open_reader as open_reader,
    open_store as open_store,
)
from provstore.store.protocol import Reader as Reader, Store as Store
from provstore.store.resolving import resolve as resolve
from provstore.verbs.diffing import diff as diff, side as side
from provstore.verbs.doctoring import doctor as doctor
from provstore.verbs.exporting import export as export
from provstore.verbs.listing import (
    cat as cat,
    cat_object as cat_object,
    log as log,
    ls as ls,
    show_packet as show,
    stats as stats,
)
from provstore.verbs.locating import Located as Located, locate as locate
from provstore.verbs.packing import pack as pack, unpack as unpack
from provstore.verbs.proving import prove as prove, verify_proof as verify_proof
from provstore.verbs.restoring import restore as restore
from provstore.verbs.sealing import SealOptions as SealOptions, seal_paths as seal, seal_spec as seal_spec
from provstore.verbs.sweeping import fsck as fsck, gc as gc
from provstore.verbs.verifying import (
    verify as verify,
    verify_against as verify_against,
    verify_checksums as verify_checksums,
)

__version__: str
__all__: list[str]
