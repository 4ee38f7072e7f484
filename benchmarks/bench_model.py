"""How fast are a model's files sealed and verified where they lie? (P1, P6)."""

from pathlib import Path
from typing import Final

from measure import Case, Sample, alternate, timed
from rows import Finding, Goal, Row, against, inverse, row
from setting import Setting

SHA_BOUND: Final = (
    "SHA-256: one core does 1.4 GB/s of it and 3 of BLAKE3, in series; two files go on two cores at most"
)
VERIFY_BOUND: Final = "SHA-256, as for sealing"
NO_MODE: Final = "there is no mode that leaves SHA-256 out: both digests are always kept"

SEAL: Final = "prov seal (by reference)"
VERIFY: Final = "prov verify (by reference)"

P1: Final = Goal("seal, both digests / b3sum", 2.4, bound=SHA_BOUND)
P1_ALONE: Final = Goal("seal, BLAKE3 alone / b3sum", 1.0)
P1_BOTH: Final = Goal("b3sum then sha256sum / seal", 7.0, at_least=True, bound=SHA_BOUND)
P6: Final = Goal("verify, both digests / b3sum --check", 2.4, bound=VERIFY_BOUND)
P6_ALONE: Final = Goal("b3sum --check / verify, BLAKE3 alone", 1.0, at_least=True)


def seal_model(setting: Setting) -> Row:
    """Measure P1: seal W1 by reference, beside the programs that only print digests."""
    files = _files(setting)

    def ours(_: int) -> Sample:
        return timed(setting.prov("seal", setting.model_spec, "--store", setting.fresh("store")))

    def lists(*program: str) -> Case:
        return Case(program[0], lambda _: timed(setting.command(*program, *files)))

    cases = [Case(SEAL, ours)]
    cases += [lists(tool) for tool in ("b3sum", "sha256sum") if setting.has(tool)]
    timings = alternate(cases, setting.rounds, setting.say)
    findings = [
        against(P1, timings, SEAL, "b3sum"),
        Finding(P1_ALONE, None, NO_MODE),
        inverse(P1_BOTH, timings, SEAL, "b3sum", "sha256sum"),
    ]
    rate = setting.model.size_bytes / 1e9
    facts = {f"{case} GB/s": rate / timings.time(case).median for case in timings.samples}
    return row("P1", "seal a model by reference (W1)", timings, findings, facts)


def verify_model(setting: Setting) -> Row:
    """Measure P6: verify W1 where it lies, beside a checksum list."""
    store = setting.fresh("store")
    timed(setting.prov("seal", setting.model_spec, "--store", store))
    cases = [Case(VERIFY, lambda _: timed(setting.prov("verify", "model", "--store", store)))]
    for tool in ("b3sum", "sha256sum"):
        if setting.has(tool):
            cases.append(_check_case(setting, tool))
    timings = alternate(cases, setting.rounds, setting.say)
    findings = [against(P6, timings, VERIFY, "b3sum --check"), Finding(P6_ALONE, None, NO_MODE)]
    rate = setting.model.size_bytes / 1e9
    facts = {f"{case} GB/s": rate / timings.time(case).median for case in timings.samples}
    return row("P6", "verify a model where it lies (W1)", timings, findings, facts)


def _check_case(setting: Setting, tool: str) -> Case:
    listed = setting.fresh("list")
    timed(setting.command(tool, *_files(setting), output=listed))
    return Case(f"{tool} --check", lambda _: timed(setting.command(tool, "--check", listed)))


def _files(setting: Setting) -> list[Path]:
    return sorted(setting.model.path.iterdir())
