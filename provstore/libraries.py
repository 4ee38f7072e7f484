"""Libraries that only some commands need, imported on first use: see ``libraries.pyi`` for their types."""

from provstore import late

PLACES = {
    "ctypes": ("ctypes", ""),
    "hashlib": ("hashlib", ""),
    "json": ("json", ""),
    "regex": ("regex", ""),
    "text_string_to_metric_families": ("prometheus_client.parser", "text_string_to_metric_families"),
    "sha256": ("hashlib", "sha256"),
    "tempfile": ("tempfile", ""),
    "tomllib": ("tomllib", ""),
}
"""Where each name comes from."""

__getattr__ = late.names(__name__, PLACES)
