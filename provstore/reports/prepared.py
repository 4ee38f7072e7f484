"""Results of a preflight: what stands between a recipe and a run on one host."""

from typing import Literal

from provstore.reports.base import Report, Verdict


class Blocker(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that is not as a recipe needs it.

    Attributes:
        role: what of the recipe it belongs to: a role of its packet, or ``host/...`` and the like.
        expected: what must be.
        found: what is.
        where: path, key or command that says so.
        remedy: what a person can do.
        state: ``differs``, ``absent`` or ``unknown``: it could not be looked at, which is never a pass.
    """

    role: str
    expected: str
    found: str
    where: str
    remedy: str
    state: Literal["differs", "absent", "unknown"]


class PreflightReport(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One recipe against one host.

    Attributes:
        recipe: its name.
        sha256: digest of its bytes.
        host: directory that stood for ``/``.
        outcome: ``PASS``: nothing stands in the way. ``FAIL``: something differs or is absent.
            ``INCOMPLETE``: nothing is known to differ, and something could not be looked at.
        checked: number of things that were compared.
        blockers: all that do not hold, in the order of the recipe.
        variables: values that the recipe was filled with.
    """

    recipe: str
    sha256: str
    host: str
    outcome: Verdict
    checked: int
    blockers: tuple[Blocker, ...]
    variables: dict[str, str]
