"""Names of the steps of a commit, a sweep, a rebuild and a pack, and a hook where tests stop a process.

``stores/LAYOUT.md`` says what a kill at each step leaves; a test kills a child at each and looks.
"""

from collections.abc import Callable
from typing import Final

COMMIT_STEPS: Final = (
    "stage-spooled",
    "blobs-written",
    "blobs-synced",
    "blobs-renamed",
    "blob-directories-synced",
    "frames-committed",
    "index-written",
    "index-committed",
    "commit-finished",
)
REPLACE_STEPS: Final = ("replaced-removed",)
"""After the steps of a commit, where the stage replaces what is damaged."""

REBUILD_STEPS: Final = ("rebuild-written", "rebuild-kept", "rebuild-renamed", "rebuild-finished")
SWEEP_STEPS: Final = ("sweep-written", "sweep-committed", "sweep-blobs-removed")
INIT_STEPS: Final = ("init-directories", "init-index", "init-settings")
PACK_STEPS: Final = ("pack-written", "pack-synced", "pack-renamed", "pack-directory-synced")
STEPS: Final = INIT_STEPS + COMMIT_STEPS + REPLACE_STEPS + SWEEP_STEPS + REBUILD_STEPS + PACK_STEPS


def _go_on(step: str) -> None:
    return None


hook: Callable[[str], None] = _go_on
"""Called at each step with its name; only tests set it, in a child process."""


def reached(step: str) -> None:
    """Say that a step is done."""
    hook(step)
