"""Gates about what was asked of the engine: the whole suite, its cap, its window, its classes."""

from collections import Counter
from typing import ClassVar

from provstore.evidence.bench import BenchResult
from provstore.evidence.jsonreader import ABSENT, kind
from provstore.evidence.rows import Row
from provstore.gates.evidence import Evidence, Found, Source, fits, split
from provstore.gates.exactness import pairs, tokens_equal
from provstore.gates.findings import Findings
from provstore.gates.kinds import Gate
from provstore.records.verdict import Judgement, UsedFact

BENCH_EXTRACT = """
[[extract]]
name = "bench"
kind = "bench"
role = "run/bench.json"
"""


class Workload(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="workload"):
    """The suite ran whole: enough prompts, the stated cap, long enough completions, known classes.

    Everything is derived from rows and run identity; a stored ``passed`` is not looked at. A completion that
    ends early after the metric's window is fine.

    Attributes:
        rows: the benchmark.
        prompts: exact number of rows; 0 for any.
        minimum_prompts: fewest rows.
        cap: exact value of ``max_tokens``; 0 for any.
        minimum_completion: fewest completion tokens of a row.
        window: fewest timed events of a row.
        timing: row field with the timed events.
        classes: fewest different prompt classes; 0 when the policy does not ask.
        known_classes: classes that may occur; empty for any.
        unique: no prompt digest occurs twice.
        whole: the run identity selects no subset of the suite.
        finish_reasons: reasons that may end a row; empty for any, and then the field may be absent.
        ends: facts that must not be true anywhere, such as a request option that ignores the end token.
    """

    rows: str
    prompts: int = 0
    minimum_prompts: int = 0
    cap: int = 0
    minimum_completion: int = 0
    window: int = 0
    timing: str = "token_id_offsets_s"
    classes: int = 0
    known_classes: tuple[str, ...] = ()
    unique: bool = True
    whole: bool = True
    finish_reasons: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()

    FACTS: ClassVar[tuple[str, ...]] = ("ends",)
    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"rows": ("bench",)}
    EXAMPLE: ClassVar[str] = (
        BENCH_EXTRACT
        + """
[[gate]]
name = "workload"
kind = "workload"
rows = "bench"
minimum_prompts = 12
cap = 512
minimum_completion = 100
window = 100
classes = 5
ends = ["bench:/run_identity/request_extra/ignore_eos"]
"""
    )

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Look at the run identity and every row."""
        source = evidence.one(self.rows, out)
        if source is None:
            return out.done("")
        rows = source.reading.rows if isinstance(source.reading, BenchResult) else ()
        if not rows:
            out.unknown("rows-absent", f"{source.place} has no rows")
        self._identity(source, len(rows), out)
        self._counts(rows, out)
        for row in rows:
            self._row(row, out)
        for reference in self.ends:
            for fact in source.select(split(reference)[1]):
                if not fits(fact, False):
                    said = Found(source, fact).used()
                    out.fail("ignore-eos", f"{reference} is {said.value}", expected="false", facts=(said,))
        facts = [
            Found(source, fact).used()
            for name in ("prompt_count", "max_tokens", "seed")
            for fact in source.select(f"/run_identity/{name}")
        ]
        return out.done(f"{len(rows)} rows of the whole suite", facts)

    def _identity(self, source: Source, rows: int, out: Findings) -> None:
        caps = source.select("/run_identity/max_tokens")
        facts = tuple(Found(source, fact).used() for fact in caps)
        if self.cap and not caps:
            out.unknown("cap-absent", "the run identity does not state max_tokens", expected=self.cap)
        elif self.cap and not fits(caps[0], self.cap):
            out.fail(f"cap-not-{self.cap}", f"the cap is {facts[0].value} tokens", expected=self.cap,
                     found=facts[0].value, facts=facts)  # fmt: skip
        if not self.whole:
            return
        chosen = [f for f in source.select("/run_identity/selected_prompt_ids") if f.value not in (None, ())]
        chosen += [f for f in source.select("/run_identity/selected_prompt_ids#length") if f.value]
        if chosen:
            said = Found(source, chosen[0]).used()
            out.fail("subset", f"only prompts {said.value} were selected", facts=(said,))
        suite = source.select("/run_identity/suite_prompt_count")
        if suite and not fits(suite[0], rows):
            said = Found(source, suite[0]).used()
            out.fail("subset", f"{rows} rows of a suite of {said.value}", expected=said.value, found=rows,
                     facts=(said,))  # fmt: skip

    def _counts(self, rows: tuple[Row, ...], out: Findings) -> None:
        if self.prompts and len(rows) != self.prompts:
            out.fail("prompt-count", f"{len(rows)} rows", expected=self.prompts, found=len(rows))
        if len(rows) < self.minimum_prompts:
            out.fail(f"fewer-than-{self.minimum_prompts}", f"{len(rows)} rows",
                     expected=f"at least {self.minimum_prompts}", found=len(rows))  # fmt: skip
        self._classes(rows, out)
        digests = Counter(d for d in (row.get("prompt_sha256") for row in rows) if isinstance(d, str))
        if self.unique and sum(digests.values()) < len(rows):
            out.unknown("prompt-hash-absent", f"{sum(digests.values())} of {len(rows)} rows have a digest")
        for digest, times in digests.items():
            if self.unique and times > 1:
                out.fail("prompts-not-unique", f"prompt {digest[:16]}… was sent {times} times")

    def _classes(self, rows: tuple[Row, ...], out: Findings) -> None:
        if not self.classes:
            return
        labels = [row.get("prompt_class") for row in rows]
        named = {label for label in labels if isinstance(label, str) and label}
        if not named:
            out.fail(
                "classes-missing", "no row states the class of its prompt", expected=self.classes, found=0
            )
            return
        unnamed = sum(not (isinstance(label, str) and label) for label in labels)
        if unnamed:
            out.fail("classes-missing", f"{unnamed} rows state no class")
        strange = sorted(named - set(self.known_classes)) if self.known_classes else []
        if strange:
            out.fail("classes-unknown", f"no known class: {', '.join(strange)[:200]}")
        if len(named) < self.classes:
            out.fail(
                "classes", f"{len(named)} classes", expected=f"at least {self.classes}", found=len(named)
            )

    def _row(self, row: Row, out: Findings) -> None:
        count = row.get("completion_tokens")
        if self.minimum_completion and type(count) is not int:
            missing = count is ABSENT or count is None
            word = out.unknown if missing else out.fail
            word(
                "completion-absent" if missing else "type",
                f"{row.where('completion_tokens')} is {kind(count)}",
            )
        elif self.minimum_completion and isinstance(count, int) and count < self.minimum_completion:
            out.fail("completion-short", f"{row.location}: {count} completion tokens",
                     expected=f"at least {self.minimum_completion}", found=count)  # fmt: skip
        stamps = row.get(self.timing)
        if self.window and not isinstance(stamps, list):
            out.unknown("timing-absent", f"{row.where(self.timing)} is {kind(stamps)}")
        elif isinstance(stamps, list) and len(stamps) < self.window:
            out.fail("window-too-short", f"{row.location}: {len(stamps)} timed events",
                     expected=f"at least {self.window}", found=len(stamps))  # fmt: skip
        reasons = row.get("finish_reasons")
        if self.finish_reasons and not isinstance(reasons, list):
            out.unknown("finish-reason-absent", f"{row.where('finish_reasons')} is {kind(reasons)}")
        for reason in reasons if self.finish_reasons and isinstance(reasons, list) else ():
            if reason not in self.finish_reasons:
                out.fail("finish-reason", f"{row.location} ended by {kind(reason)} {reason!r}"[:200])

    def idle_reason(self) -> str:
        """Say whether nothing is asked, or something that no suite can miss."""
        amounts = (
            self.prompts,
            self.minimum_prompts,
            self.cap,
            self.minimum_completion,
            self.window,
            self.classes,
        )
        if min(amounts) < 0:
            return "a count is below zero"
        return "" if any(amounts) else "it asks for no count"


class Follows(Gate, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="follows"):
    """A row that used its whole cap is exact, and so is the row after it; counted as text, such as ``2/2``.

    It shows that a full output does not disturb the next request; it says nothing about long inputs.

    Attributes:
        rows: the benchmark.
        oracle: token oracle.
        cap: completion tokens of the first of both rows.
        stated: facts that state the count of exact rows of the two.
    """

    rows: str
    oracle: str
    cap: int
    stated: tuple[str, ...] = ()

    FACTS: ClassVar[tuple[str, ...]] = ("stated",)
    INPUTS: ClassVar[dict[str, tuple[str, ...]]] = {"rows": ("bench",), "oracle": ("oracle",)}
    EXAMPLE: ClassVar[str] = (
        BENCH_EXTRACT
        + """
