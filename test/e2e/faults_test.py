"""Tests real failures between a node and its reducers.

Each end is killed with kill -9 at random moments. A reducer hangs. The network drops everything. Disks are full. The
spool overflows. The collector stops without a reducer. Each test ends with captured = stored + lost by reason. captured
is the count of the kernel side, and each stored sample must be readable exactly once.
"""

import signal
import time

import faults
import lib
from faults import Node, world

TINY_MEMORY = ["--intake-memory-max", "64KiB"]
PATIENT = ["--shutdown-timeout", "1m"]  # the last stop delivers everything, and the test checks the law after it
# The protocol's promise: the collector notices silence after three heartbeats of 5 s and tries the next reducer.
FAILOVER_S_MAX = 20


def restarted(reducer):
    """Starts the reducer again with the same data and ports."""
    return lib.Reducer(reducer.directory, intake_port=reducer.intake_port, name=reducer.name, data=reducer.data)


def replace(programs, old, new):
    programs.remove(old)
    programs.append(new)
    return new


def stored(reducer):
    return reducer.status()["total"]["stored"]


def wait_for_more_stored(reducer, than):
    lib.wait_for("more to be stored", lambda: stored(reducer) > than, 60)


def reducer_killed():
    """Kills the reducer with kill -9 at 20 moments: nothing is lost, nothing counts twice."""
    at = faults.moments("reducer_killed")
    with world() as (d, programs):
        start, killed_at_s = lib.now_ms(), []
        reducer = lib.Reducer(d)
        programs.append(reducer)
        node = Node(d, programs, [reducer.intake], PATIENT)
        connects = 0
        for _ in range(faults.KILLS):
            # Kill the reducer before the collector is back, soon after, or when it has made progress. A collector waits
            # longer each time for a reducer that never lives long enough for an ack.
            wanted = at.random()
            if wanted < 0.8:
                node.wait_for_more("intake connected", connects)
            if wanted < 0.6:
                wait_for_more_stored(reducer, stored(reducer))
            time.sleep(at.uniform(0, 0.7))
            connects = node.count("intake connected")
            reducer.kill()
            killed_at_s.append(round(lib.now_ms() / 1000 - start / 1000, 2))
            reducer = replace(programs, reducer, restarted(reducer))
        node.stop()
        faults.check_law(node, [reducer], start, more=f"connects={connects} killed_at_s={killed_at_s}")
        lib.check(reducer.stop() == 0, "the reducer's exit code")


def collector_killed():
    """Kills the collector with kill -9 at 20 moments: its next run reports the samples captured but not sent."""
    at = faults.moments("collector_killed")
    with world() as (d, programs):
        start, killed_at_s = lib.now_ms(), []
        reducer = lib.Reducer(d)
        programs.append(reducer)
        node = Node(d, programs, [reducer.intake], ["--spool-dir", d / "spool", *PATIENT])
        samplings = 0
        for _ in range(faults.KILLS):
            if at.random() < 0.9:  # otherwise the collector may be killed while it starts
                node.wait_for_more("sampling rate_hz", samplings)
            time.sleep(at.uniform(0, 1.2))
            samplings = node.count("sampling rate_hz")
            node.kill()
            killed_at_s.append(round(lib.now_ms() / 1000 - start / 1000, 2))
            node.start()
        node.wait_for_more("intake connected", node.count("intake connected") if node.count("sampling rate_hz") == samplings else 0)
        node.stop()
        totals = faults.check_law(node, [reducer], start, ["collector_killed"], f"killed_at_s={killed_at_s}")
        lib.check(totals.lost.get("collector_killed", 0) < totals.captured / 2, "more was lost by kills than was stored")
        lib.check(reducer.stop() == 0, "the reducer's exit code")


