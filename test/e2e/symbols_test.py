"""Tests names that do not come from the node's programs.

Programs that are stripped on the node get names, inlined calls and lines when the reducer knows their debug
information. This includes earlier samples.
"""

import http.server
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

import dwarf_bombs
import lib

sys.path.insert(0, str(lib.SOURCE / "test" / "otlp"))
import otelcol  # noqa: E402

PROGRAMS = ["unwind_c", "unwind_cxx", "unwind_rust", "unwind_static", "unwind_musl"]
SELECTOR = '{process_executable_name=~"unwind_.*"}'
NATIVE, INLINED = 1, 3
SECONDS = 6


def run(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def build_id(path):
    for line in run("readelf", "-n", path).splitlines():
        if "Build ID:" in line:
            return line.split()[-1]
    return None


def strip_all(directory):
    """Strips the programs as on a node: code without names. Returns their paths."""
    for name in PROGRAMS:
        run("strip", "--strip-all", "-o", directory / name, lib.BIN / name)
    return [directory / name for name in PROGRAMS]


def sample(programs, reducer, collector_args, commands, d, seconds=SECONDS):
    """Runs all commands under a collector for `seconds`. Returns (start time, collector, loads), which still run."""
    start = lib.now_ms()
    collector = lib.Collector(d, reducer.intake_port, rate=499, args=collector_args)
    programs.append(collector)
    lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
    loads = [lib.Program(pathlib.Path(command).name, [command], d) for command in commands]
    programs.extend(loads)
    time.sleep(seconds)
    return start, collector, loads


def end(loads, collector):
    for load in loads:
        load.kill()
    lib.check(collector.stop() == 0, "the collector's exit code")


def frames_of(graph, executables):
    for node in range(1, len(graph)):
        if graph.kind[node] in (NATIVE, INLINED) and graph.executable_of(node) in executables:
            yield graph.name_of(node), graph.kind[node], graph.total_count[node]


def cli(*arguments):
    return subprocess.run([str(lib.BIN / "tributary"), *[str(a) for a in arguments]], capture_output=True, text=True, check=False)


def named_by_upload_alone():
    with lib.directory() as d, lib.programs() as programs, otelcol.Collector(d / "otelcol") as otel:
        node = d / "node"
        node.mkdir()
        commands = strip_all(node)
        data = d / "data"
        reducer = lib.Reducer(d, data=data)
        programs.append(reducer)
        server = f"http://127.0.0.1:{reducer.http_port}"
        start, collector, loads = sample(programs, reducer, [], commands, d)

        def tables_came():
            answer = reducer.json("/api/v1/symbols", query=SELECTOR, **{"from": start})
            sampled = {e["name"]: e for e in answer["executables"] if e["name"] in PROGRAMS}
            return len(sampled) == len(PROGRAMS) and all(e["symbols"] for e in sampled.values())

        lib.wait_for("every program's table from the node", tables_came, 30)
        end(loads, collector)
        stop = lib.now_ms() + 1000

        # Before the push: the names of functions are unknown, but their start addresses are known.
        before = reducer.flamegraph(SELECTOR, start, stop)
        names = [name for name, _, _ in frames_of(before, PROGRAMS)]
        lib.check(len(names) > 50, f"only {len(names)} frames")
        unnamed = [name for name in names if "+0x" in name]
        print(f"  before: {len(set(names))} functions, of which {len(set(unnamed))} are known by their start")
        # Functions that a static program's libc exports keep their names.
        starts = {}
        for name in PROGRAMS:
            symbols = run("nm", "--defined-only", lib.BIN / name)
            starts[name] = {int(line.split()[0], 16) for line in symbols.splitlines() if line.split()[1] in "tTwWiu"}
        at_start = [name for name in unnamed if int(name.split("+0x")[1], 16) in starts[name.split("+0x")[0]]]
        share = len(at_start) / max(1, len(unnamed))
        print(f"  of those {share:.4f} begin where a function of the unstripped program does")
        lib.check(share > 0.95, f"only {share:.4f} of the unnamed frames are functions' starts")

        pushed = cli("symbols", "push", "--server", server, *[lib.BIN / name for name in PROGRAMS if build_id(lib.BIN / name)])
        print("  " + pushed.stdout.replace("\n", "\n  ").rstrip())
        lib.check(pushed.returncode == 0, f"push: {pushed.stderr}")
        for name in PROGRAMS:
            if build_id(lib.BIN / name):
                continue
            answer = reducer.json("/api/v1/symbols", query=SELECTOR, **{"from": start, "to": stop})
            own_id = next(e["build_id"] for e in answer["executables"] if e["name"] == name)
            pushed = cli("symbols", "push", "--server", server, "--build-id", own_id, lib.BIN / name)
            lib.check(pushed.returncode == 0, f"push of {name}: {pushed.stderr}")

        # After the push: the same samples, taken before the push.
        after = reducer.flamegraph(SELECTOR, start, stop)
        lib.check(after.total_count[0] == before.total_count[0], "samples came or went")
        total = nameless = inlined = 0
        for name, kind, count in frames_of(after, PROGRAMS):
            total += 1
            nameless += "+0x" in name
            inlined += kind == INLINED
        print(f"  after: {total} frames, {inlined} of them inlined, {nameless} without a name")
        lib.check(nameless <= total * 0.01, f"{nameless} of {total} frames have no name")
        lib.check(inlined > 0, "no inlined call")
        folded = cli("flamegraph", "--server", server, "--query", SELECTOR, "--from", start, "--to", stop, "--format", "folded", "--out", "-")
        lib.check("_[i]" in folded.stdout, "no inlined call in the command line's stacks")

        top = [f for f in reducer.json("/api/v1/top", query=SELECTOR, **{"from": start, "to": stop})["functions"]
               if f["executable"] == "unwind_cxx"][0]
        lines = reducer.json("/api/v1/lines", query=SELECTOR, function=top["name"], executable="unwind_cxx", **{"from": start, "to": stop})
        known = sum(line["total_count"] for line in lines["lines"] if line["line"])
        print(f"  {top['name']}: {known} of {top['total_count']} samples by line")
        lib.check(known > 0.95 * top["total_count"], "lines are missing")

        # Export: a reducer that starts now sends its stored samples.
        lib.check(reducer.stop() == 0, "the reducer's exit code")
        reducer = lib.Reducer(d, data=data, args=["--export", f"otlp://{otel.address}"], name="reducer-2")
        programs.append(reducer)
        stored = reducer.status()["total"]["stored"]
        lib.wait_for("every sample to arrive", lambda: sum(s.count for s in otelcol.samples(otel.requests())) >= stored, 60, 0.5)
        otel.stop()
        with_lines = sum(1 for request in otel.requests() for line in otelcol.lines(request) if line)
        print(f"  OTLP: {with_lines} lines of locations have a number")
        lib.check(with_lines > 50, "no lines in what was exported")


def sent_by_the_node():
    """Tests programs with debug information on the node: with --upload-debug-info no push is necessary."""
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        names = [name for name in PROGRAMS if build_id(lib.BIN / name)]
        start, collector, loads = sample(programs, reducer, ["--upload-debug-info"], [lib.BIN / name for name in names], d)

        def tables_came():
            answer = reducer.json("/api/v1/symbols", query=SELECTOR, **{"from": start})
            sources = {e["name"]: e["symbols"]["source"] for e in answer["executables"] if e["name"] in names and e["symbols"]}
            return len(sources) == len(names) and sources

        sources = lib.wait_for("every program's table from the node", tables_came, 60)
        end(loads, collector)
        lib.check(set(sources.values()) == {"dwarf"}, f"the tables are of {sources}")
        graph = reducer.flamegraph(SELECTOR, start, lib.now_ms() + 1000)
        kinds = [kind for _, kind, _ in frames_of(graph, names)]
        print(f"  {len(kinds)} frames, {kinds.count(INLINED)} of them inlined, with nothing pushed")
        lib.check(kinds.count(INLINED) > 0, "no inlined call")


class DebugServer(http.server.BaseHTTPRequestHandler):
    """A debuginfod server. `answers` has its reaction to each build-id, `sources` its reaction to each source file."""
    answers = {}
    sources = {}
    asked = []

    def do_GET(self):
        self.asked.append(self.path)
        of, kind, *path = self.path.split("/")[2:]
        reaction = self.answers.get(of) if kind == "debuginfo" else self.sources.get((of, path[-1]))
        if reaction == "hang":
            time.sleep(60)
        elif reaction == "endless":
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"no end\n" * 4096)
            except OSError:
                pass
        elif isinstance(reaction, int):
            self.send_error(reaction)
        elif reaction is None:
            self.send_error(404)
        else:
            body = reaction.read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_):
        pass


