"""Tests that nothing is lost when the reducer is away for ten seconds during a run, by a clean stop or by kill -9."""

import threading
import time

import lib


def run(stop):
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=199, args=["--batch-interval", "1s"])
        programs.append(collector)
        worker = threading.Thread(target=lib.run_truth, args=(16,))
        worker.start()
        lib.wait_for("stored samples", lambda: reducer.status()["total"]["stored"] > 0, 20)
        stop(reducer)
        stored_before = None
        time.sleep(10)
        again = lib.Reducer(d, intake_port=reducer.intake_port, name="reducer-again")
        programs.append(again)
        stored_before = again.status()["total"]["stored"]
        lib.wait_for("the collector's return", lambda: again.status()["total"]["stored"] > stored_before, 30)
        worker.join()
        lib.check(collector.stop() == 0, "the collector's exit code")
        status = again.status()
        print(f"  captured {status['total']['captured']}, stored {status['total']['stored']}, lost {status['total']['lost']}; "
              f"stored before the return {stored_before}")
        lib.check_law(status, lost=0)
        lib.check(status["total"]["stored"] > stored_before, "nothing came after the return")
        lib.check(again.stop() == 0, "the reducer's exit code")


def stopped_reducer():
    run(lambda reducer: lib.check(reducer.stop() == 0, "the reducer's exit code"))


def killed_reducer():
    run(lambda reducer: reducer.kill())


if __name__ == "__main__":
    lib.main(stopped_reducer, killed_reducer)
