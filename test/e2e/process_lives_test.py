"""Tests process_lives.py itself: correct events pass, and each kind of mistake is found. Starts no program of ours."""

import copy

import lib
import process_lives

BOOT = 1_000_000_000
AT = 1_790_000_000_000_000_000
MS = 1_000_000


def record(pid=100, **more):
    return {"kind": "execs", "pid": pid, "parent": 7, "uid": 0, "started_as": b"lives".hex(), "name": b"lives_1".hex(),
            "boot": [BOOT, BOOT + MS], "start": [AT, AT + MS], "end": [AT + 40 * MS, AT + 41 * MS],
            "execs": [["lives_0", AT + 5 * MS, AT + 6 * MS], ["lives_1", AT + 20 * MS, AT + 21 * MS]], "again": 0, "program": "lives_1",
            "exit_code": 3, "signal": 0, "oom": False, "user_ns": 9 * MS, "system_ns": MS, "peak_bytes": 1 << 20, "has_children": False, **more}


def event(kind, at_ms, pid=100, **more):
    return {"at_ns": AT + at_ms * MS, "kind": kind, "node_id": "n", "pid": pid, "parent_pid": 7, "start_time_ns": BOOT + 1, "name": "lives",
            "executable": "lives", "executable_path": "/bin/lives", "uid": 0, **more}


def ending(**more):
    return {"exit_code": 3, "signal": 0, "core_dumped": False, "oom_killed": False, "run_ns": 40 * MS, "user_ns": 10 * MS, "system_ns": 0,
            "cpu_ns": 10 * MS, "peak_rss_bytes": 1 << 20, "name": "lives_1", "executable": "lives_1", "executable_path": "/tmp/lives_1", **more}


def events_of_life():
    return [event("start", 0), event("exec", 5, name="lives_0", executable="lives_0"), event("exec", 20, name="lives_1", executable=""),
            event("exit", 40, **ending())]


def sum_of(processes, **more):
    return event("sum", 40, pid=0, **{**ending(run_ns=processes * 40 * MS, cpu_ns=processes * 10 * MS), "start_time_ns": 0, "processes": processes,
                                      "events": 4 * processes, **more})


def compare(records, events, **options):
    return process_lives.Comparison([process_lives.Life(r) for r in records], events, **options).check()


def refused(why, records, events, **options):
    try:
        compare(records, events, **options)
    except lib.Failure:
        return
    raise lib.Failure(f"not found: {why}")


def correct_events_pass():
    outcome = compare([record()], events_of_life())
    lib.check((outcome.single, outcome.summed, outcome.missing_events) == (1, 0, 0), f"{outcome}")
    outcome = compare([record(pid) for pid in range(3)], [sum_of(2), sum_of(1)])
    lib.check((outcome.single, outcome.summed, outcome.missing_events) == (0, 3, 0), f"{outcome}")
    reused = record(boot=[BOOT + 2 * MS, BOOT + 3 * MS])
    compare([record(), reused], events_of_life() + [{**e, "start_time_ns": BOOT + 2 * MS} for e in events_of_life()])
    launcher = [event("exit", 90, pid=7, **ending(name=process_lives.LAUNCHER, executable="lives"))]
    compare([record()], events_of_life() + launcher)
    lib.check(process_lives.text_of("ff61c3") == "\ufffda\ufffd", "each ill-formed byte is one U+FFFD")


def missing_events_are_counted():
    outcome = compare([record(), record(101)], events_of_life()[:2], lost=6)
    lib.check(outcome.missing_events == 6, f"{outcome}")
    refused("five lost, six missing", [record(), record(101)], events_of_life()[:2], lost=5)
    refused("a process without an event", [record()], [])
    unknown = events_of_life()[:3] + [event("end_unknown", 60)]
    refused("an unknown end while a collector ran", [record()], unknown, lost=1)
    compare([record()], unknown, runs=2)
    compare([record()], [], runs=2)
    again = events_of_life() + [event("seen_running", 30)]
    compare([record()], again, runs=2)
    refused("a process found running by the collector that saw its start", [record()], again)


def mistakes_are_found():
    good = events_of_life()
    for number, field, value in (
            (0, "at_ns", AT - 11 * MS), (0, "parent_pid", 8), (0, "name", "other"), (1, "name", "lives_1"), (1, "executable", "lives_1"),
            (1, "at_ns", AT + 17 * MS), (3, "at_ns", AT + 52 * MS), (3, "exit_code", 4), (3, "signal", 9), (3, "oom_killed", True),
            (3, "core_dumped", True), (3, "cpu_ns", 21 * MS), (3, "peak_rss_bytes", 0), (3, "run_ns", 0), (3, "uid", 1), (3, "name", "lives"),
            (3, "executable", "other"), (3, "kind", "start"), (2, "start_time_ns", BOOT - 1), (3, "start_time_ns", BOOT + 2 * MS)):
        bad = copy.deepcopy(good)
        bad[number][field] = value
        refused(f"{field} {value} of event {number}", [record()], bad)
    for number in range(4):
        refused(f"event {number} twice", [record()], good + [good[number]])
        refused(f"event {number} missing", [record()], good[:number] + good[number + 1:])
    refused("a life twice", [record(), record()], good)
    refused("an unknown process of our programs", [record()], good + [event("exit", 50, pid=9, **ending())])


def wrong_sums_are_found():
    lives = [record(pid) for pid in range(3)]
    refused("one process too few", lives, [sum_of(2)])
    refused("one process too many", lives, [sum_of(4)], lost=9)
    refused("another exit code", lives, [sum_of(3, exit_code=4)])
    refused("too few events", lives, [sum_of(3, events=11)], lost=1)
    refused("CPU time", lives, [sum_of(3, cpu_ns=61 * MS)])
    refused("the peak", lives, [sum_of(3, peak_rss_bytes=5)])
    refused("another program", lives, [sum_of(3, executable="lives_2")])
    refused("a life in both", [record()], events_of_life() + [sum_of(1)])


def the_law_is_checked():
    def status(captured=10, stored=8, lost=2, in_flight=0, of_node=8):
        counts = {"captured": captured, "stored": stored, "lost": {"event_overflow": lost}, "in_flight": in_flight}
        return {"total": {"process_events": counts}, "nodes": [{"process_events": {**counts, "stored": of_node}}]}

    lib.check(process_lives.check_law(status(), [sum_of(1), *events_of_life()]) == {"event_overflow": 2}, "lost events")
    for bad, events in ((status(lost=1), None), (status(in_flight=1), None), (status(of_node=7), None), (status(), events_of_life())):
        try:
            process_lives.check_law(bad, events)
        except lib.Failure:
            continue
        raise lib.Failure(f"not found: {bad}")


if __name__ == "__main__":
    lib.main(correct_events_pass, missing_events_are_counted, mistakes_are_found, wrong_sums_are_found, the_law_is_checked)