def both_killed():
    """Kills both 20 times each, in random order.

    The reducer is sometimes away in between, so that batches wait in memory and in segments.
    """
    at = faults.moments("both_killed")
    order = ["collector", "reducer"] * faults.KILLS
    at.shuffle(order)
    with world() as (d, programs):
        start, killed_at_s = lib.now_ms(), []
        reducer = lib.Reducer(d)
        programs.append(reducer)
        node = Node(d, programs, [reducer.intake], ["--spool-dir", d / "spool", *TINY_MEMORY, *PATIENT])
        samplings = 0
        for i, who in enumerate(order):
            if at.random() < 0.7:
                node.wait_for_more("sampling rate_hz", samplings)
            time.sleep(at.uniform(0, 0.6))
            killed_at_s.append(f"{who[0]}{lib.now_ms() / 1000 - start / 1000:.2f}")
            if who == "collector":
                samplings = node.count("sampling rate_hz")
                node.kill()
                node.start()
            else:
                reducer.kill()
            away = not reducer.running()
            if away and (order[i + 1:i + 2] != ["collector"] or at.random() < 0.5):
                reducer = replace(programs, reducer, restarted(reducer))
        node.wait_for_more("sampling rate_hz", samplings)
        node.stop()
        spools = node.count("the spool contains undelivered samples of an earlier collector")
        faults.check_law(node, [reducer], start, ["collector_killed"], f"spools_taken_over={spools} killed_at_s={killed_at_s}")
        lib.check(reducer.stop() == 0, "the reducer's exit code")


def fail_over(node, reducers, go_silent, come_back):
    """Makes the node's preferred reducer silent. Returns the measured times.

    The node must notice it and use the other reducer. When the preferred reducer is back, the node must use it again.
    """
    preferred = lib.wait_for("samples at one reducer", lambda: next((r for r in reducers if stored(r) > 0), None))
    other = next(r for r in reducers if r != preferred)
    silent_at, until = time.time(), time.monotonic() + faults.OUTAGE_S
    go_silent(preferred)
    lib.wait_for("the other reducer to store", lambda: stored(other) > 0, 60)
    failover_s = faults.connected_at(node.text(), other.intake) - silent_at
    faults.sleep_until(until)
    back_at = time.time()
    come_back(preferred)
    before = stored(preferred)
    lib.wait_for("the node's return", lambda: faults.connected_at(node.text(), preferred.intake) > back_at, 120)
    wait_for_more_stored(preferred, before)
    lib.check(0 < failover_s < FAILOVER_S_MAX, f"failed over in {failover_s:.1f} s, promised are {FAILOVER_S_MAX}")
    return f"failover_s={failover_s:.1f} return_s={faults.connected_at(node.text(), preferred.intake) - back_at:.1f} " \
           f"outage_s={faults.OUTAGE_S}"


def reducer_hung():
    """Stops a node's only reducer, and another node's preferred reducer of two, with SIGSTOP."""
    with world() as (d, programs):
        start = lib.now_ms()
        only, *pair = (lib.Reducer(d, name=name, data=d / name) for name in ("only", "one", "two"))
        programs += [only, *pair]
        alone = Node(d, programs, [only.intake], [*PATIENT], rate=199, name="alone")
        node = Node(d, programs, [r.intake for r in pair], [*PATIENT], rate=199)
        wait_for_more_stored(only, 0)

        def stop(reducer):
            only.signal(signal.SIGSTOP)
            reducer.signal(signal.SIGSTOP)

        def go_on(reducer):
            alone.wait_for_more("intake disconnected", 0)
            only.signal(signal.SIGCONT)
            reducer.signal(signal.SIGCONT)

        connects = alone.count("intake connected")
        numbers = fail_over(node, pair, stop, go_on)
        alone.wait_for_more("intake connected", connects)
        for n in (alone, node):
            n.stop()
        faults.check_law(alone, [only], start)
        faults.check_law(node, pair, start, more=numbers)
        for reducer in (only, *pair):
            lib.check(reducer.stop() == 0, "a reducer's exit code")


def network_silent():
    """Makes a router silently drop all packets to and from the preferred reducer."""
    with faults.Network() as network, world() as (d, programs):
        start = lib.now_ms()
        pair = [lib.Reducer(d, name=name, data=d / name, prefix=network.inside(), intake_host=host, http_host="198.18.2.4", args=["--allow-anonymous"])
                for name, host in (("one", "198.18.2.2"), ("two", "198.18.2.3"))]
        programs += pair
        node = Node(d, programs, [r.intake for r in pair], [*PATIENT], rate=199)
        numbers = fail_over(node, pair, lambda r: network.drop(r.intake.split(":")[0]), lambda r: network.heal(r.intake.split(":")[0]))
        node.stop()
        faults.check_law(node, pair, start, more=numbers)
        for reducer in pair:
            lib.check(reducer.stop() == 0, "a reducer's exit code")


