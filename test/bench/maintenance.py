"""dev/bench maintenance: CPU time of the maintenance of a shard with 7 days of 15 commits/s (docs/benchmarks.md)."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

CORE_MAX = 0.01  # of a core


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    binary = pathlib.Path(os.environ["TRIBUTARY_BIN"]) / "maintenance_bench"
    cost = json.loads(subprocess.run([binary], check=True, capture_output=True, text=True).stdout)
    print(f"file                        {cost['file_bytes'] / 1e6:8.0f} MB")
    ok = True
    for name in ("before", "after"):
        mean, most = cost[f"{name}_mean_ms"], cost[f"{name}_max_ms"]
        print(f"10 minutes {name:<6} midnight  {mean:8.3f} ms CPU a second, at most {most:.1f} ms in one second")
        holds = mean / 1e3 <= CORE_MAX
        verdict = "holds" if holds else "FAILS"
        print(f"{verdict}  maintenance {name} midnight: at most {CORE_MAX:.0%} of a core: {mean / 1e3:.3%}")
        ok &= holds
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
