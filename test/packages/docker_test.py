"""Tests the build image and the images that it makes.

The tests run the public page's command lines in a container without a network, use a registry, and give bad input. The
collector runs in its container with the least capabilities, and profiles the host and a neighbour container.

The tests take minutes with a warm ccache and an hour without it. TRIBUTARY_LONG=1 runs the lines without volumes, so
each line compiles everything.
"""

import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import build_container  # noqa: E402
import containers_test  # noqa: E402
import fake_kubernetes  # noqa: E402
import lib  # noqa: E402
import truth_test  # noqa: E402

COMPONENTS = ("kernel-collector", "reducer", "k8s-collector", "tributary")
OUT = "type=volume,source=tributary-out,destination=/root/out"
# CAP_SYS_ADMIN stands in for CAP_BPF, CAP_PERFMON and CAP_CHECKPOINT_RESTORE, which Docker 20.10 does not know.
LEAST = ["--cap-drop", "all", "--cap-add", "SYS_ADMIN", "--cap-add", "SYS_PTRACE", "--cap-add", "DAC_READ_SEARCH", "--cap-add", "SYSLOG",
         "--security-opt", "no-new-privileges", "--read-only", "--pid", "host", "--network", "host",
         "--volume", "/etc:/hostfs/etc:ro", "--volume", "/sys/fs/cgroup:/hostfs/sys/fs/cgroup:ro"]
HARMLESS = ["--cap-drop", "all", "--security-opt", "no-new-privileges", "--read-only", "--network", "host"]
TRUTH_S = 20


class ContainerReducer(lib.Reducer):
    """A reducer in its image. Tests query its API like that of any other reducer."""

    def __init__(self, docker):
        self.docker = docker
        self.intake_port, self.http_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.http_port}"
        # An environment variable, because the image's health check reads it too.
        self.container = docker("run", "--detach", *HARMLESS, "--volume", "data:/var/lib/tributary",
                                "--env", f"EBPF_NET_HTTP_LISTEN=127.0.0.1:{self.http_port}", "reducer",
                                "--intake-listen", f"127.0.0.1:{self.intake_port}")

    def ready(self):
        try:
            return urllib.request.urlopen(f"{self.url}/readyz", timeout=30).status == 200
        except (urllib.error.URLError, OSError):
            check_runs(self.docker, self.container)
            return False


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def logs(docker, container):
    return subprocess.run([*lib.ROOT, "docker", "--host", docker.host, "logs", container], capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL).stderr


def check_runs(docker, container):
    running = docker("inspect", "--format", "{{.State.Running}}", container)
    lib.check(running == "true", f"the container ended:\n{logs(docker, container)}")


def stop(docker, container):
    docker("stop", "--time", 30, container)
    code = docker("inspect", "--format", "{{.State.ExitCode}}", container)
    lib.check(code == "0", f"exit status {code}:\n{logs(docker, container)}")


def wait_until_healthy(docker, container):
    def healthy():
        check_runs(docker, container)
        return docker("inspect", "--format", "{{.State.Health.Status}}", container) == "healthy"
    lib.wait_for(f"the health check of {container[:12]}", healthy, 300, 1)


def check_build_image(builder):
    base = builder.make_base()
    result = builder.build_image("--base", base)
    lib.check(result.returncode == 0, f"build.sh: {result.stderr[-3000:]}")
    print(f"  {result.stdout.strip().splitlines()[-1]}", flush=True)
    lib.check(not builder.leaks(), f"settings of this machine are in the image: {builder.leaks()}")
    left = builder.docker("run", "--rm", "--network", "none", "build-env", "bash", "-c",
                          "ls -A /mnt /var/lib/apt/lists /var/log; ls /root/.npmrc /root/.npm /etc/apt/sources.list 2>/dev/null; true")
    lib.check(not re.search(r"^[^/\s]", left, re.MULTILINE), f"left in the image: {left}")
    history = builder.docker("history", "--quiet", "build-env").split()
    lib.check(len(history) == 1, f"the image has {len(history)} layers")


def check_build_image_refusals(builder, directory):
    """Checks how build.sh refuses bad input. test/build_image_test.py tests a machine without docker."""
    base = directory / "base.tar"
    dead = directory / "dead.conf"
    dead.write_text('Acquire::http::Proxy "http://127.0.0.1:9";\nAcquire::https::Proxy "http://127.0.0.1:9";\nAcquire::Retries "0";\n')
    old = directory / "old"
    shutil.copytree(builder.source / "build-env", old / "build-env")
    shutil.copytree(builder.source / "ui", old / "ui")
    lock = old / "build-env/packages.lock"
    lock.write_text(re.sub(r"^(mold)=.*", r"\1=0.0-1", lock.read_text(), flags=re.MULTILINE))
    before = set(builder.docker("images", "--all", "--quiet").split())
    for words, how, sentence in (
            (["--base", base, "--tag", "refused"], {"APT_CONFIG": str(dead)}, "check the network and the proxy in this machine's apt settings"),
            (["--base", base, "--tag", "refused"], {"tree": old}, "no longer has mold=0.0-1; either .*lock.sh, or give --apt-sources"),
            (["--base", "no.such.registry.invalid/debian", "--tag", "refused"], {}, r"docker cannot pull .*mmdebstrap .*--base base\.tar")):
        result = builder.build_image(*words, **how)
        last = result.stderr.strip().splitlines()[-1]
        lib.check(result.returncode == 1 and re.search(rf"^build\.sh: .*{sentence}", last), f"{result.returncode}: {result.stderr[-2000:]}")
        print(f"  {last}", flush=True)
    lib.check(set(builder.docker("images", "--all", "--quiet").split()) == before, "a refused build left an image")


