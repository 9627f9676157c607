"""Starts the stack of deploy/compose, without Grafana, with docker compose and images of this source.

The daemon has no bridge, so compose.host-network.yaml is used. Docker's version decides about compose.old-docker.yaml.
"""

import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "deploy")]

import compose_model  # noqa: E402
import containers_test  # noqa: E402
import lib  # noqa: E402
import made  # noqa: E402

SERVICES = ("reducer", "kernel-collector", "prometheus")
METRICS_PORTS = ("4041", "4043")  # of compose.host-network.yaml and prometheus.yml
WAIT_S = 120


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def load_images(docker, directory):
    """Makes the images with the names that compose.yaml has, and loads them."""
    services = compose_model.model(compose_model.BASE)["services"]
    for name in SERVICES:
        tag = services[name]["image"]
        script, more = ("prometheus_image.py", []) if name == "prometheus" else (
            "image.py", ["--build", made.build_folder(), "--component", name])
        path = directory / f"{name}.tar"
        subprocess.run([sys.executable, lib.SOURCE / "deploy" / script, *more, "--arch", "amd64", "--tag", tag, "--out", path], check=True)
        docker("load", "--input", path)
        path.unlink()


def compose_folder(directory):
    """Copies deploy/compose and deploy/grafana, as in a package, with free ports for metrics. Returns the folder with compose.yaml."""
    ports = {port: str(free_port()) for port in METRICS_PORTS}
    for name in ("compose", "grafana"):
        shutil.copytree(lib.SOURCE / "deploy" / name, directory / name, dirs_exist_ok=True)
    for name in ("compose.host-network.yaml", "prometheus.yml"):
        path = directory / "compose" / name
        path.write_text(re.sub("|".join(METRICS_PORTS), lambda found: ports[found[0]], path.read_text()))
    return directory / "compose"


class Stack:
    """The services of one project. At the end, containers and volumes are removed."""

    def __init__(self, docker, directory, *files, environment=None):
        major = int(docker("version", "--format", "{{.Server.Version}}").split(".")[0])
        old = ["compose.old-docker.yaml"] if major < 23 else []
        self.docker, self.folder = docker, compose_folder(directory)
        self.files = [compose_model.BASE, *files, *old, "compose.host-network.yaml"]
        self.ports = {name: free_port() for name in ("HTTP", "INTAKE", "PROMETHEUS")}
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "DOCKER_HOST": docker.host,
                            "TRIBUTARY_DOCKER_SOCKET": docker.host.removeprefix("unix://"), **(environment or {}),
                            **{f"TRIBUTARY_{name}_PORT": str(port) for name, port in self.ports.items()}}
        self.program = compose_model.build("compose")

    def __call__(self, *words):
        files = [word for file in self.files for word in ("--file", self.folder / file)]
        result = subprocess.run([*lib.ROOT, self.program, *files, *map(str, words)], env=self.environment, capture_output=True, text=True,
                                check=False, timeout=WAIT_S)
        lib.check(result.returncode == 0, f"docker compose {words}: {result.stderr}")
        return result.stdout

    def __enter__(self):
        self("up", "--detach")
        return self

    def __exit__(self, kind, error, trace):
        if kind:
            print(self("logs", "--no-color", "--tail", "40"))
        self("down", "--volumes", "--timeout", "30")

    def state(self, service, template):
        return self.docker("inspect", "--format", template, self("ps", "--all", "--quiet", service).strip())

    def stop(self, service):
        self("stop", service)
        code = self.state(service, "{{.State.ExitCode}}")
        lib.check(code == "0", f"{service} ended with {code}")


class StackReducer(lib.Reducer):
    """The reducer of a stack. Tests query its API like that of any other reducer."""

    def __init__(self, stack):
        self.url = f"http://127.0.0.1:{stack.ports['HTTP']}"


def answers(url, **more):
    try:
        with urllib.request.urlopen(url, timeout=30, **more) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, OSError):
        return None


def prometheus_value(stack, query):
    """Returns the value of a query with one result, or None."""
    text = answers(f"http://127.0.0.1:{stack.ports['PROMETHEUS']}/api/v1/query?{urllib.parse.urlencode({'query': query})}")
    result = json.loads(text)["data"]["result"] if text else []
    return float(result[0]["value"][1]) if len(result) == 1 else None


