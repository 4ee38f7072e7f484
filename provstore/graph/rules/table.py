"""The one table of rules, in the order in which findings are listed; the reference page is made from it."""

from types import ModuleType
from typing import Final

from provstore.graph.rules import (
    attestations,
    cell_rules,
    citing,
    coverage,
    family_numbers,
    family_shape,
    guides,
    notes,
    packages,
    projections,
    prose_rules,
    recipes,
    records,
    standing,
    views,
)
from provstore.graph.rules.rule import Rule

GROUPS: Final[dict[str, tuple[ModuleType, ...]]] = {
    "Families": (family_shape, family_numbers, views),
    "Coverage and closures": (coverage, cell_rules),
    "Against evidence and each other": (citing, standing, prose_rules, projections),
    "Packages": (packages,),
    "Guides, catalogs and lanes": (guides,),
    "Attestations, publications and claims": (attestations,),
    "Registry": (recipes,),
    "Records, queues and receipts": (records,),
    "Notes": (notes,),
}
"""Modules of rules, by what they are about."""


def rules_of(module: ModuleType) -> tuple[Rule, ...]:
    """Return the rules that a module defines, in the order of its text."""
    return tuple(value for value in vars(module).values() if isinstance(value, Rule))


RULES: Final[tuple[Rule, ...]] = tuple(
    found for modules in GROUPS.values() for module in modules for found in rules_of(module)
)
"""Every rule."""
