"""Tests that today's programs read every set of golden files (schemas/golden/README.md).

The data directory gives the same answers as the release that wrote it, and accepts batches afterwards. The recording is
shown and replayed. golden_spool_test.cc reads the spools.
"""

import json
import pathlib
import subprocess
import tempfile

import sets
import lib


def tributary(*args):
    return subprocess.run([lib.BIN / "tributary", *map(str, args)], check=True, capture_output=True, text=True).stdout


def compare(expected, now, where=""):
    """Checks that the answers contain the old release's answers. Later releases may add fields to an object."""
    if isinstance(expected, dict):
        lib.check(isinstance(now, dict), f"{where}: {now} is no object")
        for key, value in expected.items():
            lib.check(key in now, f"{where}/{key} is missing")
            compare(value, now[key], f"{where}/{key}")
    elif isinstance(expected, list):
        lib.check(isinstance(now, list) and len(now) == len(expected), f"{where}: {now}, expected {expected}")
        for i, value in enumerate(expected):
            compare(value, now[i], f"{where}[{i}]")
    else:
        lib.check(expected == now, f"{where}: {now}, expected {expected}")


def check_data(golden, directory, programs):
    """Starts a reducer with the set's data and compares its answers. Returns the reducer."""
    described = sets.description(golden)
    expected = sets.golden_answers(golden)
    reducer = lib.Reducer(directory, args=[*sets.KEEP, "--shards", 2], data=sets.unpack(golden, directory / "unpacked"))
    programs.append(reducer)
    compare(expected, sets.answers(reducer, described["from"], described["to"]))
    lib.check_law(reducer.status())
    lib.check(expected["status"]["total"]["stored"] > 1000 and len(expected["rollouts"]) > 0
              and len(expected["series"]["pods"]) == 1, "the set is poor")
    return reducer


def data_are_read_and_added_to():
    lib.check(sets.all_sets(), "there are no sets")
    for golden in sets.all_sets():
        with tempfile.TemporaryDirectory() as name, lib.programs() as programs:
            directory = pathlib.Path(name)
            reducer = check_data(golden, directory, programs)
            before = reducer.status()
            recorded = sets.description(golden)["recording"]
            tributary("replay", golden / "session.rec", "--intake-port", reducer.intake_port, "--speed", "max")
            status = reducer.status()
            lib.check_law(status)
            lib.check(status["total"]["stored"] == before["total"]["stored"] + recorded["samples"], f"{status['total']} after {before['total']}")
            lib.check(len(status["nodes"]) == len(before["nodes"]), "the node that is there already is another one")
            # The data must stay the same after a restart and after maintenance.
            lib.check(reducer.stop() == 0, "the reducer's exit code")
            again = lib.Reducer(directory, args=sets.KEEP, data=reducer.data, name="again")
            programs.append(again)
            lib.check(again.status()["total"] == status["total"], f"{again.status()['total']} after a restart, {status['total']} before")
            described = sets.description(golden)
            graph = again.flamegraph("{}", described["from"], described["to"])
            expected = sets.golden_answers(golden)["flamegraph {} cpu function"]
            compare(expected, {"total": graph.answer["total"], "stacks": sets.folded(graph)})


def recordings_are_shown():
    for golden in sets.all_sets():
        lines = [json.loads(line) for line in tributary("inspect", golden / "session.rec").splitlines()]
        compare(sets.description(golden)["recording"], lines[-1])
        lib.check(lines[0]["type"] == "hello" and lines[0]["node_id"] == "golden-1", f"the Hello: {lines[0]}")


def sets_are_small_and_name_no_machine():
    for golden in sets.all_sets():
        files = [path for path in golden.rglob("*") if path.is_file()]
        lib.check(sum(path.stat().st_size for path in files) < 400_000, f"{golden} is large")
        with tempfile.TemporaryDirectory() as name:
            data = [path for path in sets.unpack(golden, pathlib.Path(name)).rglob("*") if path.is_file()]
            for path in files + data:
                for word in (b"/home/", b"/root/", b"/tmp/", b"/var/"):
                    lib.check(word not in path.read_bytes(), f"{path} has a path with {word}")


if __name__ == "__main__":
    lib.main(data_are_read_and_added_to, recordings_are_shown, sets_are_small_and_name_no_machine)