def found_by_the_reducer():
    """Tests a debug directory for one program and debuginfod for another, and servers that fail, hang and lie.

    The failures must affect nothing else.
    """
    with lib.directory() as d, lib.programs() as programs:
        node = d / "node"
        node.mkdir()
        commands = [node / name for name in ("unwind_c", "unwind_cxx", "unwind_rust")]
        strip_all(node)
        in_directory, at_server, lied_about = (build_id(lib.BIN / name.name) for name in commands)
        debug = d / "debug"
        (debug / ".build-id" / in_directory[:2]).mkdir(parents=True)
        run("objcopy", "--only-keep-debug", lib.BIN / "unwind_c", debug / ".build-id" / in_directory[:2] / (in_directory[2:] + ".debug"))
        DebugServer.answers = {at_server: lib.BIN / "unwind_cxx", lied_about: lib.BIN / "unwind_c"}
        DebugServer.sources = {(at_server, "unwind_cxx.cc"): lib.SOURCE / "test/workloads/unwind_cxx.cc", (in_directory, "unwind_c.c"): "endless"}
        DebugServer.asked = []
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), DebugServer)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        reducer = lib.Reducer(d, args=["--debug-dir", debug, "--debug-dir", d / "none", "--debuginfod-urls",
                                       f"http://127.0.0.1:1/ http://127.0.0.1:{server.server_port}/"])
        programs.append(reducer)
        start, collector, loads = sample(programs, reducer, [], commands, d, 3)

        def found():
            answer = reducer.json("/api/v1/symbols", **{"from": start})
            origins = {e["build_id"]: e["symbols"]["origin"] for e in answer["executables"] if e["symbols"]}
            text = " ".join(n["text"] for n in answer["notices"])
            return (origins.get(in_directory) == "directory" and origins.get(at_server) == "debuginfod" and
                    f"the id {lied_about} was expected" in text and "--debug-dir" in text and "127.0.0.1:1" in text)

        lib.wait_for("both debug files, and word of what is wrong", found, 60)
        end(loads, collector)
        stop = lib.now_ms() + 1000
        for name in ("unwind_c", "unwind_cxx"):
            graph = reducer.flamegraph(f'{{process_executable_name="{name}"}}', start, stop)
            nameless = [n for n, _, _ in frames_of(graph, [name]) if "+0x" in n]
            lib.check(not nameless, f"{name}: {nameless[:5]}")
        lib.check(f"/buildid/{in_directory}/debuginfo" not in DebugServer.asked, "a server was asked for what a directory has")
        lib.check(sum(lied_about in path for path in DebugServer.asked) == 1, "a lie was asked for again")
        text_from_the_server(reducer, start, stop)
        # A server that hangs delays nothing, and the reducer stops in time.
        DebugServer.answers = {key: "hang" for key in (at_server, lied_about)}
        began = time.monotonic()
        lib.check(reducer.stop() == 0, "the reducer's exit code")
        print(f"  stopped after {time.monotonic() - began:.1f} s")
        server.shutdown()


