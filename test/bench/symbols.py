"""Measures symbolization.

- One file's debug information is converted to a table, by Tributary and by llvm-gsymutil.
- The same random addresses are looked up, in the table and by the addr2line crate.
- A flame graph of many addresses is drawn.
All figures are CPU time of one core, with the files in the page cache.

    dev/bench symbols [--file ELF] [--no-history]

Without --file the script uses the reducer that was just built. The peers are the package llvm-19 and the program that
cargo builds from addr2line_bench/. If a peer is missing, its figures are not printed, and the run fails.
"""

import argparse
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

import measure
import lib

HERE = pathlib.Path(__file__).resolve().parent
GSYMUTIL = "llvm-gsymutil-19"
DEBUG_BYTES_MIN = 50e6
ADDRESSES, FLAME_GRAPH_ADDRESSES = 1_000_000, 200_000
RUNS, LOOKUP_RUNS = 5, 3
SAME_SHARE_MIN = 0.99  # of the answers; with a lower share the two would not be timed on the same work


def debug_bytes(path):
    """Returns the bytes of all .debug_* sections in the file."""
    listed = subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True).stdout
    rows = [line.partition("]")[2].split() for line in listed.splitlines() if "] .debug_" in line]
    lib.check(not any("C" in row[6] for row in rows), f"{path}: its debug sections are compressed")
    return sum(int(row[4], 16) for row in rows)


