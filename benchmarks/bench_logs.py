"""What becomes of a benchmark's logs: how long to seal, how small? (W3; no goal of its own)."""

from typing import Final

from measure import Case, Sample, alternate, timed
from rows import Row, row
from setting import Setting

SEAL: Final = "prov seal (held)"
PACKED: Final = "tar | zstd -3 -T2"


def seal_logs(setting: Setting) -> Row:
    """Measure W3: seal two large logs, contents held, beside packing them."""
    logs = setting.logs.path
    stores = []
    tarred = setting.fresh("logs.tar.zst")

    def ours(_: int) -> Sample:
        stores.append(setting.fresh("store"))
        return timed(setting.prov("seal", logs, "--name", "logs", "--store", stores[-1]))

    cases = [Case(SEAL, ours)]
    if setting.has("tar") and setting.has("zstd"):
        text = "tar -cf - . | zstd -q -f -3 -T2 -o $1"
        cases.append(Case(PACKED, lambda _: timed(setting.shell(text, tarred, cwd=logs))))
    timings = alternate(cases, setting.rounds, setting.say)
    stored = sum(path.stat().st_blocks * 512 for path in stores[0].rglob("*") if path.is_file())
    facts: dict[str, float] = {"input bytes": setting.logs.size_bytes, "store bytes on disk": stored}
    if tarred.exists():
        facts["tar.zst bytes"] = tarred.stat().st_size
    return row("W3", "seal logs (W3), contents held", timings, [], facts)