def text_from_the_server(reducer, start, stop):
    """Tests that the text of lines is fetched when a client requests lines, and that no answer waits for a server."""

    def lines_of(program, file):
        """Returns the lines of the first function that has lines in that file."""
        query = {"query": f'{{process_executable_name="{program}"}}', "from": start, "to": stop}
        for function in reducer.json("/api/v1/top", **query)["functions"]:
            began = time.monotonic()
            answer = reducer.json("/api/v1/lines", function=function["name"], executable=function["executable"], **query)
            lib.check(time.monotonic() - began < 2, "the answer waits for a server")
            if any(line["file"].endswith(file) for line in answer["lines"]):
                return answer
        raise lib.Failure(f"no function of {file} has lines")

    lib.wait_for("the text that a server has", lambda: not lines_of("unwind_cxx", "unwind_cxx.cc")["sources_coming"], 20)
    source_lines = (lib.SOURCE / "test/workloads/unwind_cxx.cc").read_text().splitlines()
    lines = [line for line in lines_of("unwind_cxx", "unwind_cxx.cc")["lines"] if line["file"].endswith("unwind_cxx.cc") and line["line"]]
    print(f"  {len(lines)} lines with text, such as {lines[0]['text'].strip()!r}")
    wrong = [line for line in lines if line["text"] != source_lines[line["line"] - 1]]
    lib.check(lines and not wrong, f"not the text of the file: {wrong[:2]}")
    lib.wait_for("the end of an endless text", lambda: not lines_of("unwind_c", "unwind_c.c")["sources_coming"], 20)
    texts = [line["text"] for line in lines_of("unwind_c", "unwind_c.c")["lines"] if line["file"].endswith("unwind_c.c")]
    lib.check(texts and not any(texts), f"text of what has no end: {texts}")
    notices = " ".join(n["text"] for n in reducer.json("/api/v1/symbols", **{"from": start})["notices"])
    lib.check("source text: " in notices, "nobody is told of the endless text")
    asked = [path for path in DebugServer.asked if "/source/" in path]
    lib.check(len(asked) == len(set(asked)), f"asked for again: {asked}")