def disk_full_at_the_reducer():
    """Fills the reducer's disk until commits fail. When space is free again, commits continue; nothing is lost."""
    with world() as (d, programs), lib.small_disk(d / "small", "8m") as data:
        start = lib.now_ms()
        reducer = lib.Reducer(d, data=data)
        programs.append(reducer)
        node = Node(d, programs, [reducer.intake], PATIENT)
        wait_for_more_stored(reducer, 0)
        filler = lib.fill_disk(data)
        lib.wait_for("commits to fail", lambda: reducer.metric("tributary_reducer_commit_failures_total") >= 2, 60)
        before = stored(reducer)
        filler.unlink()
        wait_for_more_stored(reducer, before)
        node.stop()
        faults.check_law(node, [reducer], start, more=f"stored_when_full={before}")
        lib.check(reducer.stop() == 0, "the reducer's exit code")


def late_reducer(args, until, lost, name, rate=999, maybe_lost=()):
    """Runs the collector without a reducer until `until(node)` returns, then starts a reducer."""
    with world() as (d, programs):
        start, port = lib.now_ms(), faults.free_port()
        node = Node(d, programs, [f"127.0.0.1:{port}"], [*args(d), *PATIENT], rate, name)
        until(node)
        reducer = lib.Reducer(d, intake_port=port)
        programs.append(reducer)
        wait_for_more_stored(reducer, 0)
        node.stop()
        totals = faults.check_law(node, [reducer], start, [*lost, *maybe_lost])
        lib.check(set(totals.lost) - set(maybe_lost) == set(lost), f"lost {totals.lost}, expected {lost}")
        lib.check(reducer.stop() == 0, "the reducer's exit code")


def overflowing(node):
    node.wait_for_more("sampling rate_hz", 0)  # by then the collector handles the signal
    lib.wait_for("lost{spool_overflow}", node.spool_overflows, 60, 0.5)


def disk_full_at_the_spool():
    with lib.directory() as d, lib.small_disk(d / "small", "128k") as disk:
        late_reducer(lambda _: ["--spool-dir", disk, *TINY_MEMORY], overflowing, ["spool_overflow"], "full")


def spool_overflow():
    """Keeps the reducer away until the spool overflows: the oldest samples are dropped and counted."""
    # At this rate a busy machine can delay the collector until samples exceed its limit for held samples.
    late_reducer(lambda d: ["--spool-dir", d / "spool", "--spool-bytes-max", "1MiB", *TINY_MEMORY], overflowing, ["spool_overflow"],
                 "overflow", rate=9999, maybe_lost=["hold_overflow"])


def reducer_comes_later():
    """Starts the collector before the reducer: nothing is lost."""
    late_reducer(lambda d: ["--spool-dir", d / "spool"], lambda _: time.sleep(2), [], "early")


def stop_without_reducer(args, lost):
    """Sends SIGTERM while there is no reducer. The next run sends the samples or reports them as lost."""
    with world() as (d, programs):
        start, port = lib.now_ms(), faults.free_port()
        node = Node(d, programs, [f"127.0.0.1:{port}"], [*args(d), "--shutdown-timeout", "1s"])
        node.wait_for_more("sampling rate_hz", 0)
        time.sleep(2)
        node.stop()
        first_life = node.captured()
        reducer = lib.Reducer(d, intake_port=port)
        programs.append(reducer)
        node.args += PATIENT
        node.start()
        wait_for_more_stored(reducer, 0)
        node.stop()
        totals = faults.check_law(node, [reducer], start, lost)
        lib.check(not lost or totals.lost == {lost[0]: first_life}, f"lost {totals.lost}, the first life captured {first_life}")
        lib.check(reducer.stop() == 0, "the reducer's exit code")


def spool_survives_a_stop():
    stop_without_reducer(lambda d: ["--spool-dir", d / "spool"], [])


def stop_without_spool():
    stop_without_reducer(lambda _: [], ["shutdown"])


if __name__ == "__main__":
    lib.main(reducer_killed, collector_killed, both_killed, reducer_hung, network_silent, disk_full_at_the_reducer, disk_full_at_the_spool,
             spool_overflow, reducer_comes_later, spool_survives_a_stop, stop_without_spool)
