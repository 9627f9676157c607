"""Tests that the same seeds give the same runs in separate processes.

If a run depends on an address or on the seed of a hash, this test fails. Otherwise a failing seed might not replay.
"""

import os
import pathlib
import re
import subprocess

SIMULATOR = pathlib.Path(os.environ["TRIBUTARY_BIN"]) / "simulator"
RUNS = 3


def result(faults):
    out = subprocess.run([SIMULATOR, "--seeds", "20", "--faults", faults, "--keep-going"], capture_output=True, text=True, check=False).stdout
    return re.sub(r" seconds=.*", "", out)


for kinds in ("nr", "nrcde"):
    results = {result(kinds) for _ in range(RUNS)}
    assert len(results) == 1 and "hash=" in next(iter(results)), f"{RUNS} runs of the same seeds differ: {results}"
    print(next(iter(results)).splitlines()[0])
