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

INTRODUCTION: Final = """
`prov import --check` holds documents to these rules and lists every finding with its place (a JSON pointer);
it writes nothing. A rule is for documents of some formats, told by content. Its number is that of the field's
own list; the rules without one close holes of that list.

A finding is an `error` (the rule does not hold), a `warn` (worth a look: something may be read wrongly), or
`unknown`: the rule could not look, because a file that is cited is not at hand. Such findings have the code
`evidence-absent`; they are never a pass. A headline whose record is not at hand is `INELIGIBLE`: the number
may stay as an observation. A document that no rule is for leaves the outcome `INCOMPLETE`, as does any
`unknown`.

What is wrong with the text itself (a key stated twice, a number that is not finite) is found by the rule
`readable`, with the reader's own codes.

Files that documents cite are looked for below `--root`, then among what was imported under the same name.
Below a root with `.git` in it, a cited file that is not there is an error; elsewhere it is `unknown`.

Each example below is a change to one document of a small repository that keeps every rule, in
`examples/rules/good/`, and what the rule then finds. The changes are in `examples/rules/failing.toml`.
"""
"""What all rules share, for the reference page."""

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
