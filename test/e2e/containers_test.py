"""Tests Docker's containers, in cgroups with the names that Kubernetes uses.

Every sample has its own container's id and never a neighbour's. This includes processes that live for 30 ms and
processes that `docker exec` starts. The collector sends Docker's information about the containers.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import uuid

import lib

NAMES = ("one", "two", "three")
SECRET = "correct-horse-battery-staple"
# Far more than any command needs. If the daemon hangs, the test fails instead of waiting for ever.
COMMAND_TIMEOUT_S = 60


def hierarchies():
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, path, kind, *_ = line.split()
        if kind in ("cgroup", "cgroup2"):
            yield pathlib.Path(path)


def processes_of(directory):
    """Yields the pids of processes with a path in `directory` on their command line: the daemon, containerd, shims."""
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and str(directory).encode() in (entry / "cmdline").read_bytes():
                if int(entry.name) != os.getpid():
                    yield int(entry.name)


class Docker:
    """A private daemon: its own socket, data and runtime folders, no network. It leaves nothing behind in any case."""

    def __init__(self, directory, storage_driver="vfs"):
        self.directory = directory / "docker"
        self.directory.mkdir()
        self.pods = []
        self.host = f"unix://{self.directory}/socket"
        self.daemon = lib.Program("dockerd", ["dockerd", "--host", self.host, "--data-root", self.directory / "data", "--exec-root",
                                              self.directory / "exec", "--pidfile", self.directory / "pid", "--bridge=none",
                                              "--iptables=false", "--ip-masq=false", "--ip-forward=false",
                                              f"--storage-driver={storage_driver}"],
                                  directory, as_root=True)

    def __call__(self, *args, stdin=None):
        result = subprocess.run([*lib.ROOT, "docker", "--host", self.host, *map(str, args)], stdin=stdin, capture_output=True, text=True,
                                timeout=COMMAND_TIMEOUT_S, check=False)
        lib.check(result.returncode == 0, f"docker {args[0]}: {result.stderr}")
        return result.stdout.strip()

    def wait_until_ready(self):
        def ready():
            lib.check(self.daemon.running(), f"dockerd ended:\n{self.daemon.text()}")
            probe = subprocess.run([*lib.ROOT, "docker", "--host", self.host, "version"], capture_output=True, timeout=COMMAND_TIMEOUT_S,
                                   check=False)
            return probe.returncode == 0
        lib.wait_for("dockerd", ready, COMMAND_TIMEOUT_S)

    def run(self, image, environment, *command, options=()):
        """Starts a container in its own pod. Returns (container id, pod uid)."""
        pod = str(uuid.uuid4())
        self.pods.append(pod)
        variables = [f"--env={name}={value}" for name, value in environment.items()]
        return self("run", "--detach", "--network=none", *options, f"--cgroup-parent=/kubepods/burstable/pod{pod}", *variables, image, *command), pod

    def end(self):
        with contextlib.suppress(lib.Failure, subprocess.TimeoutExpired):
            for container in self("ps", "--all", "--quiet").split():
                self("rm", "--force", container)
        with contextlib.suppress(lib.Failure):
            self.daemon.stop(30)
        with contextlib.suppress(lib.Failure):
            lib.wait_for("the end of all that the daemon started", self.kill_the_rest, 10)
        for line in reversed(pathlib.Path("/proc/mounts").read_text().splitlines()):
            if line.split()[1].startswith(f"{self.directory}/"):
                subprocess.run([*lib.ROOT, "umount", "--lazy", line.split()[1]], check=False)
        subprocess.run([*lib.ROOT, "rm", "-rf", self.directory], check=False)
        self.remove_cgroups()

    def cgroups(self):
        """Yields (hierarchy, the pod's folder) for each pod in every hierarchy."""
        for root in hierarchies():
            for pod in self.pods:
                folder = root / "kubepods/burstable" / f"pod{pod}"
                if folder.is_dir():
                    yield root, folder

    def processes(self):
        """Returns daemon, containerd and shims, found by command line, and processes in containers, found by cgroup."""
        inside = {int(pid) for _, folder in self.cgroups() for file in folder.rglob("cgroup.procs") for pid in file.read_text().split()}
        return inside | set(processes_of(self.directory))

    def kill_the_rest(self):
        """Kills the remaining processes. Returns true if there are none."""
        left = self.processes()
        for pid in left:
            subprocess.run([*lib.ROOT, "kill", f"-{int(signal.SIGKILL)}", str(pid)], check=False, stderr=subprocess.DEVNULL)
        return not left

    def remove_cgroups(self):
        """Removes the pods' cgroups that the daemon leaves: the parents that were passed to it."""
        for root, folder in list(self.cgroups()):
            for child in sorted(folder.rglob("*/"), reverse=True):
                subprocess.run([*lib.ROOT, "rmdir", child], check=False)
            subprocess.run([*lib.ROOT, "rmdir", "-p", "--ignore-fail-on-non-empty", folder.relative_to(root)], check=False, cwd=root)

    def left_behind(self):
        """Returns what remains of this daemon after its end. It must be empty."""
        left = [f"process {pid}" for pid in self.processes()]
        left += [line for line in pathlib.Path("/proc/mounts").read_text().splitlines() if str(self.directory) in line]
        return left + [str(folder) for _, folder in self.cgroups()]


@contextlib.contextmanager
def docker_daemon(directory, storage_driver="vfs"):
    docker = Docker(directory, storage_driver)
    try:
        docker.wait_until_ready()
        yield docker
    except BaseException:
        print("--- dockerd (last lines)\n" + "\n".join(docker.daemon.text().splitlines()[-20:]))
        raise
    finally:
        docker.end()
    lib.check(not docker.left_behind(), f"left behind: {docker.left_behind()}")


def make_image(docker, directory):
    """Makes an image with the life program under the test's names, its libraries, and a program that sleeps."""
    root = directory / "image"
    root.mkdir()
    for name in NAMES:
        shutil.copy(lib.BIN / "life_a", root / name)
        shutil.copy(lib.BIN / "life_b", root / f"{name}_short")
    shutil.copy(shutil.which("busybox"), root / "sleep")
    needed = subprocess.run(["ldd", lib.BIN / "life_a"], check=True, capture_output=True, text=True).stdout
    for library in re.findall(r"(/\S+) \(0x", needed):
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])
    archive = directory / "image.tar"
    subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
    with open(archive, "rb") as f:
        return docker("import", "-", "profiled:latest", stdin=f)


