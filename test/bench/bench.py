"""Measures the cost of a node and of a reducer on this machine: see dev/bench.

Every figure goes to history.jsonl as one line {commit, figure, value, unit, reference}. `reference` is the time in ns
that one round of a fixed loop took in the same run. Machines differ and are noisy, so compare value / reference if the
unit is a time.
"""

import argparse
import json
import pathlib
import subprocess
import time

import loads
import measure
import lib
import report
from measure import cpu_ns, memory_kib, program_run_time



def measure_node(load_class, rate, seconds):
    """Runs one collector and one reducer under one load.

    Yields figures for a window that begins when the programs have settled.
    """
    with lib.directory() as d, lib.programs() as programs:
        load = load_class(d)
        try:
            reducer = lib.Reducer(d)
            programs.append(reducer)
            collector = lib.Collector(d, reducer.intake_port, rate=rate)
            programs.append(collector)
            lib.wait_for("stored samples", lambda: reducer.status()["total"]["stored"] > 0, 30)
            time.sleep(6)
            pid = collector.pid

            def snapshot():
                status = reducer.status()["total"], reducer.status()["nodes"][0]["wire_bytes"]
                symbols = reducer.metric("tributary_intake_symbol_bytes_total")
                return cpu_ns(pid), cpu_ns(reducer.pid), program_run_time(pid), status[0]["captured"], status[1], symbols

            first = snapshot()
            time.sleep(seconds)
            second = snapshot()
            samples = second[3] - first[3]
            prefix = f"{load_class.name}_{rate}hz"
            symbols = second[5] - first[5]
            yield f"{prefix}_wire_bytes_per_sample", (second[4] - first[4] - symbols) / samples, "B"
            yield f"{prefix}_wire_symbol_table_bytes", symbols, "B"
            yield f"{prefix}_collector_cpu_per_1000_samples", (second[0] - first[0]) / samples * 1000 / 1e6, "ms"
            yield f"{prefix}_bpf_ns_per_sample", (second[2][0] - first[2][0]) / max(1, second[2][1] - first[2][1]), "ns"
            yield f"{prefix}_reducer_cpu_per_1000_samples", (second[1] - first[1]) / samples * 1000 / 1e6, "ms"
            for name, process in (("collector", pid), ("reducer", reducer.pid)):
                memory = memory_kib(process)
                yield f"{prefix}_{name}_rss", memory["VmRSS"] / 1024, "MiB"
                yield f"{prefix}_{name}_rss_anon", memory["RssAnon"] / 1024, "MiB"
            yield f"{prefix}_samples_per_second", samples / seconds, "1/s"
            lib.check(collector.stop() == 0, "the collector's exit code")
            lib.check_law(reducer.status(), lost=0)
        finally:
            load.stop()


def measure_ingest():
    """Measures how fast one shard decodes and commits batches, with Google Benchmark."""
    out = subprocess.run([lib.BIN / "ingest_bench", "--benchmark_format=json"], check=True, capture_output=True, text=True).stdout
    for benchmark in json.loads(out)["benchmarks"]:
        yield f"ingest_{benchmark['name'].split('/')[0].lower()}", benchmark["items_per_second"], "samples/s"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--no-history", action="store_true")
    options = parser.parse_args()

    commit = report.commit_name()
    reference = measure.reference_ns()
    figures = []
    with measure.BpfStats():
        for load in (loads.Truth, loads.Compiler):
            for rate in (20, 97):
                figures += list(measure_node(load, rate, options.seconds))
        figures += list(measure_ingest())
    print(f"{'figure':50} {'value':>14}  unit        (reference loop {reference:.1f} ns)")
    for figure, value, unit in figures:
        print(f"{figure:50} {value:14.3f}  {unit}")
    if not options.no_history:
        report.append_history(figures, commit, reference)


if __name__ == "__main__":
    main()
