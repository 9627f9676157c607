"""Tests `tributary record -- CMD`: it runs collector and reducer for one command, and leaves a file and a summary."""

import os
import subprocess

import lib


def processes_of_ours():
    out = subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True).stdout
    return [line for line in out.splitlines() if str(lib.BIN / "reducer") in line or str(lib.BIN / "kernel-collector") in line]


def record(directory, *command, out="out.folded", form="folded"):
    return subprocess.run(lib.ROOT + [lib.BIN / "tributary", "record", "--rate", "499", "--format", form, "--out", directory / out, "--",
                                      *command], capture_output=True, text=True, timeout=120, check=False, cwd=directory)


def one_command():
    with lib.directory() as d:
        result = record(d, lib.BIN / "truth", "4")
        print("  " + "\n  ".join(result.stderr.strip().splitlines()))
        lib.check(result.returncode == 0, f"exit code {result.returncode}: {result.stderr}")
        ns = by_leaf = 0  # the lines contain ns
        for line in (d / "out.folded").read_text().splitlines():
            stack, _, number = line.rpartition(" ")
            ns += int(number)
            user = [f for f in stack.split(";") if not f.endswith("_[k]")]
            by_leaf += int(number) if user and user[-1] == "hash_blocks" else 0
        lib.check(abs(ns - 4e9) < 0.1 * 4e9, f"{ns} ns of 4 s")
        count = ns * 499 / 1e9
        lib.check(abs(by_leaf / ns - 0.6) < lib.four_sigma(0.6, count), f"{by_leaf} of {ns} ns in hash_blocks")
        lib.check("hash_blocks" in result.stderr + result.stdout, "the summary does not name the top function")
        lib.check(not processes_of_ours(), f"left running: {processes_of_ours()}")


def children_count_too():
    with lib.directory() as d:
        result = record(d, "sh", "-c", f"{lib.BIN}/truth 1 & {lib.BIN}/truth 1; wait; exit 7", out="out.svg", form="svg")
        lib.check(result.returncode == 7, f"the command's exit code is not passed on: {result.returncode} {result.stderr}")
        svg = (d / "out.svg").read_text()
        lib.check(svg.lstrip().startswith(("<svg", "<?xml")) and "hash_blocks" in svg, "the picture lacks the children's functions")


def a_command_that_does_not_exist():
    with lib.directory() as d:
        result = record(d, "/nonexistent/program")
        lib.check(result.returncode != 0 and "/nonexistent/program" in result.stderr, f"{result.returncode}: {result.stderr}")
        lib.check(not processes_of_ours(), f"left running: {processes_of_ours()}")
        lib.check(not os.path.exists(d / "out.folded"), "a file of nothing")


if __name__ == "__main__":
    lib.main(one_command, children_count_too, a_command_that_does_not_exist)
