"""Gates about the seal: a manifest lists exactly what lies there, and readers took everything as stated."""

from typing import ClassVar

from provstore.gates.evidence import Evidence, Listed, Manifest, Placed
from provstore.gates.findings import Findings
from provstore.gates.kinds import Gate
from provstore.records.verdict import Judgement, UsedFact


class Seal(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="seal"):
    """The manifest that an entry was pinned by lists every file of it, with its digest, and no other.

    Attributes:
        role: the entry.
        count: number of files that the manifest must list; 0 for any.
        sha256: digest of the manifest file itself; empty for any.
    """

    role: str
    count: int = 0
    sha256: str = ""

    EXAMPLE: ClassVar[str] = """
[[gate]]
name = "sealed"
kind = "seal"
role = "run"
count = 39
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Hold manifest and members against each other."""
        manifests = evidence.manifests.get(self.role, ())
        members = {m.place: m for m in evidence.members if m.place.startswith(self.role + "/")}
        if not manifests:
            out.unknown("manifest-absent", f"no manifest pins {self.role}", expected=self.role)
        elif not members:
            out.unknown("evidence-absent", f"no member of the packet lies below {self.role}")
        for manifest in manifests:
            self._hold(manifest, members, out)
        listed = sum(len(manifest.lines) for manifest in manifests)
        fact = tuple(
            UsedFact(place=self.role, key="manifest", value=f"{len(m.lines)} lines", object=m.object)
            for m in manifests
        )
        return out.done(f"{listed} files, each with its digest, and no other", fact)

    def _hold(self, manifest: Manifest, members: dict[str, Placed], out: Findings) -> None:
        if manifest.problem:
            out.unknown("manifest-absent", f"manifest of {self.role}: {manifest.problem}")
            return
        if self.sha256 and manifest.sha256 != self.sha256:
            out.fail("manifest-differs", "the manifest itself has another SHA-256",
                     expected=self.sha256, found=manifest.sha256)  # fmt: skip
        if self.count and len(manifest.lines) != self.count:
            out.fail("manifest-count", f"the manifest lists {len(manifest.lines)} files",
                     expected=self.count, found=len(manifest.lines))  # fmt: skip
        files = {place: m for place, m in members.items() if m.kind != "directory"}
        for line in manifest.lines:
            place = f"{self.role}/{line.name}"
            fact = UsedFact(place=place, key="manifest.line", value=line.digest, object=manifest.object,
                            location=f"line {line.line}")  # fmt: skip
            member = files.pop(place, None)
            if member is None:
                out.fail("missing-object", f"{line.name} is listed and not in the packet", facts=(fact,))
            else:
                self._digest(line, member, fact, out)
        for place, member in sorted(files.items()):
            if member.blake3 != manifest.object:  # a manifest cannot list itself
                out.fail("extra-entry", f"{place} is in the packet and not listed", found=place)

    def _digest(self, line: Listed, member: Placed, fact: UsedFact, out: Findings) -> None:
        found = member.sha256 if line.algorithm == "sha256" else member.blake3
        if member.kind == "symlink":
            out.fail("content-changed", f"{member.place} is a symlink, a file is listed", facts=(fact,))
        elif found is None:
            out.unknown(
                "evidence-absent", f"{member.place}: its {line.algorithm} is not known", facts=(fact,)
            )
        elif found != line.digest:
            out.fail("content-changed", f"{member.place} has other bytes than the manifest lists",
                     expected=line.digest, found=found, facts=(fact,))  # fmt: skip


class Readings(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="readings"):
    """Readers took everything as stated: no malformed line, duplicate key, wrong type or broken copy.

    Every policy has this gate over all of its extractors, also when it does not name it; naming it allows to
    leave findings out.

    Attributes:
        ignore: codes of findings that do not count.
    """

    ignore: tuple[str, ...] = ()

    EXAMPLE: ClassVar[str] = """
[[gate]]
name = "readings"
kind = "readings"
ignore = ["no-final-newline"]
"""

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Report what readers found, once for each object and place."""
        seen: set[tuple[str, str, str]] = set()
        count = 0
        for sources in evidence.sources.values():
            for source in sources:
                count += not source.absent
                for finding in source.findings:
                    key = (source.place, finding.code, finding.location)
                    if finding.code in self.ignore or key in seen:
                        continue
                    seen.add(key)
                    out.readings(source.place, source.object, [finding])
        if not count and not out.all:
            out.unknown("evidence-absent", "no member that an extractor names could be read")
        return out.done(f"{count} readings took everything as stated")
