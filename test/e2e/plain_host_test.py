"""Tests a host without Kubernetes and without a cloud.

Every sample still has a service: the name of the systemd unit or of the executable. No attribute has an empty value,
the collector queries no missing cloud, and the logs are quiet. The reducer notices that a service runs another version.
"""

import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import container_test
import fake_services
import lib

RATE = 499
MACHINE_ID = "fedcba9876543210fedcba9876543210"
USER = "user.slice/user-1000.slice"
APPS = f"{USER}/user@1000.service/app.slice"

ATTRIBUTE = re.compile(r"^  (\S+): (.*) \(\w+\)$", re.M)
LOG_LINE = re.compile(r"^\d{4}-\d\d-\d\dT\S+ \w+ ")

# The program's name → (the cgroup where it runs, the service name that it sets, its expected service).
PROGRAMS = {
    "p-unit": ("system.slice/shop-web.service", None, "shop-web"),
    "p-nested": ("system.slice/shop-db.service/worker", None, "shop-db"),
    "p-template": ("system.slice/system-worker.slice/worker@3.service", None, "worker@3"),
    "p-session": (f"{USER}/session-3.scope", None, "p-session"),
    "p-user": (f"{APPS}/pipewire.service", None, "pipewire"),
    "p-terminal": (f"{APPS}/app-org.gnome.Terminal.slice/vte-spawn-f22f14d2-3d44-4304-9879-3fdd0df7b08e.scope", None, "p-terminal"),
    "p-plain": (None, None, "p-plain"),
    "p-sdk": ("system.slice/shop-sdk.service", "checkout", "checkout"),
}
HOST = {"host.id": MACHINE_ID, "os.type": "linux", "os.name": "Plain Linux", "os.version": "12", "os.description": "Plain Linux 12 (plain)"}


def make_host(directory):
    """Makes the files that describe a host. They include no container runtime's socket."""
    etc = directory / "hostfs/etc"
    etc.mkdir(parents=True)
    (etc / "machine-id").write_text(MACHINE_ID + "\n")
    (etc / "os-release").write_text('NAME="Plain Linux"\nVERSION_ID=12\nPRETTY_NAME="Plain Linux 12 (plain)"\n')
    return directory / "hostfs"


@contextlib.contextmanager
def cgroups(paths):
    made = {path: container_test.make(path) for path in paths}
    try:
        yield made
    finally:
        for folders in made.values():
            container_test.remove(folders)


def start_in(folders, command, environment=None):
    """Starts a program in the cgroups. If `folders` is empty, the program stays in the test's cgroups."""
    enter = "".join(f"echo $$ > {root}/{folder}/cgroup.procs && " for root, folder in folders)
    env = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")} | (environment or {})
    return subprocess.Popen(lib.ROOT + ["sh", "-c", f"{enter}exec {' '.join(map(str, command))}"], stdout=subprocess.DEVNULL, env=env)


def run_all(directory, made):
    """Runs each program for two seconds, under its own name."""
    started = []
    for name, (path, service, _) in PROGRAMS.items():
        program = directory / name
        shutil.copy(lib.BIN / "truth", program)
        started.append(start_in(made[path] if path else [], [program, 2], {"OTEL_SERVICE_NAME": service} if service else None))
    for process in started:
        lib.check(process.wait() == 0, "a program's exit code")


def kernel_work(directory):
    """Gives the kernel's own threads work: pages to write back."""
    subprocess.run(["dd", "if=/dev/zero", f"of={directory / 'pages'}", "bs=1M", "count=400", "conv=fsync"], check=True, capture_output=True)


def start_collector(directory, reducer, cloud, *args):
    """Starts a collector that sees no cloud's firmware, whatever firmware this machine has."""
    without_firmware = 'if [ -d /sys/class/dmi/id ]; then mount -t tmpfs none /sys/class/dmi/id; fi; exec "$0" "$@"'
    return lib.Collector(directory, reducer.intake_port, rate=RATE, prefix=["unshare", "-m", "sh", "-c", without_firmware],
                         args=["--batch-interval", "500ms", "--host-dir", make_host(directory), "--cloud-metadata", "auto",
                               "--cloud-metadata-endpoint", cloud.url, *args])


