"""Tests the public page's `docker run --privileged` line in a guest: it profiles the host and another container."""

import json
import pathlib
import shutil
import subprocess
import tempfile

import debian_guest
import made
from made import check

URL = "http://127.0.0.1:4040"
# The page's line with two changes. -it is left out because there is no terminal here. --log-console stands after the
# image's name because docker accepts it only there.
RUN_COLLECTOR = """docker run -d --name kernel-collector \
--env EBPF_NET_INTAKE_PORT=8000 \
--env EBPF_NET_INTAKE_HOST=127.0.0.1 \
--privileged \
--pid host \
--network host \
--volume /var/run/docker.sock:/var/run/docker.sock \
--volume /sys/fs/cgroup:/hostfs/sys/fs/cgroup \
--volume /etc:/hostfs/etc \
--volume /var/cache:/hostfs/cache \
--volume /usr/src:/hostfs/usr/src \
--volume /lib/modules:/hostfs/lib/modules \
kernel-collector --log-console"""
RUN_REDUCER = "docker run -d --name reducer --network host --read-only --volume data:/var/lib/tributary reducer --http-listen 127.0.0.1:4040"
RUN_BUSY = "docker run -d --name busy busy /busybox sh -c 'while :; do :; done'"


def busy_image(folder):
    """Makes a tar for docker import with one static program that can burn CPU time."""
    root = folder / "busy"
    root.mkdir()
    shutil.copy("/bin/busybox", root / "busybox")
    subprocess.run(["tar", "-cf", folder / "busy.tar", "-C", root, "busybox"], check=True)
    shutil.rmtree(root)


def executables(guest, query):
    """Returns the executables of the samples that the query selects."""
    answer = guest.run(f"curl -fsS --get --data-urlencode 'query={query}' {URL}/api/v1/flamegraph")
    return json.loads(answer)["executables"]


def start(guest):
    guest.run("systemctl start docker && docker import /mnt/busy.tar busy && docker load -qi /mnt/reducer.tar && "
              "docker load -qi /mnt/kernel-collector.tar")
    guest.run(RUN_REDUCER)
    guest.wait_for(f"curl -fsS {URL}/readyz")
    guest.run(RUN_BUSY)
    guest.run(RUN_COLLECTOR)


def the_privileged_line():
    with tempfile.TemporaryDirectory(prefix="tributary-privileged-") as d:
        directory, folder = pathlib.Path(d), pathlib.Path(d) / "images"
        folder.mkdir()
        for component in ("kernel-collector", "reducer"):
            made.image(component, folder)
        busy_image(folder)
        with debian_guest.Guest(directory, folder) as guest:
            start(guest)
            busy = guest.run("docker inspect -f '{{.Id}}' busy").strip()
            guest.wait_for("test \"$(docker inspect -f '{{.State.Running}}' kernel-collector)\" = true")
            try:
                guest.wait_for(f"curl -fsS --get --data-urlencode 'query={{container_id=\"{busy}\"}}' {URL}/api/v1/flamegraph | grep -q busybox")
            except debian_guest.Failure as e:
                raise made.Failure(f"{e}\n{guest.run('docker logs kernel-collector 2>&1; docker logs reducer 2>&1')}") from e
            check("dockerd" in str(executables(guest, "{}")), "the host's own processes are missing")
            # A container's name comes from docker's socket.
            guest.wait_for(f"curl -fsS {URL}/api/v1/series | grep -Eq '\"name\": ?\"busy\"'")
            guest.run("docker stop kernel-collector")
            total = json.loads(guest.run(f"curl -fsS {URL}/api/v1/status"))["total"]
            check(total["captured"] == total["stored"] + sum(total["lost"].values()), f"the law is broken: {total}")
            guest.run("docker stop reducer")
            codes = guest.run("docker inspect -f '{{.State.ExitCode}}' kernel-collector reducer").split()
            check(codes == ["0", "0"], f"exit codes {codes}")


if __name__ == "__main__":
    made.main(the_privileged_line)
