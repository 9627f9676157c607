"""Tests a Go program without symbols and debug information.

Its samples have the names, inlined calls and lines of Go's own table, and the frame type "go". Frames of C code that is
linked into a Go program have the frame type "native".
"""

import re
import shutil
import subprocess
import sys

import lib

sys.path.insert(0, str(lib.SOURCE / "test" / "otlp"))
import otelcol  # noqa: E402

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

CGO_PROGRAM = """package main

/*
__attribute__((noinline)) unsigned long long c_work(unsigned long long x, long n) {
	while (n-- > 0) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
	return x;
}
*/
import "C"

//go:noinline
func goWork(x uint64, n int) uint64 {
	for i := 0; i < n; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

func main() {
	for x := uint64(1); ; {
		x = goWork(x, 1<<24)
		x = uint64(C.c_work(C.ulonglong(x), 1<<24))
	}
}
"""


def build(folder, text=PROGRAM, flags=("-ldflags=-s -w",)):
    go = shutil.which("go")
    lib.check(go is not None, "go is not installed: run dev/deps")
    (folder / "main.go").write_text(text)
    (folder / "go.mod").write_text("module busy\n\ngo 1.19\n")
    subprocess.run([go, "build", "-buildvcs=false", *flags, "-o", "gobusy", "."], cwd=folder, check=True)
    return folder / "gobusy"


def inlined_of(reducer):
    """Returns (samples in main.step inlined into main.twice inlined into main.work, all samples of the program)."""
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


def types_of(text):
    """Returns {function: its frame types in the text of a console layout}."""
    types = {}
    for kind, function in re.findall(r"^Instrumentation: (\S+), Function: ([^,\n]+)", text, re.MULTILINE):
        types.setdefault(function, set()).add(kind)
    return types


def frame_types():
    """Tests that both console layouts, OTLP and the page's answer distinguish Go code from C code in one program."""
    with lib.directory() as d, lib.programs() as programs, otelcol.Collector(d / "otelcol") as otel:
        source = d / "source"
        source.mkdir()
        program = build(source, CGO_PROGRAM, flags=())
        exports = [f"otlp://{otel.address}", "console?layout=lazybackend", "console?layout=collector&name=collector"]
        reducer = lib.Reducer(d, args=[word for export in exports for word in ("--export", export)])
        programs.append(reducer)
        start = lib.now_ms()
        collector = lib.Collector(d, reducer.intake_port, rate=299, args=["--batch-interval", "500ms"])
        programs.append(collector)
        busy = subprocess.Popen([program], stderr=subprocess.DEVNULL)

        def graph():
            return reducer.flamegraph('{process.executable.name="gobusy"}', start - 60_000, lib.now_ms() + 60_000)

        try:
            lib.wait_for("a hundred samples with names", lambda: graph().count_of("main.goWork") >= 100 and graph().count_of("c_work") >= 50, 60)
        finally:
            busy.kill()
            busy.wait()
        answer = graph()
        lib.check(collector.stop() == 0, "the collector's exit code")
        lib.check(reducer.stop(30) == 0, "the reducer's exit code")
        otel.stop()

        def check(where, types):
            print(f"  {where}: main.goWork {sorted(types.get('main.goWork', []))}, c_work {sorted(types.get('c_work', []))}")
            lib.check(types.get("main.goWork") == {"go"} and types.get("c_work") == {"native"}, f"{where} tells them as other kinds")

        text = reducer.text()
        check("lazybackend", types_of("\n".join(line for line in text.splitlines() if ", File: " in line)))
        check("collector", types_of("\n".join(line for line in text.splitlines() if ", File: " not in line)))
        check("OTLP", otelcol.frame_types(otel.requests()))
        check("the page", answer.kinds_by_name())


if __name__ == "__main__":
    lib.main(inlined_calls_of_a_stripped_program, frame_types)
