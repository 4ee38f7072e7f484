"""Registry documents of one import, together: compared with each other, and each recipe with its status."""

from typing import Final

from provstore.evidence.jsonreader import Value
from provstore.graph.documents.disagreeing import Disagreements
from provstore.graph.documents.page import page_values, parse_page
from provstore.graph.documents.reading import Reading
from provstore.graph.documents.recipe_status import DerivedStatus, Parts, derive_status
from provstore.graph.documents.registry_shape import SWEEP_LISTS
from provstore.graph.documents.values import text, texts
from provstore.graph.nodes import Node

_REFERRED_TO: Final = ("sweep", "model-instance", "hardware")
"""Formats that a recipe refers to."""


class Registry:
    """What an import brings of a registry."""

    def __init__(self) -> None:
        self.disagreements = Disagreements()
        self._documents: dict[Node, dict[str, Value]] = {}
        self._recipes: dict[str, dict[str, Value]] = {}

    def add(self, name: str, reading: Reading, data: bytes) -> None:
        """Take in one document under its name; documents of other collections are passed over."""
        if reading.understood is None:
            return
        form, value = reading.understood.format, reading.value
        self.disagreements.add(name, form, value, data)
        if form == "recipe-page":
            value = page_values(parse_page(data))[0]
        if isinstance(value, dict) and form in _REFERRED_TO:
            self._documents.setdefault(reading.understood.subject, value)
        if isinstance(value, dict) and form in ("recipe", "recipe-page"):
            self._recipes[name] = value

    def status(self, name: str) -> DerivedStatus | None:
        """Return the status that the facts of a recipe give it; None for documents of other formats."""
        recipe = self._recipes.get(name)
        return None if recipe is None else derive_status(recipe, self.parts(recipe))

    def parts(self, recipe: dict[str, Value]) -> Parts:
        """Return what a recipe refers to, as far as it was imported with it."""
        sweeps = [id for name in SWEEP_LISTS for id in texts(recipe.get(name))]
        found = [self._documents.get(Node("sweep", id)) for id in sweeps]
        return Parts(
            instance=self._documents.get(Node("model-instance", text(recipe, "model_instance_id"))),
            hardware=self._documents.get(Node("hardware", text(recipe, "hardware_id"))),
            sweeps=[sweep for sweep in found if sweep is not None],
        )
