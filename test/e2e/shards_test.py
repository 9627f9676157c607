"""Tests that the number of shards changes twice while a collector runs.

The collector's session moves to another shard each time. Nothing is lost, nothing counts twice, and old data stay
readable in their shard.
"""

import contextlib
import sqlite3
import threading
import time

import lib

SHARDS = [1, 3, 2]


def shard_of(node_id, shards):
    """Returns a node's shard: FNV-1a, as in docs/store.md."""
    value = 0xCBF29CE484222325
    for byte in node_id.encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return (value ^ (value >> 32)) % shards


def node_that_moves():
    """Returns a node with a different shard for each number of shards."""
    return next(node for node in (f"node-{i}" for i in range(1000)) if len({shard_of(node, n) for n in SHARDS}) == len(SHARDS))


def rows(data, shard, sql):
    with contextlib.closing(sqlite3.connect(f"file:{data}/shard-{shard}.db?mode=ro", uri=True)) as database:
        return database.execute(sql).fetchone()[0]


def run(stop):
    node = node_that_moves()
    began = lib.now_ms()
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d, args=["--shards", SHARDS[0]])
        programs.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=199, args=["--batch-interval", "1s", "--node-id", node])
        programs.append(collector)
        worker = threading.Thread(target=lib.run_truth, args=(2,))
        worker.start()
        lib.wait_for("stored samples", lambda: reducer.status()["total"]["stored"] > 0, 30)
        for shards in SHARDS[1:]:
            stop(reducer)
            reducer = lib.Reducer(d, args=["--shards", shards], intake_port=reducer.intake_port, name=f"reducer-{shards}")
            programs.append(reducer)
            stored = reducer.status()["total"]["stored"]
            lib.wait_for("the collector's return", lambda r=reducer, s=stored: r.status()["total"]["stored"] > s, 60)
        worker.join()
        lib.check(collector.stop() == 0, "the collector's exit code")
        status = reducer.status()
        lib.check_law(status, lost=0)
        lib.check([n["id"] for n in status["nodes"]] == [node], f"one node expected: {status['nodes']}")
        samples = [rows(reducer.data, shard, "SELECT coalesce(sum(samples), 0) FROM sample_chunk") for shard in range(max(SHARDS))]
        sessions = [rows(reducer.data, shard, "SELECT count(*) FROM session") for shard in range(max(SHARDS))]
        print(f"  stored {status['total']['stored']}: {samples} in shards 0, 1, 2; session rows {sessions}")
        lib.check(all(samples) and sum(samples) == status["total"]["stored"], f"samples by shard {samples}")
        lib.check(sum(sessions) == 1 and sessions[shard_of(node, SHARDS[-1])] == 1, f"sessions by shard {sessions}")
        graph = reducer.flamegraph("{}", began - 60_000, int(time.time() * 1000) + 60_000)
        lib.check(graph.total_count[0] == status["total"]["stored"], f"{graph.total_count[0]} samples in the flame graph")
        lib.check(reducer.stop() == 0, "the reducer's exit code")


def stopped():
    run(lambda reducer: lib.check(reducer.stop() == 0, "the reducer's exit code"))


def killed():
    run(lambda reducer: reducer.kill())


if __name__ == "__main__":
    lib.main(stopped, killed)
