"""Tests the metadata that a node sends: its host, its operator's and its cloud's attributes, and Docker's containers.

No service may keep the node from sampling. The test reads the sent messages in the collector's recording.
"""

import json
import pathlib
import subprocess
import time

import container_test
import fake_services
import lib

RATE = 199
WEB, JOB, POD = "a1" * 32, "b2" * 32, "c3" * 32
IMAGE = "sha256:" + "4" * 64


class Node(lib.Collector):
    """A collector without a reducer, and its recording."""

    def __init__(self, directory, *args, name="collector", env=None):
        self.recording = pathlib.Path(directory) / f"{name}.rec"
        super().__init__(directory, 1, rate=RATE, name=name,
                         args=["--batch-interval", "200ms", "--shutdown-timeout", "0s", "--record-intake-output-path", self.recording,
                               *args])

    def messages(self):
        text = subprocess.run(lib.ROOT + [lib.BIN / "tributary", "inspect", self.recording], capture_output=True, text=True,
                              check=False).stdout
        return [json.loads(line) for line in text.splitlines()]

    def entities(self):
        """Returns the latest state of every entity: (kind, id) → attributes, or None if the entity is gone."""
        known = {}
        for message in self.messages():
            for entity in message.get("entities", ()):
                known[entity["kind"], entity["id"]] = None if entity["gone"] else entity["attributes"]
        return known

    def host(self):
        hosts = [attributes for (kind, _), attributes in self.entities().items() if kind == "host"]
        return hosts[0] if hosts else {}

    def captured(self):
        batches = [m for m in self.messages() if m["type"] == "batch"]
        return batches[-1]["captured"] if batches else 0

    def wait_sampling(self):
        lib.wait_for("samples", lambda: self.captured() > 0, 20)


def check_attributes(found, expected):
    for key, value in expected.items():
        lib.check(found.get(key) == value, f"{key} is {found.get(key)!r}, not {value!r}, in {found}")


def host_and_operator():
    """Tests the host's files below --host-dir, and that the operator's attributes override all others."""
    with lib.directory() as d, lib.programs() as programs:
        etc = d / "hostfs/etc"
        etc.mkdir(parents=True)
        machine_id = "0123456789abcdef0123456789abcdef"
        (etc / "machine-id").write_text(machine_id + "\n")
        (etc / "os-release").write_text('NAME="Test Linux"\nVERSION_ID=7\nPRETTY_NAME="Test Linux 7 (seven)"\n')
        config = d / "config.yaml"
        config.write_text("labels:\n  namespace: shop\n  environment: prod\n  zone: rack-7\n")
        node = Node(d, "--config", config, "--host-dir", d / "hostfs", "--cloud-metadata", "off", "--docker-socket", "",
                    "--labels-service", "web", "--resource-attribute", "service.name=api,team=a%20b")
        programs.append(node)
        lib.wait_for("the host", node.host, 20)
        node.wait_sampling()
        kernel = subprocess.run(["uname", "-n"], check=True, capture_output=True, text=True).stdout.strip()
        check_attributes(node.host(), {
            "host.id": machine_id, "host.name": kernel, "os.type": "linux", "os.name": "Test Linux", "os.version": "7",
            "os.description": "Test Linux 7 (seven)", "service.namespace": "shop", "deployment.environment.name": "prod",
            "cloud.availability_zone": "rack-7", "service.name": "api", "team": "a b"})
        lib.check(("host", machine_id) in node.entities(), f"the host's id is not the node's: {list(node.entities())}")
        lib.check(any(m.get("ends_snapshot") for m in node.messages()), "the snapshot does not end")
        lib.check(node.stop() == 0, "the exit code")


