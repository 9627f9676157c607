"""Tests that samples are attributed to their container.

The processes run in cgroups with the names that container runtimes use, on this machine's cgroup hierarchies.
"""

import pathlib
import subprocess
import time

import lib


def hierarchies():
    """Yields every mounted cgroup hierarchy: only v2, or v1 controllers and perhaps v2 in addition."""
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, path, kind, *_ = line.split()
        # Skip cpuset: it needs its CPUs set before a process may enter, and no program finds a container by it.
        if kind in ("cgroup", "cgroup2") and path.startswith("/sys/fs/cgroup") and not path.endswith("cpuset"):
            yield pathlib.Path(path)


def make(path):
    """Makes the folder in every hierarchy. Returns (hierarchy, folder below it) for each."""
    made = [(root, path) for root in hierarchies()]
    for root, folder in made:
        subprocess.run(lib.ROOT + ["mkdir", "-p", root / folder], check=True)
    return made


def remove(made):
    for root, folder in made:
        subprocess.run(lib.ROOT + ["rmdir", "-p", "--ignore-fail-on-non-empty", folder], check=False, cwd=root)


def run_in(folders, seconds):
    """Runs the truth program. It is in the cgroups before it starts."""
    enter = " && ".join(f"echo $$ > {root}/{folder}/cgroup.procs" for root, folder in folders)
    return subprocess.run(lib.ROOT + ["sh", "-c", f"{enter} && exec {lib.BIN}/truth {seconds}"], check=True, capture_output=True)


def containers():
    docker, pod = "d0" * 32, "c1" * 32
    paths = {docker: f"docker/{docker}",
             pod: f"kubepods/burstable/pod0f6e6b0e-9d67-4ac0-b1f9-0d6cd5ee1111/{pod}"}
    made = {container: make(path) for container, path in paths.items()}
    try:
        with lib.directory() as d, lib.programs() as programs:
            reducer = lib.Reducer(d)
            programs.append(reducer)
            start = lib.now_ms()
            collector = lib.Collector(d, reducer.intake_port, rate=299, args=["--batch-interval", "1s"])
            programs.append(collector)
            lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
            for folders in made.values():
                run_in(folders, 2)
            lib.run_truth(1)
            time.sleep(0.5)
            lib.check(collector.stop() == 0, "the collector's exit code")
            end = lib.now_ms() + 1000
            listed = {c["id"]: c["count"] for c in reducer.json("/api/v1/series", **{"from": start, "to": end})["containers"]}
            for container in paths:
                count = reducer.flamegraph(f'{{container_id="{container}",process_executable_name="truth"}}', start, end).total_count[0]
                print(f"  {container[:12]}: {count} samples")
                lib.check(count > 400, f"{count} samples of container {container}")
                lib.check(listed.get(container, 0) >= count, f"the series lists {listed.get(container)} samples of {container}")
            outside = reducer.flamegraph('{container_id="",process_executable_name="truth"}', start, end).total_count[0]
            lib.check(outside > 200, f"{outside} samples outside any container")
            lib.check_law(reducer.status())
            lib.check(reducer.stop() == 0, "the reducer's exit code")
    finally:
        for folders in made.values():
            remove(folders)


if __name__ == "__main__":
    lib.main(containers)
