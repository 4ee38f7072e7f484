"""Prometheus text (exposition format 0.0.4) into samples that keep the source text of their value.

Labels go through the parser of ``prometheus_client``, each different text of them once: a scrape repeats a
few of them for hundreds of metrics. Line numbers, types, duplicates and the digits as printed are kept here,
since that parser reports none of them.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from provstore import libraries
from provstore.evidence.finding import Extraction, Finding, ReaderResult, quoted
from provstore.evidence.lines import text_lines
from provstore.records.facts import Fact

MAX_LINE: Final = 8192
"""Longest line that is parsed; the parser's time grows with its square."""

MAX_LABEL_WORK: Final = 4_000_000_000
"""Sum of the squared lengths of the different label texts that are parsed."""

MAX_SAMPLES: Final = 50_000
"""Most samples of one scrape."""

_TYPE: Final = re.compile(r"# TYPE ([A-Za-z_:][\w:]*) (counter|gauge|histogram|summary|untyped)")
_SAMPLE: Final = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(\{.*\})?[ \t]+([!-|~]+)(?:[ \t]+-?[0-9]+)?[ \t]*")
_PREFIX: Final = "prometheus."
_MARK: Final = 7
"""Value put behind labels when they are parsed alone; another one found there belongs to the labels."""


class Sample(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One sample.

    Attributes:
        name: as the line writes it.
        labels: name and value of each label, sorted.
        text: source text of the value.
        value: its double; infinite or not a number only where the source says so.
        type: type that the scrape states for the metric, empty when it states none.
        location: the line.
    """

    name: str
    labels: tuple[tuple[str, str], ...]
    text: str
    value: float
    type: str
    location: str

    def label(self, name: str) -> str | None:
        """Return the value of a label, or None."""
        return dict(self.labels).get(name)

    @property
    def series(self) -> str:
        r"""Name and labels in the notation of the format, labels sorted.

        Example:
            >>> labels = (("a", 'x"y'),)
            >>> print(Sample(name="n", labels=labels, text="1", value=1.0, type="", location="").series)
            n{a="x\"y"}
        """
        return self.name + _notation(self.labels)


class _Labels(NamedTuple):
    """Labels that were parsed, or why they are none."""

    labels: tuple[tuple[str, str], ...]
    problem: str = ""


class _Blocks:
    """Texts of labels that were parsed, each once, as long as that takes a bounded time."""

    __slots__ = ("_known", "_work")

    def __init__(self) -> None:
        self._known: dict[str, _Labels] = {}
        self._work = 0

    def labels(self, block: str) -> _Labels:
        found = self._known.get(block)
        if found is None:
            self._work += len(block) ** 2
            if self._work > MAX_LABEL_WORK:
                return _Labels((), "more long labels than are parsed")
            found = self._known[block] = _labels(block)
        return found


class PrometheusResult(ReaderResult, frozen=True, kw_only=True):
    """A scrape: samples in the order of the file; one that is stated twice is left out."""

    samples: tuple[Sample, ...]


def read_prometheus(data: bytes) -> PrometheusResult:
    r"""Read one scrape.

    Returns:
        A fact ``prometheus.SERIES`` for every finite sample, its value as the source prints it.

    Example:
        >>> found = read_prometheus(b'# TYPE r_total counter\nr_total{reason="stop"} 2.0\n')
        >>> found.facts[0].key, found.facts[0].value, found.samples[0].type
        ('prometheus.r_total{reason="stop"}', '2.0', 'counter')
        >>> [f.code for f in read_prometheus(b"r_total two\n").findings]
        ['malformed-line']
    """
    out = Extraction()
    types: dict[str, str] = {}
    blocks = _Blocks()
    found: dict[str, Sample] = {}
    twice: dict[str, int] = {}
    for number, line in text_lines(data, out):
        if len(found) >= MAX_SAMPLES:
            out.finding(
                "too-many-samples", f"line {number}", f"more than {MAX_SAMPLES}; the rest is left out"
            )
            break
        sample = _line(line.strip(" \t"), f"line {number}", types, blocks, out)
        if sample is None:
            continue
        series = sample.series
        if series in found:
            twice[series] = number
        else:
            found[series] = sample
    for series, number in twice.items():
        message = f"{quoted(series)} is stated on {found.pop(series).location} too, so it has no value"
        out.finding("duplicate-key", f"line {number}", message)
    for series, sample in found.items():
        if math.isfinite(sample.value):
            out.fact(_PREFIX + series, sample.text, sample.location, decimal=True)
        else:
            out.finding("non-finite", sample.location, f"{quoted(series)} is {sample.text}", "warning")
    samples = tuple(found.values())
    return PrometheusResult(facts=tuple(out.facts), findings=out.findings(), samples=samples)


def _line(line: str, place: str, types: dict[str, str], blocks: _Blocks, out: Extraction) -> Sample | None:
    if len(line) > MAX_LINE:
        out.finding("line-too-long", place, f"{len(line)} characters; the limit is {MAX_LINE}")
        return None
    if line.startswith("#"):
        match = _TYPE.fullmatch(line)
        if match and types.setdefault(match[1], match[2]) != match[2]:
            out.finding("duplicate-key", place, f"{quoted(match[1])} is given a second type")
        elif not match and line.startswith("# TYPE"):
            out.finding("malformed-line", place, f"no type: {quoted(line)}")
        return None
    if not line:
        return None
    shape = _SAMPLE.fullmatch(line)
    if shape is None:
        out.finding("malformed-line", place, f"no sample of the text format: {quoted(line)}")
        return None
    name, text = shape[1], shape[3]
    labels, value = blocks.labels(shape[2] or ""), _value(text)
    if labels.problem or value is None:
        problem = labels.problem or f"no number: {quoted(text)}"
        out.finding("malformed-line", place, f"{quoted(line)}: {problem}")
        return None
    return Sample(
        name=name,
        labels=labels.labels,
        text=text,
        value=value,
        type=types.get(name) or types.get(_FAMILY.sub("", name), ""),
        location=place,
    )


def _labels(block: str) -> _Labels:
    """Return what stands between braces, the braces included; nothing for a metric without labels."""
    try:
        families = libraries.text_string_to_metric_families(f"x{block or ' '}{_MARK}")
        (sample,) = [sample for family in families for sample in family.samples]
    except (ValueError, IndexError, KeyError, TypeError) as error:
        return _Labels((), quoted(str(error)))
    if sample.value != _MARK or sample.timestamp is not None:
        return _Labels((), "the labels end before their last brace")
    return _Labels(tuple(sorted(sample.labels.items())))


def _value(text: str) -> float | None:
    """Return the double of a value as the format writes it, where Python would also take underscores."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


_FAMILY: Final = re.compile(r"_(?:total|created|bucket|count|sum)$")


def samples_of(facts: Sequence[Fact]) -> tuple[Sample, ...]:
    """Rebuild samples from the facts of a scrape; their types are not kept in facts.

    Example:
        >>> fact = Fact(key='prometheus.n{a="b"}', value="1.0", decimal=True, location="line 3")
        >>> samples_of([fact])[0].labels
        (('a', 'b'),)
    """
    out = Extraction()
    lines = [(fact, f"{fact.key.removeprefix(_PREFIX)} {fact.value}") for fact in facts if fact.decimal]
    blocks = _Blocks()
    mine = [(fact, line) for fact, line in lines if fact.key.startswith(_PREFIX)]
    found = [_line(line, fact.location, {}, blocks, out) for fact, line in mine]
    return tuple(sample for sample in found if sample is not None)


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """A sum over the series of one metric.

    Attributes:
        value: the sum, or None when nothing matched or a value is no whole number of events.
        series: how many series were summed.
        findings: why there is no value.
    """

    value: int | None
    series: int
    findings: tuple[Finding, ...] = ()


def total(samples: Sequence[Sample], name: str, where: Mapping[str, str] | None = None) -> Total:
    r"""Sum the whole-number samples of a metric, over every series that has the given labels.

    Example:
        >>> scrape = read_prometheus(b'r{k="a"} 2.0\nr{k="b"} 11.0\n').samples
        >>> total(scrape, "r").value, total(scrape, "r", {"k": "a"}).value
        (13, 2)
        >>> total(scrape, "other").value is None
        True
    """
    out = Extraction()
    matched = [s for s in samples if s.name == name and _has(s, where or {})]
    if not matched:
        out.finding("absent", "", f"no series of {quoted(name)} with these labels", "unknown")
    counts: list[int] = []
    for sample in matched:
        if math.isfinite(sample.value) and sample.value == int(sample.value) and abs(sample.value) < 2**53:
            counts.append(int(sample.value))
        else:
            out.finding("wrong-type", sample.location, f"{quoted(sample.text)} is no count")
    findings = out.findings()
    return Total(value=None if findings else sum(counts), series=len(matched), findings=findings)


def by_label(samples: Sequence[Sample], name: str, label: str) -> dict[str, Total]:
    r"""Return the total of a metric for each value of one of its labels.

    Example:
        >>> scrape = read_prometheus(b'r{pos="0"} 5.0\nr{pos="1"} 3.0\n').samples
        >>> {position: found.value for position, found in by_label(scrape, "r", "pos").items()}
        {'0': 5, '1': 3}
    """
    values = [sample.label(label) for sample in samples if sample.name == name]
    return {
        value: total(samples, name, {label: value}) for value in dict.fromkeys(values) if value is not None
    }


def delta(
    before: Sequence[Sample], after: Sequence[Sample], name: str, where: Mapping[str, str] | None = None
) -> Total:
    r"""Return how much a counter grew between two scrapes.

    A series that only the later scrape has did not start at zero for all we know, so it gives no value; a
    counter that fell was reset, and gives none either.

    Example:
        >>> scrapes = [read_prometheus(line).samples for line in (b"r_total 1.0\n", b"r_total 14.0\n")]
        >>> delta(*scrapes, "r_total").value, delta(*reversed(scrapes), "r_total").findings[0].code
        (13, 'counter-reset')
    """
    first, last = total(before, name, where), total(after, name, where)
    out = Extraction()
    out.add(first.findings + last.findings)
    mine = [[s for s in side if s.name == name and _has(s, where or {})] for side in (before, after)]
    wanted = [{sample.series for sample in side} for side in mine]
    if wanted[0] != wanted[1] and first.series and last.series:
        odd = sorted(wanted[0] ^ wanted[1])[0]
        out.finding("series-differ", "", f"only one scrape has {quoted(odd)}", "unknown")
    earlier = {sample.series: sample.value for sample in mine[0]}
    for sample in mine[1]:
        if sample.value < earlier.get(sample.series, sample.value):
            out.finding("counter-reset", sample.location, f"{quoted(sample.series)} fell between the scrapes")
    findings = out.findings()
    grown = None if findings else (last.value or 0) - (first.value or 0)
    return Total(value=grown, series=last.series, findings=findings)


def _has(sample: Sample, where: Mapping[str, str]) -> bool:
    return all(sample.label(name) == value for name, value in where.items())


def _notation(labels: tuple[tuple[str, str], ...]) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inside}}}" if inside else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
