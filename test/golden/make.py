"""Makes a set of golden files with the programs of one release (schemas/golden/README.md).

It takes six minutes, mostly to wait until minutes are closed.

    TRIBUTARY_BIN=build/dev/bin python3 test/golden/make.py --golden-node build/dev/tests/golden_node --release NAME
"""

import argparse
import contextlib
import json
import lzma
import os
import pathlib
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
import time

import sets
import lib

EXECUTABLES = 4  # in a recording


def tributary(*args):
    return subprocess.run([lib.BIN / "tributary", *map(str, args)], check=True, capture_output=True, text=True).stdout


def rows(data, table):
    """Returns the number of rows in all shards."""
    total = 0
    for path in sorted(data.glob("shard-*.db")):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            total += database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    return total


def make_data(directory, golden_node, recording):
    """Makes data with old samples (only their sums are kept), samples in closed minutes, and samples in an open one."""
    with lib.programs() as programs:
        reducer = lib.Reducer(directory, args=["--shards", 2, "--retention-raw", "1h", "--metadata-keep", "3650d", "--export", "console"])
        programs.append(reducer)
        subprocess.run([golden_node, "--intake-port", str(reducer.intake_port)], check=True)
        lib.wait_for("the end of old samples", lambda: rows(reducer.data, "sample_chunk") == 0, 90)
        replay = ["replay", recording, "--intake-port", reducer.intake_port, "--symbols", sets.SYMBOLS]
        tributary(*replay, "--nodes", 3, "--repeat", 2)
        lib.wait_for("symbol tables", lambda: reducer.metric("tributary_symbolizer_tables") == EXECUTABLES, 30)
        sums = rows(reducer.data, "minute_sum")
        lib.wait_for("closed minutes", lambda: rows(reducer.data, "minute_sum") > sums, 300, step_s=1)
        tributary(*replay, "--nodes", 2, "--speed", "max")
        time.sleep(70)  # the reducer examines services once a minute
        lib.check(reducer.stop() == 0, "the reducer's exit code")
        return reducer.data


def pack(data, path):
    def without_owner(entry):
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    (data / "LOCK").unlink()
    with tarfile.open(path, "w:xz", preset=9) as archive:
        archive.add(data, "data", filter=without_owner)


def describe(golden, release, time_range):
    """Writes the release's answers about its own files."""
    with tempfile.TemporaryDirectory(prefix="tributary-golden-") as name, lib.programs() as programs:
        directory = pathlib.Path(name)
        reducer = lib.Reducer(directory, args=[*sets.KEEP, "--shards", 2], data=sets.unpack(golden, directory / "unpacked"))
        programs.append(reducer)
        answers = sets.answers(reducer, time_range["from"], time_range["to"])
        lib.check(reducer.stop() == 0, "the reducer's exit code")
    summary = json.loads(tributary("inspect", golden / "session.rec").splitlines()[-1])
    (golden / "set.json").write_text(json.dumps({"release": release, **time_range, "recording": summary}, indent=1) + "\n")
    (golden / "answers.json.xz").write_bytes(lzma.compress(json.dumps(answers, indent=1).encode(), preset=9))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--golden-node", required=True, type=pathlib.Path)
    parser.add_argument("--release", required=True)
    options = parser.parse_args()
    golden = sets.SETS / options.release
    shutil.rmtree(golden, ignore_errors=True)
    golden.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="tributary-golden-") as name:
        d = pathlib.Path(name)
        recording = golden / "session.rec"
        subprocess.run([options.golden_node, "--recording", recording, "--spool", d / "spool"], check=True)
        (golden / "spool").mkdir()
        for segment in sorted((d / "spool").glob("segment-*.trs")):
            shutil.copyfile(segment, golden / "spool" / segment.name)
        os.chmod(recording, 0o644)
        began = int(time.time() * 1000)
        data = make_data(d, options.golden_node, recording)
        time_range = {"from": began - 4 * 3_600_000, "to": int(time.time() * 1000)}
        pack(data, golden / "data.tar.xz")
    describe(golden, options.release, time_range)
    print(f"{golden}: {sum(f.stat().st_size for f in golden.rglob('*') if f.is_file())} bytes")


if __name__ == "__main__":
    main()
