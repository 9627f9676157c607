"""Tests the whole path of a frame kind and a sample type, each a row of its table.

The path goes from a node to the flame graph, both console layouts, OTLP and the CLI. By default the test uses existing
rows. A build can add other rows (test/kinds/added.sh): their names are arguments.
"""

import argparse
import subprocess
import sys

import lib

sys.path.insert(0, str(lib.SOURCE / "test" / "otlp"))
sys.path.insert(0, str(lib.SOURCE / "test" / "k8s"))
import node  # noqa: E402
import otelcol  # noqa: E402

SAMPLES, VALUE, FUNCTION = 40, 2048, "handle(request)"


def run(reducer, *words):
    done = subprocess.run([lib.BIN / "tributary", *words, "--server", reducer.url, "--from", "-1h"], check=False, capture_output=True, text=True)
    lib.check(done.returncode == 0, f"tributary {' '.join(words)}: {done.stderr}")
    return done.stdout


def kinds(kind, type_name, unit):
    with lib.directory() as d, lib.programs() as programs, otelcol.Collector(d / "otelcol") as otel:
        exports = [f"otlp://{otel.address}", "console?layout=lazybackend", "console?layout=collector&name=collector"]
        reducer = lib.Reducer(d, args=[word for export in exports for word in ("--export", export)])
        programs.append(reducer)
        lib.check(reducer.json("/api/v1/types")["types"] == [], "types are offered that nobody collects")
        start = lib.now_ms()
        with open(d / "node.log", "w", encoding="utf-8") as log:
            made_up = node.Node("kinds-node", reducer.intake_port, log)
            try:
                made_up.sample(7, "/usr/bin/server", "/", "service.name=kinds", [start * 1_000_000 + i for i in range(SAMPLES)], type=type_name,
                               value=VALUE, frame={"kind": kind, "name": FUNCTION})
                lib.check(made_up.stop() == 0, "the node's samples were not taken")
            finally:
                made_up.kill()

        offered = reducer.json("/api/v1/types")["types"]
        lib.check(offered == [{"name": type_name, "unit": unit}], f"offered are {offered}")
        law = [{key: of[key] for key in ("name", "unit", "captured", "stored", "lost", "in_flight")} for of in reducer.status()["total"]["types"]]
        of_type = {"name": type_name, "unit": unit, "captured": SAMPLES, "stored": SAMPLES, "lost": {}, "in_flight": 0}
        lib.check(law == [of_type], f"the status tells {law}")
        graph = reducer.flamegraph("{}", start - 60_000, lib.now_ms() + 60_000, type=type_name)
        found = (graph.answer["type"], graph.answer["unit"], graph.total_ns[0], graph.kinds_by_name().get(FUNCTION))
        lib.check(found == (type_name, unit, SAMPLES * VALUE, {kind}), f"the flame graph has {found}")
        top = run(reducer, "top", "--type", type_name)
        lib.check(FUNCTION in top, f"tributary top:\n{top}")
        folded = run(reducer, "flamegraph", "--type", type_name, "--format", "folded")
        lib.check(f"{FUNCTION} {SAMPLES * VALUE}" in folded, f"tributary flamegraph:\n{folded}")

        lib.wait_for("the exports", lambda: any(s.type == type_name for s in otelcol.samples(otel.requests())), 60, 0.5)
        lib.check(reducer.stop(30) == 0, "the reducer's exit code")
        otel.stop()
        exported = [s for s in otelcol.samples(otel.requests()) if s.type == type_name]
        lib.check(sum(len(s.timestamps) for s in exported) == SAMPLES, f"{exported} were exported")
        types = otelcol.frame_types(otel.requests()).get(FUNCTION)
        lib.check(types == {kind}, f"OTLP tells the frame as {types}")
        text = reducer.text()
        for layout, lines in (("lazybackend", [line for line in text.splitlines() if ", File: " in line]),
                              ("collector", [line for line in text.splitlines() if ", File: " not in line])):
            of_function = [line for line in lines if FUNCTION in line]
            lib.check(of_function and all(kind in line for line in of_function), f"{layout} prints {of_function[:3]}")
        print(f"  {kind} frames of type {type_name} ({unit}): page, CLI, OTLP and both console layouts name them")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", default="go")
    parser.add_argument("--type", default="off_cpu")
    parser.add_argument("--unit", default="nanoseconds")
    options = parser.parse_args()
    sys.argv[1:] = []

    def rows():
        kinds(options.kind, options.type, options.unit)

    lib.main(rows)


if __name__ == "__main__":
    main()