def check_services(reducer, start, end):
    for name, (_, _, service) in PROGRAMS.items():
        def count(**labels):
            selector = ",".join(f'{label}="{value}"' for label, value in labels.items())
            return reducer.flamegraph(f"{{{selector}}}", start, end).total_count[0]
        everywhere = count(process_executable_name=name)
        lib.check(everywhere > RATE / 3, f"{everywhere} samples of {name}")
        here = count(process_executable_name=name, service_name=service)
        lib.check(here == everywhere, f"{name}: {here} of {everywhere} samples are of service {service}")
        with_host = count(process_executable_name=name, **{key.replace(".", "_"): value for key, value in HOST.items()})
        lib.check(with_host == everywhere, f"{name}: {with_host} of {everywhere} samples know their host")
        print(f"  {name:12} {everywhere} samples of {service}")


def check_series(reducer, start, end):
    """Checks the choices that the page offers."""
    def of(query):
        return reducer.json("/api/v1/series", query=query, **{"from": start, "to": end})
    ours = of('{process_executable_name=~"p-.*"}')
    for kind in ("containers", "pods", "namespaces", "workloads"):
        lib.check(not ours[kind], f"{kind}: {ours[kind]}")
    lib.check({service["name"] for service in ours["services"]} == {service for _, _, service in PROGRAMS.values()}, f"{ours['services']}")
    kernel = of('{process_executable_path=""}')
    threads = {process["command"] for process in kernel["processes"] if process["parent_pid"] == 2}
    lib.check(any("/" in name for name in threads), f"of the kernel's threads only {threads} were sampled")
    names = {service["name"] for service in kernel["services"]}
    lib.check({name.split("/")[0] for name in threads} <= names and not [name for name in names if "/" in name], f"{threads}: {names}")
    everything = of("{}")
    for service in everything["services"]:
        lib.check(service["name"] and "unknown" not in service["name"], f"service {service}")
    for process in everything["processes"]:
        lib.check(process["executable"] or process["command"], f"a process without a name: {process}")
    print(f"  kernel threads {sorted(threads)} of services {sorted(names)}")


def exported_resources(text):
    """Yields (attributes, executables) of each resource in the console exporter's text."""
    for block in text.split("--------------- New Resource Profile --------------\n")[1:]:
        resource, profiles = block.split("------------------- New Profile -------------------\n", 1)
        yield dict(ATTRIBUTE.findall(resource)), set(re.findall(r"^  +process.executable.name: (.*) \(Str\)$", profiles, re.M))


def check_export(text):
    services = {}
    for resource, executables in exported_resources(text):
        lib.check(all(resource.values()), f"an attribute without a value was exported: {resource}")
        lib.check(resource.items() >= HOST.items() and resource.get("host.name") and resource.get("host.arch"), f"the host is missing in {resource}")
        lib.check("service.name" in resource and "unknown" not in resource["service.name"], f"without a service: {resource} {executables}")
        ours = executables & set(PROGRAMS)
        lib.check(not ours or not [key for key in resource if key.startswith(("k8s.", "container.", "cloud."))], f"{resource}")
        for executable in ours:
            services.setdefault(executable, set()).add(resource["service.name"])
    for name, (_, _, service) in PROGRAMS.items():
        lib.check(services.get(name) == {service}, f"{name} was exported as of {services.get(name)}")


def check_log(program):
    """Checks that the log has neither warnings or errors nor repeated lines."""
    lines = [line.split(" ", 1)[1] for line in program.text().splitlines() if LOG_LINE.match(line)]
    lib.check(lines, f"{program.name} says nothing")
    complaints = [line for line in lines if not line.startswith("info ")]
    lib.check(not complaints, f"{program.name} complains: {complaints}")
    often = [line for line, times in collections.Counter(lines).items() if times > 1]
    lib.check(not often, f"{program.name} repeats itself: {often}")


def a_plain_host():
    paths = {path for path, _, _ in PROGRAMS.values() if path}
    with lib.directory() as d, cgroups(paths) as made, lib.programs() as programs, \
            fake_services.serving(fake_services.instance_service) as cloud:
        reducer = lib.Reducer(d, args=["--export", "console?layout=collector"])
        programs.append(reducer)
        start = lib.now_ms()
        collector = start_collector(d, reducer, cloud, "--docker-socket", d / "no.sock")
        programs.append(collector)
        lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
        run_all(d, made)
        kernel_work(d)
        lib.check(collector.stop() == 0, "the collector's exit code")
        end = lib.now_ms() + 1000
        check_services(reducer, start, end)
        check_series(reducer, start, end)
        lib.check(not cloud.requests, f"a cloud was asked: {cloud.requests}")
        lib.check_law(reducer.status())
        lib.check(reducer.stop() == 0, "the reducer's exit code")
        for program in (collector, reducer):
            check_log(program)
        check_export(reducer.text())


