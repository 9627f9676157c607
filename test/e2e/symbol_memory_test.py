"""Tests the memory that symbol tables cost the node.

A separate process makes the tables, so that the collector does not grow by a table of the kernel (122,000 symbols) or
of libLLVM (45,000 symbols, a file of 130 MB). That process may die without harm.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

import lib

RATE = 199
GROWTH_KIB_MAX = 4 << 10
MAKER_KIB_LEAST = 24 << 10  # memory for a table of the kernel
AGAIN_S = 10  # the collector does not make the same table again within this time
SETTLE_S = 3
# Calls functions of libLLVM until it is killed.
BURN = """
import ctypes
llvm = ctypes.CDLL("{library}")
llvm.LLVMContextCreate.restype = ctypes.c_void_p
while True:
    llvm.LLVMContextDispose(ctypes.c_void_p(llvm.LLVMContextCreate()))
"""
INSTRUMENTED = lib.is_instrumented("kernel-collector")


def llvm():
    libraries = sorted(pathlib.Path("/usr/lib/llvm-19/lib").resolve().glob("libLLVM.so.19*"))
    lib.check(libraries, "no libLLVM: run dev/deps")
    return libraries[0].resolve()


class Memory:
    """RssAnon of the collector, read every 20 ms, and the peak of the processes that make tables for it."""

    def __init__(self, collector):
        self.pid, self.seen, self.maker_peak_kib, self.privileges = collector.pid, [], 0, set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @staticmethod
    def status(pid):
        try:
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
                return dict(line.split(":\t", 1) for line in file if ":\t" in line)
        except OSError:
            return {}

    def makers(self):
        children = subprocess.run(["pgrep", "-P", str(self.pid), "-f", "symbol-maker"], capture_output=True, text=True, check=False)
        return [int(pid) for pid in children.stdout.split() if "VmRSS" in self.status(int(pid))]

    def _run(self):
        maker = None
        while not self._end.wait(0.02):
            status = self.status(self.pid)
            if "RssAnon" in status:
                self.seen.append((time.monotonic(), int(status["RssAnon"].split()[0])))
            status = self.status(maker) if maker else {}
            if "VmHWM" not in status:
                maker = next(iter(self.makers()), None)
                continue
            self.maker_peak_kib = max(self.maker_peak_kib, int(status["VmHWM"].split()[0]))
            self.privileges.add((status["Seccomp"].strip(), int(status["CapPrm"], 16), status["NoNewPrivs"].strip()))

    def between(self, begin, end):
        return [kib for at, kib in self.seen if begin <= at <= end]

    def stop(self):
        self._end.set()
        self._thread.join()


class Scene:
    def __init__(self, directory, programs):
        self.directory, self.programs = directory, programs
        self.reducer = lib.Reducer(directory)
        programs.append(self.reducer)
        self.start = lib.now_ms()
        self.collector = lib.Collector(directory, self.reducer.intake_port, rate=RATE, args=["--batch-interval", "500ms"])
        programs.append(self.collector)
        lib.wait_for("stored samples", lambda: self.reducer.status()["total"]["stored"] > 0, 30)

    def replace_reducer(self):
        """Starts another reducer at the same address. It knows no table and requests all of them."""
        port = self.reducer.intake_port
        self.reducer.kill()
        data = self.directory / "other_data"
        self.reducer = lib.Reducer(self.directory, data=data, intake_port=port, name="other_reducer")
        self.programs.append(self.reducer)
        self.start = lib.now_ms()

    def named(self, kind, executable=""):
        """Returns whether functions of a file have the names of its table."""
        graph = self.reducer.flamegraph("{}", self.start, lib.now_ms() + 1000)
        return any(graph.kind[n] == kind and "+0x" not in graph.name_of(n) and not graph.name_of(n).startswith("[")
                   and (graph.executable_of(n) or "").startswith(executable) for n in range(1, len(graph)))

    def await_names(self, *executables):
        for executable in executables:
            lib.wait_for(f"names of {executable}", lambda: self.named(1, executable), 60)
        lib.wait_for("names of the kernel", lambda: self.named(2), 60)

    def metric(self, name):
        """Returns one of the collector's own metrics."""
        size = self.collector.log_path.stat().st_size
        self.collector.signal(signal.SIGUSR1.value)

        def logged():
            with open(self.collector.log_path, "rb") as file:
                file.seek(size)
                return re.search(rf"metric tributary_collector_{name} ([0-9.e+]+)", file.read().decode())

        return float(lib.wait_for(f"{name} in the log", logged).group(1))


def tables_are_made_elsewhere():
    """Tests that the collector's memory does not grow when it sends tables.

    A first reducer requests all tables, until the collector has the memory that sampling needs. Then a second reducer
    requests all tables again.
    """
    library = llvm()
    with lib.directory() as d, lib.programs() as programs:
        scene = Scene(d, programs)
        burn = subprocess.Popen(["python3", "-c", BURN.format(library=library)])
        try:
            scene.await_names(library.name)
            time.sleep(AGAIN_S)
            memory = Memory(scene.collector)
            time.sleep(SETTLE_S)
            begin = time.monotonic()
            scene.replace_reducer()
            scene.await_names(library.name)
            end = time.monotonic()
        finally:
            burn.kill()
        memory.stop()
        before, during = memory.between(0, begin), memory.between(begin, end)
        growth = max(during) - max(before)
        print(f"  RssAnon at most {max(before)} KiB before, {max(during)} KiB while tables are made and sent ({len(during)} looks): growth {growth} KiB;"
              f" the maker's peak {memory.maker_peak_kib} KiB")
        lib.check(memory.maker_peak_kib > MAKER_KIB_LEAST, "no process was seen that made a large table")
        lib.check(memory.privileges == {("2", 0, "1")}, f"the maker's seccomp, capabilities, no_new_privs: {memory.privileges}")
        lib.check(scene.metric("symbol_maker_deaths_total") == 0, "a maker died")
        if not INSTRUMENTED:
            lib.check(growth <= GROWTH_KIB_MAX, f"the collector has grown by {growth} KiB")
        lib.check(scene.collector.stop() == 0, "the collector's exit code")


def maker_dies():
    """Kills the maker: the collector starts another one for the next table and counts the death."""
    with lib.directory() as d, lib.programs() as programs:
        scene = Scene(d, programs)

        def burn(name):
            program = shutil.copy(lib.BIN / name, d / f"{name}_copy")
            subprocess.run([program, "2", "1"], check=True, stdout=subprocess.DEVNULL)
            scene.await_names(f"{name}_copy")

        memory = Memory(scene.collector)
        burn("truth")
        victim = lib.wait_for("a maker", memory.makers)[0]
        os.kill(victim, signal.SIGKILL)
        burn("truth_nofp")
        lib.check(scene.metric("symbol_maker_deaths_total") == 1, "the maker's death is not counted")
        heirs = memory.makers()
        lib.check(victim not in heirs, "the killed maker is alive")
        memory.stop()
        lib.check(scene.collector.stop() == 0, "the collector's exit code")
        lib.check_law(scene.reducer.status())


if __name__ == "__main__":
    lib.main(tables_are_made_elsewhere, maker_dies)