def clouds():
    expected = {
        "aws": {"cloud.provider": "aws", "cloud.platform": "aws_ec2", "cloud.account.id": "123456789012", "cloud.region": "eu-west-1",
                "cloud.availability_zone": "eu-west-1b", "host.id": "i-1234567890abcdef0", "host.type": "m5.large",
                "host.image.id": "ami-5fb8c835",
                "cloud.resource_id": "arn:aws:ec2:eu-west-1:123456789012:instance/i-1234567890abcdef0"},
        "gcp": {"cloud.provider": "gcp", "cloud.platform": "gcp_kubernetes_engine", "cloud.account.id": "shop-prod",
                "cloud.region": "europe-west1", "cloud.availability_zone": "europe-west1-b", "host.id": "4520031799277581759",
                "host.type": "e2-standard-4", "host.image.id": "projects/cos-cloud/global/images/cos-113", "k8s.cluster.name": "shop"},
        "azure": {"cloud.provider": "azure", "cloud.platform": "azure.vm", "cloud.account.id": "8d10da13", "cloud.region": "westeurope",
                  "cloud.availability_zone": "westeurope-2", "host.id": "02aab8a4", "host.type": "Standard_D4s_v3",
                  "host.image.id": "Debian:debian-12:12:7", "cloud.resource_id": "/subscriptions/8d10da13/vm"},
    }
    with lib.directory() as d, lib.programs() as programs, fake_services.serving(fake_services.instance_service) as service:
        for cloud, attributes in expected.items():
            node = Node(d, "--cloud-metadata", cloud, "--cloud-metadata-endpoint", service.url, "--docker-socket", "", name=cloud)
            programs.append(node)
            lib.wait_for(f"what {cloud} says", lambda: node.host().get("cloud.provider"), 20)
            check_attributes(node.host(), attributes)
            lib.check(node.stop() == 0, "the exit code")
        service.requests.clear()
        node = Node(d, "--cloud-metadata", "off", "--cloud-metadata-endpoint", service.url, "--docker-socket", "", name="off")
        programs.append(node)
        node.wait_sampling()
        lib.check(node.stop() == 0, "the exit code")
        lib.check(not service.requests, f"asked although it is off: {service.requests}")


def clouds_that_are_none():
    """Tests hostile instance services: sampling must begin at once, and the node must send its host without a cloud."""
    for serve in fake_services.HOSTILE:
        with lib.directory() as d, lib.programs() as programs, fake_services.serving(serve) as service:
            node = Node(d, "--cloud-metadata", "aws", "--cloud-metadata-endpoint", service.url, "--docker-socket", "")
            programs.append(node)
            node.wait_sampling()
            lib.wait_for("a request", lambda: service.requests, 5)
            time.sleep(1.3)  # longer than the service's time limit of one second
            host = node.host()
            lib.check(host.get("os.type") == "linux", f"{serve.__name__}: no host: {host}")
            lib.check(not [key for key in host if key.startswith("cloud.")], f"{serve.__name__}: {host}")
            begun = time.monotonic()
            lib.check(node.stop() == 0, f"{serve.__name__}: the exit code")
            lib.check(time.monotonic() - begun < 4, f"{serve.__name__}: a stop took {time.monotonic() - begun:.1f} s")


def in_containers(ids):
    """Makes the containers' cgroups and starts a program in each. Returns (cgroups, processes)."""
    made = [container_test.make(f"docker/{container}") for container in ids]
    started = []
    for folders in made:
        enter = " && ".join(f"echo $$ > {root}/{folder}/cgroup.procs" for root, folder in folders)
        started.append(subprocess.Popen(lib.ROOT + ["sh", "-c", f"{enter} && exec {lib.BIN}/truth 60"], stdout=subprocess.DEVNULL))
    return made, started


def leave(made, started):
    for process in started:
        subprocess.run(lib.ROOT + ["kill", "-9", str(process.pid)], check=False, stderr=subprocess.DEVNULL)
        process.wait()
    time.sleep(0.2)
    for folders in made:
        container_test.remove(folders)


def docker():
    containers = {
        WEB: ("web-1", "localhost:5000/shop/web:7", IMAGE, {"com.docker.compose.project": "shop", "team": "a\u001b[2Jb"}),
        POD: ("k8s_web", IMAGE, IMAGE, {"io.kubernetes.pod.name": "web-7d9", "io.kubernetes.pod.namespace": "shop",
                                        "io.kubernetes.pod.uid": "u-1", "io.kubernetes.container.name": "web"}),
    }
    images = {IMAGE: ["localhost:5000/shop/web@sha256:" + "5" * 64]}
    made, started = in_containers([WEB, JOB, POD])
    try:
        with lib.directory() as d, lib.programs() as programs:
            (d / "hostfs/var/run").mkdir(parents=True)
            socket = d / "hostfs/var/run/docker.sock"
            with fake_services.serving(fake_services.docker_api(containers, images), socket) as service:
                node = Node(d, "--cloud-metadata", "off", "--host-dir", d / "hostfs", "--docker-ns-label", "com.docker.compose.project")
                programs.append(node)
                lib.wait_for("both containers", lambda: len([1 for kind, _ in node.entities() if kind == "container"]) == 2, 20)
                check_attributes(node.entities()["container", WEB], {
                    "container.name": "web-1", "container.runtime.name": "docker", "container.image.name": "localhost:5000/shop/web",
                    "container.image.tag": "7", "container.image.id": IMAGE, "container.image.repo_digests": images[IMAGE][0],
                    "container.label.com.docker.compose.project": "shop", "service.namespace": "shop",
                    "container.label.team": "a\\x1b[2Jb"})
                check_attributes(node.entities()["container", POD], {
                    "k8s.pod.name": "web-7d9", "k8s.namespace.name": "shop", "k8s.pod.uid": "u-1", "k8s.container.name": "web"})
                lib.check("geheim" not in json.dumps(node.messages()), "a container's environment was told")
                asked = {r for r in service.requests if r.startswith("GET /containers/") and not r.endswith("/containers/json")}
                lib.check(asked == {f"GET /containers/{c}/json" for c in (WEB, JOB, POD)}, f"{asked}")
                lib.check(len(service.requests) == 4, f"more was asked than the three containers and one image: {service.requests}")
                lib.check(node.stop() == 0, "the exit code")
    finally:
        leave(made, started)