def rollouts(reducer, *args):
    text = subprocess.run([lib.BIN / "tributary", "rollouts", "--server", reducer.url, "--from", "-10m", *args], check=True,
                          capture_output=True, text=True).stdout
    return json.loads(text)["rollouts"] if "--json" in args else text


def composed(version):
    """Returns Docker's answer about a Compose service's container."""
    return ("shop-web-1", f"shop/web:{version}", "sha256:" + str(version) * 64, {"com.docker.compose.service": "web"})


def run_version(version, program, containers):
    """Runs a service that sets its own version, and one that gets it from its image.

    Each has two processes, one after the other.
    """
    environment = {"OTEL_RESOURCE_ATTRIBUTES": f"service.name=checkout,service.namespace=shop,service.version={version},deployment.environment.name=prod"}
    for _ in range(2):
        for process in [start_in([], [program, 2], environment), start_in(containers[version], [program, 2])]:
            lib.check(process.wait() == 0, "a program's exit code")


def check_rollouts(reducer):
    found = {rollout["name"]: rollout for rollout in rollouts(reducer, "--json")}
    lib.check(set(found) == {"checkout", "web"}, f"{found}")
    expected = {"checkout": {"kind": "service", "namespace": "shop", "environment": "prod", "version": "2", "images": "", "executable": "truth"},
                "web": {"kind": "service", "namespace": "", "environment": "", "version": "2", "images": "shop/web:2", "hash": "2" * 12}}
    for name, fields in expected.items():
        actual = {key: found[name][key] for key in fields}
        lib.check(actual == fields, f"{name}: {actual}")
        lib.check(found[name]["previous"]["version"] == "1" and found[name]["cluster"] == "", f"{found[name]}")
        before, after = found[name]["before"]["count"], found[name]["after"]["count"]
        lib.check(before > RATE * 3 and after > RATE * 3, f"{name}: {before} samples before, {after} after")
        marks = reducer.json("/api/v1/rollouts", query=f'{{service_name="{name}"}}', **{"from": "-10m", "to": "now"})["rollouts"]
        lib.check([mark["name"] for mark in marks] == [name], f"the page draws {marks}")
    text = rollouts(reducer)
    lib.check(re.search(r"shop service checkout \(prod\) +truth +1 → 2 ", text), text)
    lib.check(re.search(r"  service web +shop/web:1 → shop/web:2 +1 → 2 ", text), text)


def deploys():
    names = {1: "a1" * 32, 2: "b2" * 32}
    with lib.directory() as d, lib.programs() as programs, cgroups([f"docker/{container}" for container in names.values()]) as made, \
            fake_services.serving(fake_services.docker_api({names[v]: composed(v) for v in names}, {}), d / "docker.sock"):
        containers = {version: made[f"docker/{container}"] for version, container in names.items()}
        reducer = lib.Reducer(d)
        programs.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=RATE, args=["--batch-interval", "500ms", "--cloud-metadata", "off",
                                                                           "--docker-socket", d / "docker.sock"])
        programs.append(collector)
        lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
        run_version(1, lib.BIN / "truth", containers)
        lib.wait_for("both services to be known", lambda: reducer.metric("tributary_metadata_service_programs") >= 2, 90, 0.5)
        lib.check(not rollouts(reducer, "--json"), "what is seen first is no rollout")
        run_version(2, lib.BIN / "truth", containers)
        lib.wait_for("both rollouts", lambda: len(rollouts(reducer, "--json")) >= 2, 90, 0.5)
        check_rollouts(reducer)
        lib.check(collector.stop() == 0, "the collector's exit code")
        lib.check(reducer.stop() == 0, "the reducer's exit code")
        # After a restart the reducer still knows the rollouts and does not report them again.
        reducer = lib.Reducer(d, data=reducer.data, name="second")
        programs.append(reducer)
        lib.wait_for("a look", lambda: reducer.metric("tributary_metadata_service_programs") >= 2, 60, 0.5)
        check_rollouts(reducer)
        lib.check(reducer.stop() == 0, "the reducer's exit code")


if __name__ == "__main__":
    lib.main(a_plain_host, deploys)
