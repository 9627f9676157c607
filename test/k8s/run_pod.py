#!/usr/bin/env python3
"""Runs the pod of a DaemonSet by hand: the image's root file system in a container of runc, as the manifest says.

    test/k8s/run_pod.py --manifest rendered.yaml --image kernel-collector.tar [--seconds 10]

Prints the log of the container. It has the manifest's command, environment, user, capabilities, mounts, namespaces and memory
limit, and a kubelet's usual masked paths. Nothing that only a cluster has is there: no address of a pod, no service account, no
seccomp or AppArmor profile. So a manifest that needs one of the first two is refused.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import uuid

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "test/k8s"))

import pod_bundle  # noqa: E402
from pod_bundle import PodError  # noqa: E402

ROOT = [] if os.geteuid() == 0 else ["sudo", "-n"]


def documents(path):
    """Returns the documents of a rendered manifest. Raises PodError."""
    tools = subprocess.run([SOURCE / "test/deploy/build.sh", "tools"], check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    result = subprocess.run([tools, "yaml", path], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise PodError(f"{path}: {result.stderr.strip()}")
    return json.loads(result.stdout)


def unpack_image(path, folder):
    """Unpacks the only layer of an image that deploy/image.py made. Returns the image's configuration."""
    with tarfile.open(path) as image:
        manifest = json.load(image.extractfile("manifest.json"))[0]
        config = json.load(image.extractfile(manifest["Config"]))["config"]
        (name,) = manifest["Layers"]
        subprocess.run([*ROOT, "tar", "-x", "--same-owner", "-C", folder], check=True, input=image.extractfile(name).read())
    return config


class Pod:
    """A running container. Its output, stdout and stderr together, is in `log`."""

    def __init__(self, manifest, image, work):
        self.work = pathlib.Path(work)
        self.name = f"tributary-pod-{uuid.uuid4().hex[:12]}"
        root = self.work / "root"
        root.mkdir()
        bundle = pod_bundle.Bundle(documents(manifest), unpack_image(image, root), self.work)
        (self.work / "config.json").write_text(json.dumps(bundle.config(str(root))))
        self.container = bundle.container
        self.log = self.work / "log"
        self.runc = [*ROOT, "runc", "--root", str(self.work / "state")]
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen([*self.runc, "run", "--bundle", str(self.work), self.name], stdout=out, stderr=out,
                                            stdin=subprocess.DEVNULL)

    def text(self):
        return self.log.read_text(errors="replace")

    def running(self):
        return self.process.poll() is None

    def pid(self):
        """Returns the pid of the container's first process on the host."""
        state = subprocess.run([*self.runc, "state", self.name], check=True, capture_output=True, text=True).stdout
        return json.loads(state)["pid"]

    def probe(self, kind):
        """Asks the container's httpGet probe of a kind, such as readinessProbe. Returns the HTTP status."""
        get = self.container[kind]["httpGet"]
        port = pod_bundle.port_number(self.container, get["port"])
        url = f"{get.get('scheme', 'HTTP').lower()}://127.0.0.1:{port}{get['path']}"
        result = subprocess.run([*ROOT, "nsenter", "--target", str(self.pid()), "--net", "curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", url],
                                capture_output=True, text=True, check=False)
        return int(result.stdout or 0)

    def stop(self, timeout_s=30):
        """Sends SIGTERM, as a kubelet does, and returns the exit code."""
        if self.running():
            subprocess.run([*self.runc, "kill", self.name, "TERM"], check=False, capture_output=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout_s)
        subprocess.run([*self.runc, "delete", "--force", self.name], check=False, capture_output=True)
        return self.process.wait()


@contextlib.contextmanager
def pod(manifest, image):
    """Yields a running Pod. At the end nothing of it is left."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="tributary-pod-"))
    running = None
    try:
        running = Pod(manifest, image, work)
        yield running
    finally:
        if running:
            running.stop()
        subprocess.run([*ROOT, "rm", "-rf", "--one-file-system", work], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifest", required=True, metavar="FILE", help="YAML with one DaemonSet, and what it refers to")
    parser.add_argument("--image", required=True, metavar="FILE.tar", help="image that deploy/image.py made")
    parser.add_argument("--seconds", type=float, default=10, help="how long the pod runs (default 10)")
    options = parser.parse_args()
    if not shutil.which("runc"):
        sys.exit("run_pod.py: runc is missing: run dev/deps")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with pod(options.manifest, options.image) as running:
            end = time.monotonic() + options.seconds
            while running.running() and time.monotonic() < end:
                time.sleep(0.1)
            ended = not running.running()
            code = running.stop()
            sys.stdout.write(running.text())
    except PodError as error:
        sys.exit(f"run_pod.py: {error}")
    if ended or code:
        sys.exit(f"run_pod.py: the container ended with {code}")


if __name__ == "__main__":
    main()
