"""A Go program that is delivered without symbols and debug information: its samples have the names, inlined calls and lines of Go's own table."""

import shutil
import subprocess

import lib

PROGRAM = """package main

func step(x uint64) uint64 {
	x ^= x << 13
	x ^= x >> 7
	return x ^ x<<17
}
func twice(x uint64) uint64 { return step(step(x)) }

//go:noinline
func work(n int) (x uint64) {
	x = 1
	for i := 0; i < n; i++ {
		x = twice(x)
	}
	return x
}

func main() {
	for {
		println(work(1 << 28))
	}
}
"""


def build(folder):
    go = shutil.which("go")
    lib.check(go is not None, "go is not installed: run dev/deps")
    (folder / "main.go").write_text(PROGRAM)
    (folder / "go.mod").write_text("module busy\n\ngo 1.19\n")
    subprocess.run([go, "build", "-buildvcs=false", "-ldflags=-s -w", "-o", "gobusy", "."], cwd=folder, check=True)
    return folder / "gobusy"


def inlined_of(reducer):
    """(samples in main.step, in main.twice, in main.work; all samples of the program)."""
    out = subprocess.run([lib.BIN / "tributary", "flamegraph", "--server", reducer.url, "--query", '{process.executable.name="gobusy"}', "--from", "-1h",
                          "--to", "now", "--unit", "count", "--format", "folded", "--out", "-"], check=False, capture_output=True, text=True).stdout
    counts = [(stack, int(number)) for stack, _, number in (line.rpartition(" ") for line in out.splitlines())]
    wanted = "runtime.goexit;runtime.main;main.work;main.twice_[i];main.step_[i]"
    return sum(n for stack, n in counts if wanted in stack), sum(n for _, n in counts)


def inlined_calls_of_a_stripped_program():
    with lib.directory() as d, lib.programs() as programs:
        source = d / "source"
        source.mkdir()
        program = build(source)
        reducer = lib.Reducer(d)
        programs.append(reducer)
        programs.append(lib.Collector(d, reducer.intake_port, rate=299, args=["--batch-interval", "500ms"]))
        busy = subprocess.Popen([program], stderr=subprocess.DEVNULL)
        try:
            lib.wait_for("a hundred samples with names of inlined calls", lambda: inlined_of(reducer)[0] >= 100, 60)
            inlined, total = inlined_of(reducer)
        finally:
            busy.kill()
            busy.wait()
        print(f"  {inlined} of {total} samples are in main.step, inlined into main.twice, inlined into main.work")
        lib.check(inlined >= total // 2, f"{inlined} of {total} samples")


if __name__ == "__main__":
    lib.main(inlined_calls_of_a_stripped_program)
