"""What every kind of gate shares: name, requirement, and how a policy's references are found in it."""

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from provstore.gates.evidence import Evidence
from provstore.gates.findings import Findings
from provstore.records.verdict import Judgement


class Gate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """Parameters of one gate; a subclass for each kind has its rule.

    Attributes:
        name: its name in the policy.
        required: the packet cannot pass without it; by default true unless the kind only warns.
        rule: why the policy asks for this, for people.
    """

    name: str
    required: bool | None = None
    rule: str = ""

    FACTS: ClassVar[tuple[str, ...]] = ()
    """Parameters that name facts."""

    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Parameters that name extractors, and the kinds of extractor that fit; empty for any."""

    ADVISORY: ClassVar[bool] = False
    """The kind only warns, so a packet cannot depend on it."""

    EXAMPLE: ClassVar[str] = ""
    """TOML of extractors and one gate of this kind."""

    @property
    def needed(self) -> bool:
        """True if the packet cannot pass without it."""
        return not self.ADVISORY if self.required is None else self.required

    @property
    def kind(self) -> str:
        """Name of its kind."""
        return str(self.__struct_config__.tag)

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Apply the rule.

        Args:
            evidence: what the policy's extractors read.
            out: an empty collector.

        Returns:
            At least one judgement.
        """
        out.unknown("no-rule", f"kind {self.kind} has no rule")
        return out.done("")

    def idle_reason(self) -> str:
        """Return why the gate could never fail as it is written, or nothing."""
        return ""

    def fact_references(self) -> Iterator[tuple[str, str]]:
        """Yield parameter and reference for each fact that it names."""
        for parameter in self.FACTS:
            for reference in named(getattr(self, parameter)):
                yield parameter, reference

    def input_names(self) -> Iterator[tuple[str, str]]:
        """Yield parameter and name for each extractor that it names."""
        for parameter in self.INPUTS:
            for name in named(getattr(self, parameter)):
                yield parameter, name


def named(value: Any) -> Iterator[str]:
    """Yield the names in a parameter: text, a list of it, lists of lists, or the keys of a table.

    Example:
        >>> list(named((("a:x", "b:y"), ("", "c:z")))), list(named({"d:k": 1}))
        (['a:x', 'b:y', 'c:z'], ['d:k'])
    """
    if isinstance(value, str):
        if value:
            yield value
    elif value is not None:
        for item in value:
            yield from named(item)