def hostile_uploads():
    """Uploads files made to break their reader: the page must keep answering, and the reducer must keep running."""
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        url = f"http://127.0.0.1:{reducer.http_port}/api/v1/symbols"
        good = (lib.BIN / "unwind_c").read_bytes()
        seed = int(os.environ.get("TRIBUTARY_SEED", "1"))
        codes = {}
        for i in range(60):
            broken = bytearray(good)
            for j in range(40):
                at = (seed * 7919 + i * 104729 + j * 1299709) % len(broken)
                broken[at] = (broken[at] + i + j + 1) & 0xFF
            path = d / "broken"
            path.write_bytes(broken if i % 3 else broken[:len(broken) * (i + 1) // 61])
            code = run("curl", "-s", "-o", d / "answer", "-w", "%{http_code}", "-T", path, url).strip()
            codes[code] = codes.get(code, 0) + 1
            lib.check(code in ("200", "201", "400", "422", "413", "500"), f"HTTP {code}")
            lib.check(reducer.json("/api/v1/status")["version"], "the page does not answer")
        print(f"  60 broken files: {codes}")
        lib.check(reducer.running(), "the reducer has ended")
        code = run("curl", "-s", "-o", d / "answer", "-w", "%{http_code}", "-T", lib.BIN / "unwind_cxx", url).strip()
        lib.check(code == "201", f"a good file is refused: HTTP {code}")
        shutil.rmtree(d / "answer", ignore_errors=True)


def kernels_and_modules():
    """Tests debug files of a kernel and of a module: they become tables like other files.

    The result is the same whether the command line or the reducer reads them. A file without a build-id is refused.
    """
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        server = f"http://127.0.0.1:{reducer.http_port}"
        run("gcc", "-g", "-O2", "-ffreestanding", "-fno-pic", "-c", lib.SOURCE / "test/symbols/kernel.c", "-o", d / "kernel.o")
        (d / "script").write_text("SECTIONS { . = 0x400000; .text : { _stext = .; *(.text .text.*) _etext = .; } __ksymtab : { *(__ksymtab) } }")
        run("ld", "-e", "0", "--build-id", "-T", d / "script", d / "kernel.o", "-o", d / "vmlinux")
        run("ld", "-r", "--build-id", d / "kernel.o", "-o", d / "work.ko")
        pushed = cli("symbols", "push", "--server", server, d / "vmlinux")
        lib.check(pushed.returncode == 0, f"push of a kernel: {pushed.stderr}")
        for name, expected in (("work.ko", "201"), ("kernel.o", "400")):
            code = run("curl", "-s", "-o", d / "answer", "-w", "%{http_code}", "-T", d / name, f"{server}/api/v1/symbols").strip()
            lib.check(code == expected, f"{name}: HTTP {code}: {(d / 'answer').read_text()}")
        tables = {e["build_id"]: e["symbols"] for e in reducer.json("/api/v1/symbols")["executables"] if e["symbols"]}
        for name in ("vmlinux", "work.ko"):
            table = tables.get(build_id(d / name))
            lib.check(table and table["source"] == "dwarf" and table["functions"] >= 4, f"{name}: {table}")
            print(f"  {name}: {table['functions']} functions")


def bombs():
    """Uploads files that expand to more than the memory.

    Each must end within its limits, in a table or a counted refusal, while the page keeps answering.
    """
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d, args=["--symbol-memory-max-bytes", "512MiB"])
        programs.append(reducer)
        url = f"http://127.0.0.1:{reducer.http_port}/api/v1/symbols"
        slowest, stop = [0.0], threading.Event()

        def keep_asking():
            while not stop.is_set():
                began = time.monotonic()
                reducer.json("/api/v1/status")
                slowest[0] = max(slowest[0], time.monotonic() - began)
                time.sleep(0.05)

        asking = threading.Thread(target=keep_asking)
        asking.start()
        try:
            for bomb in dwarf_bombs.BOMBS:
                path = bomb(d / "bomb")
                began = time.monotonic()
                code = run("curl", "-s", "-o", d / "answer", "-w", "%{http_code}", "-T", path, url).strip()
                answer = (d / "answer").read_text()
                print(f"  {bomb.__name__}: {path.stat().st_size:,} bytes, HTTP {code} after {time.monotonic() - began:.1f} s: {answer[:120]}")
                lib.check(code in ("200", "201", "400", "413", "422"), f"{bomb.__name__}: HTTP {code}: {answer}")
        finally:
            stop.set()
            asking.join()
        made, failed = (reducer.metric(f"tributary_symbolizer_extractions{which}_total") for which in ("", "_failed"))
        lib.check(made + failed == len(dwarf_bombs.BOMBS), f"{made} + {failed} files were read")
        lib.check(failed >= 2, f"only {failed} were refused")
        resident = reducer.status()["reducer"]["rss_bytes"]
        print(f"  {int(made)} tables, {int(failed)} refusals; the slowest answer took {slowest[0]:.2f} s; the reducer has {resident >> 20} MiB")
        lib.check(resident < 512 << 20, f"the reducer has {resident} bytes")
        code = run("curl", "-s", "-o", d / "answer", "-w", "%{http_code}", "-T", lib.BIN / "unwind_cxx", url).strip()
        lib.check(code == "201", f"a good file is refused: HTTP {code}")


if __name__ == "__main__":
    lib.main(named_by_upload_alone, sent_by_the_node, found_by_the_reducer, kernels_and_modules, hostile_uploads, bombs)
