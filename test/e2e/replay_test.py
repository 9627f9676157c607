"""Tests a recorded session.

inspect counts the same samples as the reducer. A replay as three nodes gives the same stacks three times. A reducer
that dies in the middle of a replay has each sample once at the end. A replayed fleet uploads each symbol table once.
"""

import json
import subprocess
import threading
import time

import lib


def tributary(*args, check=True):
    return subprocess.run([lib.BIN / "tributary", *map(str, args)], check=check, capture_output=True, text=True)


def folded(reducer, query="{}"):
    """Returns the stacks by address with their counts. With addresses, names do not matter."""
    text = tributary("flamegraph", "--server", reducer.url, "--query", query, "--from", "-1h", "--to", "now", "--unit", "count", "--format",
                     "folded-address", "--out", "-").stdout
    return sorted(text.splitlines())


def record(d, programs, seconds=8):
    """Records a real collector's session. Returns the recording and the reducer that received the session."""
    reducer = lib.Reducer(d)
    programs.append(reducer)
    recording = d / "session.rec"
    collector = lib.Collector(d, reducer.intake_port, rate=299,
                              args=["--batch-interval", "500ms", "--record-intake-output-path", recording])
    programs.append(collector)
    lib.wait_for("stored samples", lambda: reducer.status()["total"]["stored"] > 0, 30)
    lib.run_truth(seconds)
    lib.check(collector.stop() == 0, "the collector's exit code")
    lib.check_law(reducer.status(), lost=0)
    subprocess.run(lib.ROOT + ["chmod", "a+r", recording], check=True)
    return recording, reducer


def inspect_counts_the_stored_samples():
    with lib.directory() as d, lib.programs() as programs:
        recording, reducer = record(d, programs, seconds=4)
        total = reducer.status()["total"]
        lines = [json.loads(line) for line in tributary("inspect", recording).stdout.splitlines()]
        summary = lines[-1]
        size = recording.stat().st_size
        print(f"  {summary['samples']} samples, {summary['bytes_per_sample']:.2f} bytes each in the file")
        lib.check(lines[0]["type"] == "hello" and lines[0]["node_id"] == reducer.status()["nodes"][0]["id"], "the recording's Hello")
        lib.check(summary["samples"] == total["stored"], f"inspect counts {summary['samples']}, stored {total['stored']}")
        lib.check(summary["captured"] == total["captured"], f"captured {summary['captured']}, the status says {total['captured']}")
        sizes = sum(m["header_bytes"] + m["stored_bytes"] for m in summary["messages"].values())
        lib.check(summary["bytes"] == size == sizes, f"{size} bytes in the file, {summary['bytes']} and {sizes} in the summary")
        endings = reducer.status()["stack_health"]
        lib.check(summary["samples_by_ending"] == endings, f"{summary['samples_by_ending']} in the file, {endings} stored")
        names = {p["comm"] for line in lines for p in line.get("definitions", {}).get("processes", [])}
        lib.check("truth" in names, f"no process truth among {names}")

        # Cut off the file within a frame: inspect prints the whole frames and then an error with the offset.
        torn = d / "torn.rec"
        torn.write_bytes(recording.read_bytes()[:-3])
        done = tributary("inspect", torn, check=False)
        lib.check(done.returncode == 1 and f"offset {lines[-2]['offset']}:" in done.stderr, f"exit code {done.returncode}, {done.stderr}")
        lib.check(len(done.stdout.splitlines()) == len(lines) - 1, "lines of a torn file")


def three_nodes_have_the_same_stacks():
    with lib.directory() as d, lib.programs() as programs:
        recording, original = record(d, programs)
        stored = original.status()["total"]["stored"]
        stacks = folded(original)
        lib.check(len(stacks) > 20, f"only {len(stacks)} stacks")
        fresh = lib.Reducer(d, data=d / "fresh", name="fresh")
        programs.append(fresh)
        summary = json.loads(tributary("replay", recording, "--intake-port", fresh.intake_port, "--nodes", 3, "--speed", "max", "--json").stdout)
        print(f"  {summary}")
        lib.check(summary["finished"] == 3 and summary["samples_acked"] == summary["samples_sent"] == 3 * stored, f"{summary}, {stored} stored")
        status = fresh.status()
        lib.check_law(status, lost=0)
        lib.check(status["total"]["captured"] == 3 * stored, f"captured {status['total']}, three times {stored} expected")
        lib.check(len(status["nodes"]) == 3, f"{len(status['nodes'])} nodes")
        for node in status["nodes"]:
            lib.check(node["captured"] == node["stored"] == stored, f"{node}, {stored} expected")
            lib.check(folded(fresh, f'{{node_id="{node["id"]}"}}') == stacks, f"the stacks of {node['id']} differ")
        lib.check(fresh.stop() == 0, "the reducer's exit code")