def count(reducer, start, end, **labels):
    selector = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return reducer.flamegraph(f"{{{selector}}}", start, end).total_count[0]


def messages(recording):
    """Returns a recording's messages. They must not contain an environment variable that was not requested."""
    text = subprocess.run([lib.BIN / "tributary", "inspect", recording], check=True, capture_output=True, text=True).stdout
    lib.check(SECRET not in text, "a variable that nobody asked for was recorded")
    return [json.loads(line) for line in text.splitlines()]


def definitions(recording):
    """Returns the process definitions of a recording."""
    return [process for line in messages(recording) for process in line.get("definitions", {}).get("processes", [])]


def check_docker_attributes(docker, recording, containers):
    """Checks each container's name, image name, image id and labels."""
    reported = {entity["id"]: entity["attributes"] for line in messages(recording) for entity in line.get("entities", ())
                if entity["kind"] == "container"}
    lib.check(set(reported) == {container for container, _ in containers.values()}, f"reported {set(reported)}")
    for name, (container, _) in containers.items():
        expected = {"container.name": docker("inspect", "--format", "{{.Name}}", container).lstrip("/"),
                    "container.runtime.name": "docker", "container.label.app": f"shop-{name}", "container.image.name": "profiled",
                    "container.image.tag": "latest", "container.image.version": "latest",
                    "container.image.id": docker("inspect", "--format", "{{.Image}}", container)}
        lib.check(reported[container] == expected, f"{name}: {reported[container]}, not {expected}")


def check_processes(recording, containers):
    """Checks that all processes are in their pods and that the attributes read from processes are right.

    A process that ran for 30 ms may have ended before its attributes could be read.
    """
    processes = definitions(recording)
    for name, (container, pod) in containers.items():
        inside = [p for p in processes if p["container_id"] == container]
        paths = {p["cgroup_path"] for p in inside}
        lib.check(paths == {f"/kubepods/burstable/pod{pod}/{container}"}, f"{name}'s pod is not in its cgroup: {paths}")
        attributes = {p["attributes"] for p in inside if p["attributes"]}
        lib.check(attributes == {f"service.name=shop-{name},process.environment_variable.STAGE=blue"}, f"{name} has {attributes}")


def three_pods():
    with lib.directory() as d, docker_daemon(d) as docker, lib.programs() as programs:
        image = make_image(docker, d)
        reducer = lib.Reducer(d)
        programs.append(reducer)
        start = lib.now_ms()
        collector = lib.Collector(d, reducer.intake_port, args=["--batch-interval", "1s", "--resource-env", "STAGE",
                                                                 "--docker-socket", docker.directory / "socket",
                                                                 "--record-intake-output-path", d / "recording"])
        programs.append(collector)
        lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)

        # The containers' own program only sleeps, so it is never sampled. The collector must learn of the containers
        # from processes that end after 30 ms.
        containers = {name: docker.run(image, {"OTEL_SERVICE_NAME": f"shop-{name}", "STAGE": "blue", "PASSWORD": SECRET}, "/sleep", 1000,
                                       options=[f"--label=app=shop-{name}"])
                      for name in NAMES}

        def work(name):
            docker("exec", containers[name][0], f"/{name}", "short", 30, 30, f"/{name}_short")
            docker("exec", containers[name][0], f"/{name}", "fork", 30, 30)

        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(work, NAMES))
        time.sleep(0.5)
        lib.check(collector.stop() == 0, "the collector's exit code")
        end = lib.now_ms() + 1000

        for name, (container, pod) in containers.items():
            for executable in (name, f"{name}_short"):
                everywhere = count(reducer, start, end, process_executable_name=executable)
                here = count(reducer, start, end, process_executable_name=executable, container_id=container)
                print(f"  {executable:12} {here} of {everywhere} samples in {container[:12]}")
                lib.check(here > 300, f"{here} samples of {executable} in its container")
                lib.check(here == everywhere, f"{everywhere - here} samples of {executable} are in no container, or another")
                in_pod = count(reducer, start, end, process_executable_name=executable, k8s_pod_uid=pod)
                lib.check(in_pod == everywhere, f"{everywhere - in_pod} samples of {executable} are in no pod, or another")
            of_service = count(reducer, start, end, process_executable_name=name, service_name=f"shop-{name}")
            lib.check(of_service == count(reducer, start, end, process_executable_name=name), f"{of_service} samples of shop-{name}")
        check_processes(d / "recording", containers)
        check_docker_attributes(docker, d / "recording", containers)
        lib.check(SECRET not in collector.text(), "a variable that nobody asked for was logged")
        lib.check_law(reducer.status())
        lib.check(reducer.stop() == 0, "the reducer's exit code")


if __name__ == "__main__":
    lib.main(three_pods)
