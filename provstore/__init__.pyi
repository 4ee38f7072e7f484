"""Types of the promised names; a test holds this in step with ``__init__.py``."""

from provstore.errors import ProvError as ProvError
from provstore.ids import (
    RawId as RawId,
)
from provstore.ids import (
    object_id as object_id,
)
from provstore.ids import (
    parse_digest as parse_digest,
)
from provstore.ids import (
    record_id as record_id,
)
from provstore.ids import (
    to_raw as to_raw,
)
from provstore.records import Record as Record
from provstore.records.facts import Fact as Fact
from provstore.records.facts import Facts as Facts
from provstore.records.observation import Observation as Observation
from provstore.records.packet import (
    Claim as Claim,
)
from provstore.records.packet import (
    Entry as Entry,
)
from provstore.records.packet import (
    Origin as Origin,
)
from provstore.records.packet import (
    Packet as Packet,
)
from provstore.records.packet import (
    Pin as Pin,
)
from provstore.records.tree import (
    TreeChild as TreeChild,
)
from provstore.records.tree import (
    TreeEntry as TreeEntry,
)
from provstore.records.tree import (
    TreeIndex as TreeIndex,
)
from provstore.records.tree import (
    TreeLeaf as TreeLeaf,
)
from provstore.reports import (
    Check as Check,
)
from provstore.reports import (
    Damage as Damage,
)
from provstore.reports import (
    DiffReport as DiffReport,
)
from provstore.reports import (
    DoctorReport as DoctorReport,
)
from provstore.reports import (
    FsckReport as FsckReport,
)
from provstore.reports import (
    GcReport as GcReport,
)
from provstore.reports import (
    Listed as Listed,
)
from provstore.reports import (
    Missing as Missing,
)
from provstore.reports import (
    PackReport as PackReport,
)
from provstore.reports import (
    ProveReport as ProveReport,
)
from provstore.reports import (
    RefStep as RefStep,
)
from provstore.reports import (
    RestoreReport as RestoreReport,
)
from provstore.reports import (
    SealReport as SealReport,
)
from provstore.reports import (
    StatsReport as StatsReport,
)
from provstore.reports import (
    UnpackReport as UnpackReport,
)
from provstore.reports import (
    VerifyReport as VerifyReport,
)
from provstore.store.opening import (
    init_store as init_store,
)
from provstore.store.opening import (
    open_pack as open_pack,
)
from provstore.store.opening import (
    open_reader as open_reader,
)
from provstore.store.opening import (
    open_store as open_store,
)
from provstore.store.protocol import Reader as Reader
from provstore.store.protocol import Store as Store
from provstore.store.resolving import resolve as resolve
from provstore.verbs.comparing import verify_against as verify_against
from provstore.verbs.comparing import verify_checksums as verify_checksums
from provstore.verbs.diffing import diff as diff
from provstore.verbs.diffing import side as side
from provstore.verbs.doctoring import doctor as doctor
from provstore.verbs.exporting import export as export
from provstore.verbs.listing import (
    cat as cat,
)
from provstore.verbs.listing import (
    cat_object as cat_object,
)
from provstore.verbs.listing import (
    log as log,
)
from provstore.verbs.listing import (
    ls as ls,
)
from provstore.verbs.listing import (
    stats as stats,
)
from provstore.verbs.locating import Located as Located
from provstore.verbs.locating import locate as locate
from provstore.verbs.packing import pack as pack
from provstore.verbs.packing import unpack as unpack
from provstore.verbs.proving import prove as prove
from provstore.verbs.proving import verify_proof as verify_proof
from provstore.verbs.restoring import restore as restore
from provstore.verbs.sealing import SealOptions as SealOptions
from provstore.verbs.sealing import seal_spec as seal_spec
from provstore.verbs.sweeping import fsck as fsck
from provstore.verbs.sweeping import gc as gc
from provstore.verbs.verifying import verify as verify

__version__: str
__all__: list[str]
