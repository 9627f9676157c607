"""Starts 2,000 processes of 5 ms each within 10 s.

Measures the kernel-collector's cost and accounts for every sample.
"""

import argparse
import json
import subprocess
import sys
import time

import loads
import measure
import lib

CORE_PERCENT_MAX = 5


def main():
    parser = argparse.ArgumentParser(prog="dev/bench storm")
    parser.add_argument("--processes", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=int, default=97, help="in Hz")
    options = parser.parse_args()

    with lib.directory() as d, lib.programs() as programs, measure.BpfStats():
        storm = loads.compile_c("storm", d)
        reducer = lib.Reducer(d)
        programs.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=options.rate)
        programs.append(collector)
        lib.wait_for("stored samples", lambda: reducer.status()["total"]["stored"] > 0, 30)
        time.sleep(6)  # symbol tables of the programs that already run

        def snapshot():
            return measure.cpu_ns(collector.pid), measure.program_run_time(collector.pid)[0]

        first = snapshot()
        begin_ms = lib.now_ms()
        done = subprocess.run([storm, str(options.processes), str(options.seconds)], check=True, capture_output=True, text=True)
        outcome = json.loads(done.stdout)
        end_ms = lib.now_ms()
        second = snapshot()
        cpu_s, bpf_s = (second[0] - first[0]) / 1e9, (second[1] - first[1]) / 1e9
        peak = measure.memory_kib(collector.pid)
        time.sleep(6)
        seen = reducer.json("/api/v1/flamegraph", query='{process_executable_name="storm"}', **{"from": begin_ms, "to": end_ms})
        health = reducer.json("/api/v1/stack-health", query='{process_executable_name="storm"}', **{"from": begin_ms, "to": end_ms})
        lib.check(collector.stop() == 0, "the collector's exit code")
        status = reducer.status()["total"]

    percent = cpu_s / options.seconds * 100  # of the requested time; on a busy machine the storm may take longer
    lost = sum(status["lost"].values())
    lawful = status["captured"] == status["stored"] + lost
    print(f"{outcome['started']} processes in {outcome['seconds']:.1f} s, {options.rate} Hz")
    print(f"collector: {percent:.2f}% of one core over {options.seconds:g} s (user and system {cpu_s:.3f} s), BPF {bpf_s * 1000:.0f} ms more; "
          f"RssAnon {peak['RssAnon'] / 1024:.1f} MiB, peak RSS {peak['VmHWM'] / 1024:.1f} MiB")
    print(f"samples of them: {seen['total']['count']}, complete share {health['complete_share']}, endings {health['endings']}")
    print(f"captured {status['captured']} = stored {status['stored']} + lost {lost} {status['lost']}: {'holds' if lawful else 'BROKEN'}")
    print(f"{'holds' if percent <= CORE_PERCENT_MAX else 'FAILS'}  at most {CORE_PERCENT_MAX}% of one core")
    sys.exit(0 if lawful and percent <= CORE_PERCENT_MAX else 1)


if __name__ == "__main__":
    main()