def check_images(builder):
    """Runs the public page's first line and checks the images that it made."""
    code, text = builder.line(build_container.documented_lines()[0], [builder.ccache()])
    lib.check(code == 0, f"the page's line: {text[-3000:]}")
    for component in COMPONENTS:
        lib.check(f"{component}: in the Docker daemon as {component}:latest" in text, f"no {component} in {text[-2000:]}")
        version = builder.docker("run", "--rm", "--read-only", "--network", "none", component, "--version")
        size = int(builder.docker("image", "inspect", "--format", "{{.Size}}", component))
        lib.check(size < 60e6, f"{component} has {size / 1e6:.1f} MB")
        user = builder.docker("image", "inspect", "--format", "{{.Config.User}}", component)
        print(f"  {component}: {version}, {size / 1e6:.1f} MB, user {user or 'root'}", flush=True)
        head = build_container.run(["git", "-C", builder.source, "rev-parse", "HEAD"], env=builder.environment).stdout.strip()
        lib.check(head[:12] in version, f"{version} does not name the commit {head}")
        lib.check(user.startswith("65532") or component == "kernel-collector", f"{component} runs as {user}")
    refused = subprocess.run([*lib.ROOT, "docker", "--host", builder.docker.host, "run", "--rm", "reducer", "--no-such-option"],
                             capture_output=True, check=False)
    lib.check(refused.returncode != 0, "the reducer took an unknown option")


def check_registry(builder, directory):
    """Runs the second line, which pushes. Checks that each image runs after it was pulled again by its digest."""
    with build_container.registry(directory):
        code, text = builder.line(build_container.documented_lines()[1], [builder.ccache(), OUT])
        lib.check(code == 0, f"the page's line: {text[-3000:]}")
        for component in COMPONENTS:
            name = f"{build_container.REGISTRY}/{component}"
            digest = re.search(rf"pushed as {name}:latest (sha256:[0-9a-f]{{64}})", text)
            lib.check(digest, f"no digest of {component} in {text[-2000:]}")
            builder.docker("rmi", "--force", f"{name}:latest")
            builder.docker("pull", "--quiet", f"{name}@{digest.group(1)}")
            version = builder.docker("run", "--rm", "--network", "none", f"{name}@{digest.group(1)}", "--version")
            print(f"  pulled {name}@{digest.group(1)[:19]}…: {version}", flush=True)


def check_refusals(builder, directory):
    """Checks that build.sh refuses bad input.

    Uses the output volume of the registry's line, so nothing is compiled again."""
    volumes = ["--mount", OUT, "--mount", builder.ccache()]
    builder.refused("unknown target dockre; the nearest is docker,", "dockre", status=2)
    builder.refused("holds no source tree of Tributary; mount one there", "docker", source=False)
    builder.refused("no Docker daemon answers at /var/run/docker.sock .*--no-docker", "docker", socket=False)
    readonly = directory / "readonly"
    readonly.mkdir()
    builder.refused("cannot write to /root/out .*EBPF_NET_OUT_DIR", "tributary",
                    options=["--mount", f"type=bind,source={readonly},destination=/root/out,readonly"])
    builder.refused("cannot write to /root/src/out .*mount a writable folder", "tributary", options=["--env", "EBPF_NET_OUT_DIR=/root/src/out"])
    builder.refused("the disk of /root/out is full; free about 3 GB", "tributary",
                    options=["--mount", "type=tmpfs,destination=/root/out,tmpfs-size=1m", "--mount", builder.ccache()])
    builder.refused(r"the registry localhost:1 did not accept localhost:1/tributary:latest .*EBPF_NET_DOCKER_REGISTRY",
                    "tributary-docker-registry", options=volumes, variables=["EBPF_NET_DOCKER_REGISTRY=localhost:1"])
    code, text = builder.build_sh("--no-docker", "tributary", "tributary-docker", options=volumes, socket=False)
    lib.check(code == 0, f"--no-docker: {text[-2000:]}")
    files = builder.docker("run", "--rm", "--network", "none", "--mount", OUT, "build-env", "find", "/root/out", "-name", "*partial*",
                           "-o", "-name", "*.old", "-o", "-path", "*/tributary/usr/bin/tributary").split()
    lib.check(files == ["/root/out/tributary/usr/bin/tributary"], f"left in the output: {files}")


