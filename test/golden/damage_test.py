"""Tests damaged files and files of a newer release.

A file is refused with one line that names the file and gives advice, or it is set aside if its contents will arrive
again. The tests damage a set of golden files (schemas/golden/README.md). For spools see intake/spool/spool_test.cc.
"""

import contextlib
import pathlib
import re
import shutil
import sqlite3
import subprocess
import tempfile

import sets
import lib

NEWER = 9999
DATABASES = ["shard-0.db", "shard-1.db", "store.db", "metadata.db", "rollouts.db"]


@contextlib.contextmanager
def data_directory():
    """Yields the data directory of the newest set, upgraded, so that the tests damage files that today's release wrote.

    The function `copy` makes copies of it.
    """
    golden = max(sets.all_sets(), key=lambda path: sets.description(path)["from"])
    with tempfile.TemporaryDirectory(prefix="tributary-golden-") as name, lib.programs() as programs:
        directory = pathlib.Path(name)
        data = sets.unpack(golden, directory)
        reducer = lib.Reducer(directory, args=[*sets.KEEP, "--shards", 2], data=data, name="upgrade")
        programs.append(reducer)
        lib.check(reducer.stop() == 0, "the reducer's exit code")

        def copy(label):
            return pathlib.Path(shutil.copytree(data, directory / label))

        yield golden, directory, copy, programs


def overwrite(path, offset, damage):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(damage)