[[extract]]
name = "oracle"
kind = "oracle"
role = "oracle/tokens"

[[gate]]
name = "full output, then next"
kind = "follows"
rows = "bench"
oracle = "oracle"
cap = 512
"""
    )

    def judge(self, evidence: Evidence, out: Findings) -> list[Judgement]:
        """Look at the rows with the two lowest prompt indices."""
        found = sorted(
            pairs(evidence, self.rows, self.oracle, out), key=lambda pair: pair.wanted.prompt_index or 0
        )
        if len(found) < 2:
            if not out.decided:
                out.unknown("rows-absent", f"{len(found)} rows; two are needed")
            return out.done("")
        first, second = found[:2]
        count = first.row.get("completion_tokens")
        exact = sum(tokens_equal(pair, out) for pair in (first, second))
        if count != self.cap or type(count) is not int:
            out.fail("not-full", f"{first.label()} has {count} completion tokens"[:200], expected=self.cap)
        for reference in self.stated:
            stated = evidence.only(reference, out)
            if stated is not None and stated.fact.value != f"{exact}/2":
                out.fail("stated-count", f"{reference} states {stated.used().value}, the rows give {exact}/2",
                         facts=(stated.used(),))  # fmt: skip
        facts: list[UsedFact] = [*first.facts("token_ids"), *second.facts("token_ids")]
        return out.done(f"{exact}/2 rows exact, the first with {self.cap} completion tokens", facts)

    def idle_reason(self) -> str:
        """Say whether the cap means nothing."""
        return "" if self.cap > 0 and self.rows != self.oracle else "it needs a cap above zero and an oracle"
