"""Tests the life of processes.

In all cases a sample is attributed to the file that was mapped at its time, or counted as unattributed, never
attributed to the wrong file. The programs burn known CPU time in functions with names that show their file
(test/workloads/life.c).
"""

import json
import subprocess
import time

import lib

A, B = lib.BIN / "life_a", lib.BIN / "life_b"
LIB_A, LIB_B = lib.BIN / "liblife_a.so", lib.BIN / "liblife_b.so"
RATE = 999
HELD_S = 1.8  # a sample may wait a second for its mappings, and then for the next batch
OWNERS = {"work_a": "life_a", "work_b": "life_b", "library_work_a": "liblife_a.so", "library_work_b": "liblife_b.so"}


class Profile:
    """All samples of the two programs, by leaf function, and the samples in impossible places."""

    def __init__(self, reducer, start_ms, end_ms):
        self.ns, self.total_ns, self.misplaced = dict.fromkeys(OWNERS, 0), 0, []
        for program in ("life_a", "life_b"):
            graph = reducer.flamegraph(f'{{process_executable_name="{program}"}}', start_ms, end_ms)
            self.total_ns += graph.total_ns[0]
            for node in range(1, len(graph)):
                name = graph.name_of(node)
                if graph.kind[node] != 1 or name not in OWNERS:
                    continue
                self.ns[name] += graph.total_ns[node]
                owner = OWNERS[name]
                if graph.executable_of(node) != owner or (not name.startswith("library") and owner != program):
                    self.misplaced.append((program, graph.path(node), graph.total_count[node]))


class Scene:
    """One reducer and one collector that observe a scenario."""

    def __init__(self, reducer, collector):
        self.reducer, self.collector = reducer, collector

    def play(self, *arguments):
        start = lib.now_ms()
        subprocess.run([A, *(str(a) for a in arguments)], check=True, capture_output=True)
        time.sleep(HELD_S)
        captured = self.reducer.status()["total"]["captured"]
        lib.wait_for("the last samples", lambda: self.reducer.status()["total"]["stored"] >= captured)
        return Profile(self.reducer, start, lib.now_ms() + 1000)

    def check(self, name, profile, expected_ms, slack=0.0):
        """Checks that each function's time is within 4 σ of the burnt time, and that no sample is misplaced.

        The share `slack` of the burnt time may be unattributed.
        """
        lib.check(not profile.misplaced, f"{name}: samples of one program in the other: {profile.misplaced[:5]}")
        for function, ms in expected_ms.items():
            samples = ms * RATE / 1000
            seen = profile.ns[function] / 1e6
            bound = 4 * samples ** 0.5 * 1000 / RATE + 0.02 * ms
            print(f"  {name}: {function} {seen:.0f} ms of {ms}, bound ±{bound:.0f}")
            lib.check(ms * (1 - slack) - bound <= seen <= ms + bound, f"{name}: {function} shows {seen:.0f} ms, burnt {ms}")


def scenarios(scene):
    scene.check("exec", scene.play("exec", 40, 25, B), {"work_a": 21 * 25, "work_b": 20 * 25})
    scene.check("fork without exec", scene.play("fork", 40, 25), {"work_a": 1000})
    scene.check("threads", scene.play("threads", 8, 100), {"work_a": 800})
    scene.check("lives of 5 ms", scene.play("short", 200, 5, B), {"work_b": 1000})
    scene.check("vfork", scene.play("vfork", 20, 25, B), {"work_a": 500, "work_b": 500})
    scene.check("one pid again and again", scene.play("reuse", 40, 25, B), {"work_a": 500, "work_b": 500})
    scene.check("pid namespace", scene.play("namespace", 1, 500, B), {"work_b": 500})
    # The two libraries are mapped at the same addresses, one after the other.
    scene.check("dlopen", scene.play("dlopen", 40, 10, LIB_A, LIB_B), {"library_work_a": 1200, "library_work_b": 400})
    # mremap causes no event. Until the collector reads the process's mappings again, samples at the new address have no
    # file. They must not have a wrong file.
    scene.check("mremap", scene.play("remap", 4, 250, LIB_A), {"library_work_a": 1000}, slack=1.0)


def life_of_processes():
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=RATE, args=["--batch-interval", "500ms"])
        programs.append(collector)
        lib.wait_for("stored samples", lambda: reducer.status()["total"]["stored"] > 0, 30)
        # Get the names of the two programs and libraries first, so that the scenarios need not wait for them.
        subprocess.run([A, "short", "2", "300", B], check=True)
        subprocess.run([A, "dlopen", "2", "300", LIB_A, LIB_B], check=True)
        time.sleep(2)
        scenarios(Scene(reducer, collector))
        lib.check(collector.stop() == 0, "the collector's exit code")
        lib.check_law(reducer.status(), lost=0)


def storm():
    """Starts 2,000 processes within ten seconds: no sample is lost, and the collector keeps up."""
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=97)
        programs.append(collector)
        lib.wait_for("stored samples", lambda: reducer.status()["total"]["stored"] > 0, 30)
        started = time.monotonic()
        subprocess.run([A, "short", "2000", "1", B], check=True)
        took = time.monotonic() - started
        time.sleep(1)
        lib.check(collector.stop() == 0, "the collector's exit code")
        status = reducer.status()
        lib.check_law(status, lost=0)
        print(f"  2,000 processes in {took:.1f} s: {json.dumps(status['total'])}")


if __name__ == "__main__":
    lib.main(life_of_processes, storm)