def nothing_twice_after_the_reducers_death():
    with lib.directory() as d, lib.programs() as programs:
        recording, original = record(d, programs)
        stored = original.status()["total"]["stored"]
        stacks = folded(original)
        fresh = lib.Reducer(d, data=d / "fresh", name="fresh")
        programs.append(fresh)
        results = []
        worker = threading.Thread(target=lambda: results.append(
            tributary("replay", recording, "--intake-port", fresh.intake_port, "--nodes", 3, "--speed", 1, "--json", check=False)))
        worker.start()
        for kill in range(2):
            before = fresh.status()["total"]["stored"]
            lib.wait_for("progress", lambda: fresh.status()["total"]["stored"] > before + stored // 4, 60)
            fresh.kill()
            time.sleep(1)
            fresh = lib.Reducer(d, data=d / "fresh", intake_port=fresh.intake_port, name=f"fresh-{kill}")
            programs.append(fresh)
        worker.join()
        lib.check(results[0].returncode == 0, f"the replay's exit code {results[0].returncode}: {results[0].stderr}")
        summary = json.loads(results[0].stdout)
        print(f"  {summary}")
        status = fresh.status()
        lib.check_law(status, lost=0)
        lib.check(status["total"]["stored"] == 3 * stored, f"stored {status['total']['stored']}, three times {stored} expected")
        lib.check(summary["reconnects"] >= 6, "nobody noticed the reducer's death")
        for node in status["nodes"]:
            lib.check(folded(fresh, f'{{node_id="{node["id"]}"}}') == stacks, f"the stacks of {node['id']} differ")


def a_fleet_uploads_each_table_once():
    """Replays a hundred nodes with the same executables. All are killed during their uploads; others send the rest."""
    with lib.directory() as d, lib.programs() as programs:
        recording, _ = record(d, programs, seconds=4)
        lines = [json.loads(line) for line in tributary("inspect", recording).stdout.splitlines()]
        ids = {e["executable_id"] for line in lines for e in line.get("definitions", {}).get("executables", [])} - {"unknown"}
        lib.check(len(ids) >= 3, f"executables: {ids}")
        fresh = lib.Reducer(d, data=d / "fresh", name="fresh")
        programs.append(fresh)

        def uploads(event):
            name = f'tributary_intake_symbol_uploads_total{{event="{event}"}} '
            return sum(int(line[len(name):]) for line in fresh.get("/metrics").decode().splitlines() if line.startswith(name))

        def replay(name):
            programs.append(lib.Program(name, [lib.BIN / "tributary", "replay", recording, "--intake-port", fresh.intake_port, "--nodes", 100,
                                               "--symbols", 12000, "--repeat", 0], d))
            return programs[-1]

        first = replay("first")
        lib.wait_for("tables on their way", lambda: uploads("whole") >= 1 and uploads("begun") > uploads("whole"), 60)
        first.kill()
        replay("second")
        lib.wait_for("all tables", lambda: fresh.metric("tributary_symbolizer_tables") >= len(ids), 240)
        seen = {event: uploads(event) for event in ("begun", "resumed", "whole", "spoiled", "lost")}
        print(f"  {len(ids)} executables: {seen}, {fresh.metric('tributary_intake_symbol_bytes_total'):.0f} bytes")
        lib.check(seen["begun"] == seen["whole"] == fresh.metric("tributary_symbolizer_tables") == len(ids), f"{seen}, {len(ids)} executables")
        lib.check(seen["resumed"] >= 1 and seen["spoiled"] == seen["lost"] == 0, f"{seen}")
        lib.check(fresh.metric("tributary_symbolizer_uploads_total") == len(ids), "a table came twice")


if __name__ == "__main__":
    lib.main(inspect_counts_the_stored_samples, three_nodes_have_the_same_stacks, nothing_twice_after_the_reducers_death,
             a_fleet_uploads_each_table_once)