def check_packages(builder):
    """Runs the target that makes packages. The source tree is read-only and belongs to another user."""
    code, text = builder.build_sh("packages", options=["--mount", OUT, "--mount", builder.ccache()], socket=False)
    lib.check(code == 0, f"packages: {text[-3000:]}")
    made = builder.docker("run", "--rm", "--network", "none", "--mount", OUT, "build-env", "ls", "/root/out/release").split()
    for kind in (".deb", ".rpm", ".tar.gz", "SHA256SUMS"):
        lib.check(any(name.endswith(kind) for name in made), f"no {kind} in {made}")
    print(f"  {len(made)} files of a release", flush=True)


def truth_image(docker, directory):
    """Makes an image of the workload with its libraries. Its program has a name that no other program has."""
    root = directory / "truth"
    root.mkdir()
    shutil.copy(lib.BIN / "truth", root / "truth_inside")
    shutil.copy(lib.BIN / "truth", directory / "truth_outside")
    needed = subprocess.run(["ldd", lib.BIN / "truth"], check=True, capture_output=True, text=True).stdout
    for library in re.findall(r"(/\S+) \(0x", needed):
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])
    archive = directory / "truth.tar"
    subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
    with open(archive, "rb") as f:
        return docker("import", "-", "truth:latest", stdin=f)


def check_shares(reducer, start, name, **labels):
    """Checks that the workload's profile has its true shares and that its samples have the labels."""
    selector = "{" + ",".join(f'{key}="{value}"' for key, value in {"process_executable_name": name, **labels}.items()) + "}"
    graph = lib.wait_for(f"names of {name}", lambda: truth_test.named(reducer.flamegraph(selector, start, lib.now_ms() + 1000)), 300)
    count = graph.total_count[0]
    lib.check(count > 5000, f"only {count} samples of {selector}")
    for function, share in truth_test.SHARES.items():
        seen, bound = graph.count_of(function) / count, lib.four_sigma(share, count)
        print(f"  {name} {labels}: {function} {seen:.4f} of {count}, true {share}, bound ±{bound:.4f}", flush=True)
        lib.check(abs(seen - share) <= bound, f"{name}: {function} has {seen:.4f}, true {share}, bound ±{bound:.4f}")
    return count


def check_profiles(docker, directory):
    """Runs all four programs in their images. Checks that the host and a neighbour container are profiled with known
    shares, and that lost samples are counted."""
    lib.mount_bpffs()
    lib.forget_collectors()
    image = truth_image(docker, directory)
    reducer = ContainerReducer(docker)
    lib.wait_for("the reducer", reducer.ready, 300)
    start = lib.now_ms()
    collector = docker("run", "--detach", *LEAST, "--volume", f"{docker.host.removeprefix('unix://')}:/var/run/docker.sock:ro",
                       "kernel-collector", "--intake-host", "127.0.0.1", "--intake-port", reducer.intake_port, "--sample-rate", "999",
                       "--cpu-budget", "off", "--batch-interval", "1s", "--log-console")
    lib.wait_for("the node", lambda: check_runs(docker, collector) or reducer.status()["nodes"], 300)
    with fake_kubernetes.FakeKubernetes() as api:
        cluster = docker("run", "--detach", *HARMLESS, "k8s-collector", "--api-server", api.url, "--cluster-name", "prod",
                         "--intake-host", "127.0.0.1", "--intake-port", reducer.intake_port)
        inside = docker("run", "--detach", "--network=none", image, "/truth_inside", TRUTH_S, 1)
        subprocess.run([directory / "truth_outside", str(TRUTH_S), "1"], check=True, capture_output=True)
        lib.wait_for("the workload in its container", lambda: docker("inspect", "--format", "{{.State.Running}}", inside) == "false", 600)
        for container in (reducer.container, collector, cluster):
            wait_until_healthy(docker, container)
        stop(docker, cluster)
    everywhere = check_shares(reducer, start, "truth_inside")
    here = check_shares(reducer, start, "truth_inside", container_id=inside)
    lib.check(everywhere == here, f"{everywhere - here} samples of the neighbour are in no container")
    check_shares(reducer, start, "truth_outside")
    time.sleep(2)  # two batches
    stop(docker, collector)
    lib.check_law(reducer.status())
    printed = json.loads(docker("run", "--rm", *HARMLESS, "tributary", "status", "--server", reducer.url, "--json"))
    lib.check(printed["total"]["captured"] == reducer.status()["total"]["captured"], f"tributary status prints {printed['total']}")
    print(f"  captured {printed['total']['captured']}, stored {printed['total']['stored']}, lost {printed['total']['lost']}", flush=True)
    stop(docker, reducer.container)


def images():
    with lib.directory() as d, containers_test.docker_daemon(d, "overlay2") as docker:
        builder = build_container.Builder(d, docker)
        for step, *arguments in ((check_build_image, builder), (check_build_image_refusals, builder, d), (check_images, builder),
                                 (check_registry, builder, d), (check_refusals, builder, d), (check_packages, builder),
                                 (check_profiles, docker, d)):
            started = time.monotonic()
            step(*arguments)
            print(f"  {step.__name__}: {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    lib.main(images)
