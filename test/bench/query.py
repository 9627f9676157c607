"""dev/bench query: CPU and wall-clock time of questions to a store that 300 nodes have filled (docs/benchmarks.md).

The store is made once and kept in --directory. It takes about 1 GB, and some minutes to make. The same options make the
same store.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

import measure
import lib
import report

WALL_MS_MAX = {"all": 800, "node": 150, "service": 300, "series": 500, "labels": 100}  # medians, with 13 M samples and two CPUs
RSS_GROWTH_MAX = 0.2
FULL_SAMPLES = 13_000_000


def fill(binary, options):
    """Returns the directory of the store."""
    # A store of another schema would seem empty, or would lack what queries of this release read.
    schema = subprocess.run([binary, "schema"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    directory = options.directory / f"query-{schema}-{options.nodes}-{options.samples}-{options.seed}"
    if (directory / "complete").exists():
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    made = subprocess.run([binary, "fill", directory, str(options.nodes), str(options.samples), str(options.seed)], check=True, stdout=subprocess.PIPE, text=True)
    print(f"made {directory}: {made.stdout.strip()}")
    (directory / "complete").touch()
    return directory


def main():
    parser = argparse.ArgumentParser(prog="dev/bench query", description=__doc__)
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--samples", type=int, default=FULL_SAMPLES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=7, help="of each question; the figures are medians")
    parser.add_argument("--directory", type=pathlib.Path, help="keeps the stores that were made (~/.cache/tributary-bench)",
                        default=pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "tributary-bench")
    parser.add_argument("--no-history", action="store_true")
    options = parser.parse_args()
    binary = lib.BIN / "query_bench"
    directory = fill(binary, options)
    out = subprocess.run([binary, "ask", directory, str(options.runs)], check=True, stdout=subprocess.PIPE, text=True).stdout
    lines = [json.loads(line) for line in out.splitlines()]
    rss = lines.pop()
    commit = report.commit_name()
    reference = measure.reference_ns()
    figures, verdicts = [], []
    print(f"{'question':<12}{'CPU ms':>10}{'wall ms':>10}{'answer':>12}")
    for line in lines:
        name = line["question"]
        print(f"{name:<12}{line['cpu_ms']:>10.1f}{line['wall_ms']:>10.1f}{line['answer']:>12}")
        figures += [(f"query_{name}_cpu", line["cpu_ms"], "ms"), (f"query_{name}_wall", line["wall_ms"], "ms")]
        if name in WALL_MS_MAX:
            most = WALL_MS_MAX[name]
            verdicts.append((f"{name}: at most {most} ms: {line['wall_ms']:.0f}", line["wall_ms"] <= most))
    growth = rss["rss_after_kib"] / rss["rss_before_kib"] - 1
    print(f"resident memory: {rss['rss_before_kib'] / 1024:.0f} MiB before the questions, {rss['rss_after_kib'] / 1024:.0f} MiB after them, "
          f"{rss['rss_peak_kib'] / 1024:.0f} MiB at most")
    figures += [(f"query_{name.removesuffix('_kib')}", value / 1024, "MiB") for name, value in rss.items()]
    verdicts.append((f"resident memory grows by at most {RSS_GROWTH_MAX:.0%}: {growth:.1%}", growth <= RSS_GROWTH_MAX))
    # Figures of a smaller store have no place beside those of the full one.
    if not options.no_history and options.samples == FULL_SAMPLES:
        report.append_history(figures, commit, reference)
    report.print_verdicts(verdicts)
    report.exit_with(verdicts)


if __name__ == "__main__":
    try:
        main()
    except lib.Failure as failure:
        sys.exit(f"FAILED: {failure}")
