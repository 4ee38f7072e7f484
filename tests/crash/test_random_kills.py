"""Three hundred kills at random moments; ``make torture`` does ten thousand with the same code."""

import random
from pathlib import Path

from milling import Mill

KILLS = 300


def test_nothing_reported_is_lost_and_nothing_half_done_is_seen(tmp_path: Path) -> None:
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    tally = Mill(tmp_path, seed).grind(KILLS)
    print(tally)
    assert tally.kills == KILLS
    assert sum(tally.amid.values()) == KILLS
    assert tally.amid.get("seal", 0) > KILLS / 10, "the kills do not hit the work"
    assert tally.kept > KILLS
    assert tally.leftovers > 0