def run(command):
    """Returns the output, the CPU time (user and system) in seconds, and the peak memory in MiB."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    lib.check(process.returncode == 0, f"{command[0]}: exit code {process.returncode}")
    return out, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def in_turn(*commands):
    """Returns the best CPU time and the greatest peak memory of each command.

    Each round runs the commands one after the other, so that a noisy minute affects all of them.
    """
    results = [[run(command)[1:] for command in commands] for _ in range(RUNS)]
    return [(min(times), max(peaks)) for times, peaks in (zip(*column) for column in zip(*results))]


def ours(*arguments):
    return json.loads(run([lib.BIN / "symbols_bench", *arguments])[0])


def build_addr2line():
    """Returns (the peer's program, ""), or (None, the reason why it is missing)."""
    if shutil.which("cargo") is None:
        return None, "there is no cargo"
    # Build a copy: cargo writes a lock file next to the manifest, and the source tree may be read-only.
    source = lib.BIN.parent / "addr2line_bench_source"
    shutil.copytree(HERE / "addr2line_bench", source, dirs_exist_ok=True)
    target = lib.BIN.parent / "addr2line_bench"
    command = ["cargo", "build", "--quiet", "--release", "--manifest-path", source / "Cargo.toml", "--target-dir", target]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None, f"cargo cannot build it: {(done.stderr.strip().splitlines() or ['no message'])[0]}"
    return target / "release/addr2line_bench", ""


def same_share(path, other):
    """Returns the share of addresses that have the same answer in both files."""
    answers = [list(struct.iter_unpack("<III", file.read_bytes())) for file in (path, other)]
    lib.check(len(answers[0]) == len(answers[1]) == ADDRESSES, "answers for every address")
    return sum(a == b for a, b in zip(*answers)) / ADDRESSES


class Report:
    """Prints figures when they are measured and collects verdicts."""

    def __init__(self, history):
        self.history, self.failed, self.verdicts = history, False, []
        self.commit = subprocess.run(["git", "-c", "safe.directory=*", "-C", lib.SOURCE, "describe", "--always", "--dirty"], check=True,
                                     capture_output=True, text=True).stdout.strip()
        self.reference = measure.reference_ns()

    def figure(self, name, value, unit=""):
        print(f"{'symbols_' + name:44} {value:14.3f}  {unit}")
        self.history.write(json.dumps({"commit": self.commit, "figure": f"symbols_{name}", "value": round(value, 4), "unit": unit,
                                       "reference": round(self.reference, 2)}) + "\n")

    def bound(self, statement, value, least=None, most=None, unit=""):
        holds = value >= least if most is None else value <= most
        side, limit = ("at least", least) if most is None else ("at most", most)
        shown, limit = (f"{number:,.0f}" if number >= 1000 else f"{number:.3g}" for number in (value, limit))
        self.failed |= not holds
        self.verdicts.append(f"{'holds' if holds else 'FAILS'}  {statement}: {side} {limit}{unit}: {shown}{unit}")

    def missing(self, statement, why):
        self.failed = True
        self.verdicts.append(f"FAILS  {statement}: not measured, {why}")


def measure_extraction(report, file, directory, of_debug):
    table = directory / "table.flat"
    extract = [lib.BIN / "symbols_bench", "extract", file, table]
    counts = ours("extract", file, table)
    print(f"{file}: {of_debug / 1e6:.1f} MB of .debug_*; {counts['units']} units, {counts['rows']} rows, {counts['nodes']} nodes, "
          f"{counts['functions']} functions, {counts['malformed']} malformed; load average {os.getloadavg()[0]:.1f}")
    peer = shutil.which(GSYMUTIL)
    if peer:
        (cpu_s, peak), (peer_s, peer_peak) = in_turn(extract, [peer, "--quiet", "--num-threads=1", "--convert", file, "--out-file", directory / "table.gsym"])
        report.figure("extract_gsymutil_cpu", peer_s, "s")
        report.figure("extract_gsymutil_peak_rss", peer_peak, "MiB")
        report.figure("extract_cpu_of_gsymutil", cpu_s / peer_s)
        report.bound(f"extraction beside {GSYMUTIL}", cpu_s / peer_s, most=2, unit=" of its CPU time")
    else:
        ((cpu_s, peak),) = in_turn(extract)
        report.missing(f"extraction beside {GSYMUTIL}", f"there is no {GSYMUTIL} (package llvm-19)")
    report.figure("extract_cpu", cpu_s, "s")
    report.figure("extract_peak_rss", peak, "MiB")
    sizes = ours("pack", table)
    report.figure("flat_of_debug", sizes["flat"] / of_debug)
    report.figure("resting_of_debug", sizes["resting"] / of_debug)
    report.bound("the flat table", sizes["flat"] / of_debug * 100, most=25, unit="% of .debug_*")
    report.bound("the table at rest", sizes["resting"] / of_debug * 100, most=5, unit="% of .debug_*")
    return table


def measure_lookups(report, file, table, directory):
    addresses = directory / "addresses"
    ours("addresses", table, str(ADDRESSES), addresses)
    peer, why = build_addr2line()
    commands = [[lib.BIN / "symbols_bench", "lookup", table, addresses, directory / "answers"]]
    commands += [[peer, file, addresses, directory / "other-answers"]] if peer else []
    # Run the commands in turn, as in in_turn(). The best value of a figure is its greatest, except for times.
    results = zip(*[[json.loads(run(command)[0]) for command in commands] for _ in range(LOOKUP_RUNS)])
    found, *other = [{key: (min if key.endswith("_ms") else max)(each[key] for each in runs) for key in runs[0]} for runs in results]
    report.figure("frames_per_address", found["frames"] / ADDRESSES)
    for name in ("first", "random", "sorted", "sorted_rows"):
        report.figure(f"{name}_per_cpu_second", found[f"{name}_per_s"], "addresses/s")
    report.figure("open", found["open_ms"], "ms")
    report.bound("random look-ups with all inlined frames", found["random_per_s"], least=1.3e6, unit=" a CPU second")
    report.bound("sorted look-ups with all inlined frames", found["sorted_per_s"], least=3e6, unit=" a CPU second")
    report.bound("to open a mapped table", found["open_ms"], most=1, unit=" ms")
    if not other:
        report.missing("random look-ups beside the addr2line crate", why)
        return
    (other,) = other
    report.figure("addr2line_random_per_cpu_second", other["warm_per_s"], "addresses/s")
    report.figure("addr2line_open", other["open_ms"], "ms")
    report.figure("random_of_addr2line", found["random_per_s"] / other["warm_per_s"])
    report.figure("first_of_addr2line", found["first_per_s"] / other["first_per_s"])
    report.bound("random look-ups beside the addr2line crate, warm", found["random_per_s"] / other["warm_per_s"], least=4, unit=" times")
    same = same_share(directory / "answers", directory / "other-answers")
    report.figure("same_as_addr2line", same)
    report.bound("addresses of which both say the same", same * 100, least=SAME_SHARE_MIN * 100, unit="%")


def measure_flame_graph(report, table, directory):
    addresses = directory / "flame-graph-addresses"
    # Make more addresses than needed: some random addresses are equal.
    ours("addresses", table, str(FLAME_GRAPH_ADDRESSES * 2), addresses)
    runs = [ours("flamegraph", table, addresses, str(FLAME_GRAPH_ADDRESSES)) for _ in range(LOOKUP_RUNS)]
    drawn = min(runs, key=lambda each: each["warm_ms"])
    lib.check(drawn["addresses"] == FLAME_GRAPH_ADDRESSES, f"{drawn['addresses']} addresses differ")
    report.figure("flame_graph_first", drawn["first_ms"], "ms")
    report.figure("flame_graph_warm", drawn["warm_ms"], "ms")
    report.figure("flame_graph_function_nodes", drawn["function_nodes"])
    report.bound(f"a flame graph of {FLAME_GRAPH_ADDRESSES:,} addresses, warm", drawn["warm_ms"], most=200, unit=" ms")


def main():
    parser = argparse.ArgumentParser(prog="dev/bench symbols")
    parser.add_argument("--file", type=pathlib.Path, default=lib.BIN / "reducer")
    parser.add_argument("--no-history", action="store_true")
    options = parser.parse_args()
    of_debug = debug_bytes(options.file)
    lib.check(of_debug >= DEBUG_BYTES_MIN, f"{options.file}: {of_debug / 1e6:.1f} MB of .debug_*, which is too little to say anything")
    with lib.directory() as d, open(os.devnull if options.no_history else HERE / "history.jsonl", "a", encoding="utf-8") as history:
        report, directory = Report(history), pathlib.Path(d)
        table = measure_extraction(report, options.file, directory, of_debug)
        measure_lookups(report, options.file, table, directory)
        measure_flame_graph(report, table, directory)
    print("\n".join(report.verdicts))
    sys.exit(1 if report.failed else 0)


if __name__ == "__main__":
    try:
        main()
    except lib.Failure as failure:
        sys.exit(f"FAILED: {failure}")
