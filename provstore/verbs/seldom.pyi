from provstore.gates.policy import MAX_POLICY_BYTES as MAX_POLICY_BYTES
from provstore.gates.policy import Policy as Policy
from provstore.gates.policy import load_policy as load_policy
from provstore.gates.verdict import judge_all as judge_all
from provstore.verbs.gathering import gather as gather
from provstore.verbs.sealing import SealOptions as SealOptions
from provstore.verbs.sealing import seal_paths as seal_paths

PLACES: dict[str, tuple[str, str]]