def execute(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        return database.execute(sql).fetchall()


def contents(path):
    tables = [name for name, in execute(path, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    return [execute(path, "PRAGMA user_version"), *[(name, execute(path, f"SELECT * FROM {name}")) for name in tables]]


def expect_refusal(data, *words):
    result = subprocess.run([lib.BIN / "reducer", "--data-dir", data, "--shards", "2", "--intake-listen", "127.0.0.1:0", "--http-listen",
                             "127.0.0.1:0", *sets.KEEP], capture_output=True, text=True, timeout=60, check=False)
    lines = [line for line in (result.stdout + result.stderr).splitlines() if " info " not in line]
    lib.check(result.returncode == 1 and len(lines) == 1, f"exit code {result.returncode}: {lines}")
    for word in words:
        lib.check(word in lines[0], f"the message does not say '{word}': {lines[0]}")
    print(f"  {lines[0].replace(str(data), 'DIR')}")


def newer_databases_are_refused_and_stay():
    with data_directory() as (_, _, copy, _):
        for name in DATABASES:
            data = copy(f"newer-{name}")
            execute(data / name, f"PRAGMA user_version = {NEWER}")
            before = contents(data / name)
            expect_refusal(data, str(data / name), f"newer release (schema version {NEWER}, ", "start the newer release again, or restore a backup")
            lib.check(contents(data / name) == before and not list(data.glob("*.broken")), f"{name} was changed")


def damaged_databases_of_samples_are_refused():
    with data_directory() as (_, _, copy, _):
        advice = "restore the file from a backup, or stop the reducer and move the file away"
        for name in ("shard-0.db", "store.db"):
            data = copy(f"header-{name}")
            overwrite(data / name, 0, b"\xaa" * 100)
            expect_refusal(data, f"{data / name} is damaged (file is not a database", advice)
        data = copy("truncated")
        with open(data / "shard-1.db", "r+b") as file:
            file.truncate((data / "shard-1.db").stat().st_size // 8192 // 2 * 8192)
        expect_refusal(data, f"{data / 'shard-1.db'} is damaged (database disk image is malformed", advice)


def intact_directories_are_found_intact():
    """Tests tributary check on a directory of each release, after an upgrade, with and without a running reducer."""
    for golden in sets.all_sets():
        with tempfile.TemporaryDirectory(prefix="tributary-golden-") as name, lib.programs() as programs:
            directory = pathlib.Path(name)
            data = sets.unpack(golden, directory)
            reducer = lib.Reducer(directory, args=[*sets.KEEP, "--shards", 2], data=data, name="upgrade")
            programs.append(reducer)
            for running in (True, False):
                if not running:
                    lib.check(reducer.stop() == 0, "the reducer's exit code")
                check = subprocess.run([lib.BIN / "tributary", "check", data], capture_output=True, text=True, timeout=60, check=False)
                lib.check(check.returncode == 0 and "damage: " not in check.stdout, f"{golden.name}: {check}")
                lib.check(("a reducer uses the directory" in check.stdout) == running, check.stdout)


def damage_in_the_middle_is_reported_where_it_is_found():
    """Tests damaged pages and damaged rows.

    A query that meets a damaged page reports it in its answer, and a batch that meets it is refused. A damaged row is
    set aside. The other shard's nodes are not affected.
    """
    with data_directory() as (golden, directory, copy, programs):
        described = sets.description(golden)
        for kind in ("page", "chunk"):
            data = copy(kind)
            if kind == "page":
                page = execute(data / "shard-0.db", "SELECT rootpage FROM sqlite_master WHERE name = 'sample_chunk'")[0][0]
                overwrite(data / "shard-0.db", (page - 1) * 8192, b"\xaa" * 8192)
            else:
                execute(data / "shard-0.db", "UPDATE sample_chunk SET columns = x'00'")
            reducer = lib.Reducer(directory, args=[*sets.KEEP, "--shards", 2], data=data, name=kind)
            programs.append(reducer)
            check = subprocess.run([lib.BIN / "tributary", "check", data], capture_output=True, text=True, timeout=60, check=False)
            lib.check(check.returncode == 1 and f"damage: {data / 'shard-0.db'}: " in check.stdout, f"{check}")
            if kind == "page":
                try:
                    reducer.flamegraph("{}", described["from"], described["to"])
                    raise AssertionError("the damage was not met")
                except lib.Failure as e:
                    print(f"  {str(e).replace(str(data), 'DIR')}")
                    lib.check(": 500 " in str(e) and f"{data / 'shard-0.db'} is damaged (" in str(e) and "restore the file from a backup" in str(e), str(e))
                replay = lib.Program("replay", [lib.BIN / "tributary", "replay", golden / "session.rec", "--intake-port", reducer.intake_port,
                                                "--nodes", 3, "--speed", "max"], directory)
                programs.append(replay)
                lib.wait_for("a refused batch", lambda r=reducer: r.metric("tributary_reducer_poisoned_batches_total") >= 1, 30)
                lines = [line for line in reducer.text().splitlines() if "cannot be stored and is refused" in line]
                lib.check(len(lines) == 1 and "shard-0.db is damaged (" in lines[0] and "restore the file from a backup" in lines[0], f"{lines}")
                print(f"  {lines[0].replace(str(data), 'DIR')}")
                replay.kill()
            else:
                reducer.flamegraph("{}", described["from"], described["to"])
                lib.wait_for("the rows to be set aside", lambda r=reducer: r.metric("tributary_reducer_set_aside_total") >= 1, 30)
                lines = [line for line in reducer.text().splitlines() if "a damaged piece was set aside" in line]
                lib.check(lines and f"file={data / 'shard-0.db'} piece=samples" in lines[0], f"{lines}")
                print(f"  {lines[0].replace(str(data), 'DIR')}")
            lib.check(reducer.running(), "the reducer ended")
            reducer.kill()


def damaged_replaceable_databases_are_set_aside():
    with data_directory() as (_, directory, copy, programs):
        for name in ("metadata.db", "rollouts.db"):
            for kind in ("header", "page"):
                data = copy(f"{kind}-{name}")
                offset, damage = 0 if kind == "header" else 4096, b"\xaa" * 2000
                overwrite(data / name, offset, damage)
                reducer = lib.Reducer(directory, args=[*sets.KEEP, "--shards", 2], data=data, name=f"{kind}-{name}")
                programs.append(reducer)
                lines = [line for line in reducer.text().splitlines() if name in line and "reducer ready" not in line]
                lib.check(len(lines) == 1 and "cannot be read, an empty database is used instead" in lines[0] and f"{name} is damaged (" in lines[0], f"{lines}")
                print(f"  {lines[0].replace(str(data), 'DIR')}")
                aside = (data / f"{name}.broken").read_bytes()
                lib.check(aside[offset:offset + 2000] == damage, "what was set aside is not what was damaged")
                lib.check(reducer.stop() == 0, "the reducer's exit code")
                lib.check(execute(data / name, "PRAGMA quick_check")[0][0] == "ok", "the new one is damaged, too")


def a_damaged_symbol_table_is_asked_for_again():
    with data_directory() as (golden, directory, copy, programs):
        described = sets.description(golden)
        data = copy("symbols")
        table = sorted(data.glob("symbols/*/*.tsym"))[0]
        overwrite(table, table.stat().st_size // 2, b"\xaa" * 20)
        for flat in data.glob("symbols/*/*.flat"):
            flat.unlink()
        reducer = lib.Reducer(directory, args=[*sets.KEEP, "--shards", 2], data=data, name="symbols")
        programs.append(reducer)
        for _ in range(2):
            reducer.flamegraph("{}", described["from"], described["to"])
        lines = [line for line in reducer.text().splitlines() if "symbol table is unreadable, it will be requested again" in line]
        lib.check(len(lines) == 1 and table.name in lines[0], f"{lines}")
        print(f"  {lines[0].replace(str(data), 'DIR')}")
        lib.check(reducer.metric("tributary_symbolizer_unreadable_tables_total") == 1, "it is not counted once")


def damaged_recordings_are_refused():
    recording = (max(sets.all_sets()) / "session.rec").read_bytes()
    second = recording.index(b"TRBY", 4)
    last = recording.rindex(b"TRBY")
    cases = {
        "header": (bytes([recording[0] ^ 1]) + recording[1:], "is not a recording, or its first message is damaged"),
        "record": (recording[:last + 40] + bytes([recording[last + 40] ^ 1]) + recording[last + 41:], f"truncate -s {last},"),
        "newer": (recording[:4] + b"\2" + recording[5:], "was written by a newer release: read it with the tributary command of that release"),
        "empty": (b"", "must begin with a Hello"),
        "hello alone": (recording[:second], "this recording contains no batch"),
    }
    with tempfile.TemporaryDirectory(prefix="tributary-golden-") as name:
        path = pathlib.Path(name) / "damaged.rec"
        for kind, (content, words) in cases.items():
            path.write_bytes(content)
            for command in (["replay", path, "--intake-port", "1"], ["inspect", path]):
                if command[0] == "inspect" and kind in ("empty", "hello alone"):
                    continue  # inspect finds no error in these files
                result = subprocess.run([lib.BIN / "tributary", *map(str, command)], capture_output=True, text=True, timeout=30, check=False)
                lines = result.stderr.strip().splitlines()
                lib.check(result.returncode == 1 and len(lines) == 1 and words in lines[0], f"{kind}: {result.returncode} {lines}")
                print(f"  {re.sub(re.escape(name), 'DIR', lines[0])}")


if __name__ == "__main__":
    lib.main(newer_databases_are_refused_and_stay, damaged_databases_of_samples_are_refused,
             intact_directories_are_found_intact, damage_in_the_middle_is_reported_where_it_is_found,
             damaged_replaceable_databases_are_set_aside, a_damaged_symbol_table_is_asked_for_again, damaged_recordings_are_refused)
