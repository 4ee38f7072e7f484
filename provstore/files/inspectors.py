"""The inspectors, each imported for the first entry of its kind: see ``inspectors.pyi`` for their types."""

from provstore import late

PLACES = late.placed(
    {
        "provstore.files.git_state": ("GitState", "filtered", "git_facts", "tracked"),
        "provstore.files.inspect_bundle": ("bundle_problems",),
        "provstore.files.inspect_elf": ("inspect_elf", "is_elf"),
        "provstore.files.inspect_git": ("conversions", "inspect_git"),
        "provstore.files.inspect_python": ("inspect_python_env",),
        "provstore.files.inspect_safetensors": ("MAX_INDEX_BYTES", "index_shards", "inspect_safetensors"),
        "provstore.files.inspect_text": ("text_facts",),
    }
)
"""Where each name comes from."""

__getattr__ = late.names(__name__, PLACES)