def check_confinement(stack):
    for service in SERVICES:
        shown = stack.state(service, "{{.HostConfig.Privileged}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.RestartPolicy.Name}}")
        lib.check(shown == "false true unless-stopped", f"{service}: {shown}")
        pid = stack.state(service, "{{.State.Pid}}")
        status = dict(re.findall(r"^(\w+):\t(.*)$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE))
        lib.check(status["NoNewPrivs"] == "1", f"{service} may gain privileges")
        if service != "kernel-collector":
            lib.check(status["CapEff"] == "0" * 16 and status["Uid"].startswith("65532\t"), f"{service}: {status['CapEff']}, user {status['Uid']}")


def check_prometheus(stack):
    for job in ("reducer", "kernel-collector"):
        lib.wait_for(f"a scrape of {job}", lambda: prometheus_value(stack, f'up{{job="tributary-{job}"}}') == 1, WAIT_S, 1)
    lib.wait_for("a metric of profiles", lambda: prometheus_value(stack, "sum(profile_cpu_seconds_total)"), WAIT_S, 1)
    rules = json.loads(answers(f"http://127.0.0.1:{stack.ports['PROMETHEUS']}/api/v1/rules"))["data"]["groups"]
    lib.check(sum(len(group["rules"]) for group in rules) > 10, f"alert rules: {rules}")


def check_samples(reducer, started_ms):
    """Runs a program, and waits until its samples are on the page."""
    load = subprocess.Popen([lib.BIN / "truth", "3600", "1"], stdout=subprocess.DEVNULL)
    try:
        def samples():
            found = reducer.flamegraph('{process_executable_name="truth"}', started_ms, lib.now_ms() + 1000)
            return found.total_count[0]
        return lib.wait_for("samples of a running program", lambda: samples() > 50 and samples(), WAIT_S, 0.5)
    finally:
        load.kill()
        load.wait()


def starts_with_one_command(docker, directory):
    with Stack(docker, directory) as stack:
        reducer, started_ms, started = StackReducer(stack), lib.now_ms(), time.monotonic()
        lib.wait_for("the page", lambda: "<html" in (answers(f"{reducer.url}/") or ""), WAIT_S)
        page_s = time.monotonic() - started
        count = check_samples(reducer, started_ms)
        print(f"  the page answers after {page_s:.1f} s, {count} samples of a program after {time.monotonic() - started:.1f} s", flush=True)
        check_confinement(stack)
        check_prometheus(stack)
        print(f"  Prometheus has scraped both after {time.monotonic() - started:.1f} s", flush=True)
        for service in SERVICES:
            lib.wait_for(f"the health of {service}", lambda: stack.state(service, "{{.State.Health.Status}}") == "healthy", WAIT_S, 1)
        stack.stop("kernel-collector")
        lib.check_law(reducer.status())
        total = reducer.status()["total"]
        print(f"  captured {total['captured']}, stored {total['stored']}, lost {total['lost']}", flush=True)
        for service in ("reducer", "prometheus"):
            stack.stop(service)


def make_certificates(folder, *options):
    subprocess.run([*lib.ROOT, lib.SOURCE / "dev/certs", "--out", folder, *options], check=True, capture_output=True)


def status_code(request, trusted):
    try:
        with urllib.request.urlopen(request, timeout=30, context=trusted) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def starts_with_tls(docker, directory):
    certificates = directory / "certs"
    make_certificates(certificates, "--owner", "65532:65532")
    token = subprocess.run([*lib.ROOT, "cat", certificates / "http-tokens"], check=True, capture_output=True, text=True).stdout.split()[0]
    environment = {"TRIBUTARY_CERTS": str(certificates), "TRIBUTARY_LISTEN": "0.0.0.0"}
    with Stack(docker, directory, "compose.tls.yaml", "compose.docker-names.yaml", environment=environment) as stack:
        trusted = ssl.create_default_context(cadata=subprocess.run([*lib.ROOT, "cat", certificates / "ca.crt"], check=True, capture_output=True,
                                                                  text=True).stdout)
        request = urllib.request.Request(f"https://localhost:{stack.ports['HTTP']}/api/v1/status", headers={"Authorization": f"Bearer {token}"})
        lib.wait_for("samples through TLS", lambda: json.loads(answers(request, context=trusted) or '{"total": {"stored": 0}}')["total"]["stored"],
                     WAIT_S, 0.5)
        check_confinement(stack)
        lib.wait_for("the health of the reducer", lambda: stack.state("reducer", "{{.State.Health.Status}}") == "healthy", WAIT_S, 1)
        subprocess.run([*lib.ROOT, "rm", certificates / "http-tokens"], check=True)
        make_certificates(certificates)  # without --owner: the new file must still belong to the reducer
        lib.wait_for("the revocation of a token", lambda: status_code(request, trusted) == 401, WAIT_S, 0.5)


def stacks():
    lib.mount_bpffs()
    with lib.directory() as d, containers_test.docker_daemon(d, "overlay2") as docker:
        load_images(docker, d)
        for step in (starts_with_one_command, starts_with_tls):
            lib.forget_collectors()
            started = time.monotonic()
            step(docker, d)
            print(f"  {step.__name__}: {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    lib.main(stacks)
