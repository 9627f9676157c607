"""Kills a reducer with SIGKILL again and again, at seeded random moments, while it commits and does maintenance.

Honest nodes send samples and process events of earlier hours. Each restart has a shorter --retention, whose end stays a
few minutes behind the newest samples. So after each start, the reducer sums up minutes, joins chunks of events and
removes old data, while the nodes send more. At the end, each acknowledged batch is stored once, the data that have not
expired are those of a reducer that was never killed, and SQLite finds no damage.

    kills_test.py [--long]      TRIBUTARY_SEED repeats a run's moments
"""

import contextlib
import os
import random
import sqlite3
import sys
import time

import fleet
from fleet import lib

KILLS = 200 if "--long" in sys.argv else 10
NODES = 20
PART_S = 60  # history of a part: three batches
SAMPLES_PER_PART = 60
KEPT_PARTS, KEPT_RAW_PARTS = 6, 3
COMMITS_S, MAINTENANCE_S = 0.08, 1.2  # kills are up to so much later than the part, or than its last commit
RANDOM = random.Random(f"kills {os.environ.get('TRIBUTARY_SEED', '1')}")


class History:
    """The times of the samples that were sent. They began long ago, so that all of it is older than an hour."""

    def __init__(self):
        self.begin_s = int(time.time()) // 60 * 60 - (4 * KILLS + 120) * PART_S
        self.parts = 0

    def kept_from_s(self):
        return self.begin_s + max(0, self.parts - KEPT_PARTS) * PART_S

    def options(self):
        """Returns the options of a reducer that starts now: all older parts expire."""
        now = time.time()
        sums, raw = now - self.kept_from_s(), now - (self.begin_s + max(0, self.parts - KEPT_RAW_PARTS) * PART_S)
        return ["--retention", f"{sums:.0f}s", "--retention-events", f"{sums:.0f}s", "--retention-raw", f"{raw:.0f}s"]


def start(directory, history, port=0):
    return lib.Reducer(directory, args=history.options(), intake_port=port)


def kill_and_restart(directory, history, reducer, honest):
    """Kills the reducer in the middle of a part's commits, or in the seconds of maintenance after it."""
    honest.send("part")
    history.parts += 1
    if RANDOM.random() < 0.5:
        time.sleep(RANDOM.uniform(0, COMMITS_S))
    else:
        totals(honest)
        time.sleep(RANDOM.uniform(0, MAINTENANCE_S))
        honest.send("part")
        history.parts += 1
    reducer.kill()
    reducer = start(directory, history, reducer.intake_port)
    totals(honest)
    return reducer


def totals(honest):
    found = honest.line(fleet.SAFETY_NET_S)
    lib.check(found is not None, f"a part is not durable after {fleet.SAFETY_NET_S} s")
    return found


def count(reducer, begin_s, end_s):
    """Returns the number of samples of these minutes that the reducer shows."""
    return reducer.flamegraph('{node_id=~"honest-.*"}', begin_s * 1000, end_s * 1000).answer["total"]["count"]


def unjoined(data):
    """Returns how many chunks of process events are still to be joined."""
    with contextlib.closing(sqlite3.connect(f"file:{data}/shard-0.db?mode=ro", uri=True)) as database:
        chunks, places = database.execute("SELECT count(*), count(DISTINCT slot || '/' || machine) FROM event_chunk").fetchone()
    return chunks - places


def check_databases(data):
    for path in sorted(data.glob("*.db")):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            result = database.execute("PRAGMA integrity_check").fetchall()
        lib.check(result == [("ok",)], f"{path.name}: {result[:3]}")


def main():
    history = History()
    with fleet.directory() as d, lib.programs() as programs:
        reducer = start(d, history)
        programs.append(reducer)
        nodes = ("--honest", NODES, "--begin", history.begin_s * 10**9, "--batch-seconds", PART_S // 3)
        with fleet.Nodes(reducer, *nodes) as honest:
            for _ in range(KILLS):
                reducer = kill_and_restart(d, history, reducer, honest)
                programs[:] = [reducer]
            sent = honest.part()
            history.parts += 1
        check(d, programs, reducer, history, sent, nodes)


def check(directory, programs, reducer, history, sent, nodes):
    # The samples of the last minute before the kept range may have expired or not.
    begin, kept, end = history.begin_s, history.kept_from_s(), history.begin_s + history.parts * PART_S
    reducer.stop(60)
    reducer = start(directory, history)
    programs[:] = [reducer]
    lib.wait_for("old data to expire", lambda: count(reducer, begin, kept - PART_S) == 0, fleet.SAFETY_NET_S)
    lib.wait_for("chunks of events to be joined", lambda: unjoined(reducer.data) == 0, fleet.SAFETY_NET_S)
    status = reducer.status()
    lib.check_law(status, lost=0)
    for node in status["nodes"]:
        lib.check(node["captured"] == node["stored"] == sent["samples_per_node"], f"{node}, {sent}")
        lib.check(node["process_events"]["stored"] == sent["events_per_node"], f"{node}, {sent}")
    shown = count(reducer, kept, end)
    lib.check(shown == (end - kept) // PART_S * SAMPLES_PER_PART * NODES, f"{shown} samples of {(end - kept) // PART_S} parts")
    expired = sent["samples_per_node"] * NODES - count(reducer, begin, end)
    lib.check(expired in [n * SAMPLES_PER_PART * NODES for n in range(history.parts - KEPT_PARTS - 1, history.parts - KEPT_PARTS + 1)],
              f"{expired} samples expired, of {history.parts} parts")
    compare(directory, programs, reducer, history, sent, nodes)
    print(f"  {KILLS} kills, {history.parts} parts of {NODES} nodes: {status['total']['stored']} samples stored once, {expired} expired")
    lib.check(reducer.stop(60) == 0, "the reducer's exit code")
    check_databases(reducer.data)


def compare(directory, programs, reducer, history, sent, nodes):
    """Compares the kept data of each node with those of a reducer that nothing interrupted."""
    (directory / "calm").mkdir()
    calm = lib.Reducer(directory / "calm")
    programs.append(calm)
    with fleet.Nodes(calm, *nodes) as honest:
        for _ in range(history.parts):
            found = honest.part()
        lib.check(found == sent, f"{found}, {sent}")
        lib.wait_for("the symbol tables", lambda: calm.status()["reducer"]["symbol_tables"] == 3, fleet.SAFETY_NET_S)
    begin_ms, end_ms = history.kept_from_s() * 1000, (history.begin_s + history.parts * PART_S) * 1000
    for number in range(NODES):
        difference = fleet.first_difference(*[fleet.stacks(r, f"honest-{number}", begin_ms, end_ms) for r in (calm, reducer)])
        lib.check(not difference, f"the stacks of honest-{number} are others: {difference}")
    events = [r.json("/api/v1/events/programs", query='{node_id=~"honest-.*"}', **{"from": begin_ms, "to": end_ms}) for r in (calm, reducer)]
    lib.check(events[0] == events[1], f"the events are others: {events[1]}, not {events[0]}")


if __name__ == "__main__":
    try:
        main()
    except lib.Failure as failure:
        sys.exit(f"FAILED: {str(failure)[:2000]}")
