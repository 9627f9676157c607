"""dev/bench metadata: joins of samples with 10,000 pods, in samples/s a core (docs/benchmarks.md)."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

WANTED = 1_000_000  # samples/s a core


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    binary = pathlib.Path(os.environ["TRIBUTARY_BIN"]) / "metadata_bench"
    out = subprocess.run([binary, "--benchmark_format=json"], check=True, capture_output=True, text=True).stdout
    slow = []
    for run in json.loads(out)["benchmarks"]:
        rate = run["items_per_second"]
        print(f"{run['name'].split('/')[0].lower():<12} {rate / 1e6:8.2f} M/s   {run['cpu_time']:.2f} {run['time_unit']} CPU")
        if run["name"] in ("Export", "ExportChurn", "Select") and rate < WANTED:
            slow.append(run["name"])
    if slow:
        sys.exit(f"slower than {WANTED} samples/s a core: {', '.join(slow)}")


if __name__ == "__main__":
    main()
