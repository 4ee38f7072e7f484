"""What a verb needs in some of its calls only, imported then: see ``seldom.pyi`` for the types."""

from provstore import late

PLACES = late.placed(
    {
        "provstore.gates.policy": ("MAX_POLICY_BYTES", "Policy", "load_policy"),
        "provstore.gates.verdict": ("judge_all",),
        "provstore.verbs.gathering": ("gather",),
        "provstore.verbs.sealing": ("SealOptions", "seal_paths"),
    }
)
"""Where each name comes from."""

__getattr__ = late.names(__name__, PLACES)