def samples_are_found_by_it():
    """Tests that the sent metadata selects samples at the reducer."""
    containers = {WEB: ("web-1", "shop/web:7", IMAGE, {"team": "red"}), JOB: ("job-1", "shop/job", IMAGE, {})}
    made, started = in_containers([WEB, JOB])
    try:
        with lib.directory() as d, lib.programs() as programs, fake_services.serving(fake_services.instance_service) as cloud, \
                fake_services.serving(fake_services.docker_api(containers, {}), d / "docker.sock"):
            reducer = lib.Reducer(d)
            programs.append(reducer)
            start = lib.now_ms()
            node = lib.Collector(d, reducer.intake_port, rate=RATE, args=[
                "--batch-interval", "500ms", "--cloud-metadata", "aws", "--cloud-metadata-endpoint", cloud.url, "--docker-socket",
                d / "docker.sock", "--labels-environment", "prod"])
            programs.append(node)

            def count(selector):
                return reducer.flamegraph(f'{{process_executable_name="truth",{selector}}}', start, lib.now_ms() + 1000).total_count[0]

            lib.wait_for("samples of both", lambda: count('container_name="web-1"') > 100 and count('container_name="job-1"') > 100, 30)
            lib.check(node.stop() == 0, "the collector's exit code")
            both = count('cloud_region="eu-west-1"')
            web, job = (count(f'container_id="{container}"') for container in (WEB, JOB))
            lib.check(web + job == both and web > 0 and job > 0, f"{web} and {job} of {both}")
            for selector, expected in {'container_image_tag="7"': web, 'container_image_name="shop/job"': job,
                                       'deployment_environment_name="prod"': both, 'cloud_resource_id=~".*/i-1234567890abcdef0"': both,
                                       'os_type="linux"': both, 'container_label_team="red"': web}.items():
                lib.check(count(selector) == expected, f"{selector}: {count(selector)}, not {expected}")
            lib.check_law(reducer.status())
            lib.check(reducer.stop() == 0, "the reducer's exit code")
    finally:
        leave(made, started)


def dockers_that_are_none():
    """Tests Docker sockets that hang, lie or flood: they cost neither samples nor memory, and hardly delay a stop."""
    made, started = in_containers([WEB, JOB])
    try:
        for serve in fake_services.HOSTILE:
            with lib.directory() as d, lib.programs() as programs, fake_services.serving(serve, d / "docker.sock") as service:
                node = Node(d, "--cloud-metadata", "off", "--docker-socket", d / "docker.sock")
                programs.append(node)
                lib.wait_for("a request", lambda: service.requests, 20)
                before = node.captured()
                time.sleep(2.5)
                lib.check(node.captured() - before > RATE, f"{serve.__name__}: {node.captured() - before} samples in 2.5 s")
                kinds = [kind for kind, _ in node.entities()]
                lib.check(kinds == ["host"], f"{serve.__name__}: {kinds}")
                memory = pathlib.Path(f"/proc/{node.pid}/status").read_text()
                peak_kb = int(memory.split("VmHWM:")[1].split()[0])
                lib.check(peak_kb < 150_000 or lib.is_instrumented("kernel-collector"), f"{serve.__name__}: {peak_kb} KB")
                begun = time.monotonic()
                lib.check(node.stop() == 0, f"{serve.__name__}: the exit code")
                lib.check(time.monotonic() - begun < 4, f"{serve.__name__}: a stop took {time.monotonic() - begun:.1f} s")
                last = [m for m in node.messages() if m["type"] == "batch"][-1]
                sampled = sum(len(m["samples"]) for m in node.messages() if m["type"] == "batch")
                lib.check(last["captured"] == sampled + sum(last["lost"].values()), f"{serve.__name__}: the law: {last['captured']} captured, "
                          f"{sampled} sent, lost {last['lost']}")
    finally:
        leave(made, started)


if __name__ == "__main__":
    lib.main(host_and_operator, clouds, clouds_that_are_none, docker, samples_are_found_by_it, dockers_that_are_none)
