"""Measure how fast one process hashes: one line of JSON for each round, as it ends."""

import hashlib
import json
import sys
import time

SIZE_BYTES = 16 << 20

algorithm, rounds = sys.argv[1], int(sys.argv[2])
data = bytes(SIZE_BYTES)
for number in range(rounds):
    began = time.monotonic_ns()
    digest = hashlib.new(algorithm, data).hexdigest()
    took_ns = time.monotonic_ns() - began
    line = {
        "round": number,
        "algorithm": algorithm,
        "bytes": SIZE_BYTES,
        "took_ns": took_ns,
        "digest": digest,
    }
    print(json.dumps(line), flush=True)
