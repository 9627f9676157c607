"""Runs the pod of the overlay `simple` by hand, from its manifest and the image of this source: stacks are in its log within 10 s."""

import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "k8s")]

import lib  # noqa: E402
import made  # noqa: E402
import manifests  # noqa: E402
import run_pod  # noqa: E402

STACKS_S = 10  # the promise, on an idle machine. The test waits ten times as long, and prints how long it took
# A stack of any program has frames.
STACK = re.compile(r"New Sample.*?^Instrumentation: .*?End Sample", re.DOTALL | re.MULTILINE)
# A sample of the workload in the text of the console: its process, then the frames.
SAMPLE = re.compile(r"process\.executable\.name: truth \(Str\).*?Instrumentation: native, Function: \w+.*?End Sample", re.DOTALL)


# Numbers of <linux/capability.h> that manifests of Tributary use.
CAPABILITIES = {"DAC_READ_SEARCH": 2, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "SYS_RESOURCE": 24, "SYSLOG": 34, "PERFMON": 38, "BPF": 39,
                "CHECKPOINT_RESTORE": 40}


def names_of(mask):
    """Returns the names of a set of /proc/PID/status. Capabilities that CAPABILITIES does not have keep their number."""
    known = {number: name for name, number in CAPABILITIES.items()}
    return {known.get(number, number) for number in range(64) if int(mask, 16) >> number & 1}


def manifest(d):
    """Returns the file with the rendered overlay. Another file can be given in TRIBUTARY_POD_MANIFEST."""
    if given := os.environ.get("TRIBUTARY_POD_MANIFEST"):
        return pathlib.Path(given)
    (d / "simple.yaml").write_text(manifests.Tools("kustomize").overlay("simple"))
    return d / "simple.yaml"


def check_confinement(pod):
    """Checks that the container has what the manifest gives, and the process what the collector says that it kept."""
    status = dict(re.findall(r"^(\w+):\t(.*)$", pathlib.Path(f"/proc/{pod.pid()}/status").read_text(), re.MULTILINE))
    security = pod.container["securityContext"]
    lib.check(status["NoNewPrivs"] == "1", "the container may gain privileges")
    added = set(security["capabilities"]["add"])
    lib.check(names_of(status["CapBnd"]) == added, f"the container has {names_of(status['CapBnd'])}, and the manifest adds {added}")
    kept = {name.removeprefix("CAP_") for name in re.search(r"capabilities kept=(\S+)", pod.text())[1].split(",")}
    lib.check(names_of(status["CapEff"]) == kept <= added, f"the process has {names_of(status['CapEff'])}, and its log says {kept}")
    print(f"  capabilities kept={','.join(sorted(kept))}", flush=True)


def stacks_are_in_the_log():
    lib.mount_bpffs()
    with lib.directory() as d:
        image = made.image("kernel-collector", d)
        load = lib.Program("truth", [lib.BIN / "truth", 3600, 1], d)
        try:
            with run_pod.pod(manifest(d), image) as pod:
                started = time.monotonic()
                def found(pattern):
                    lib.check(pod.running(), f"the container ended:\n{pod.text()}")
                    return pattern.search(pod.text())
                lib.wait_for("stacks in the log", lambda: found(STACK), 10 * STACKS_S)
                print(f"  stacks are in the log after {time.monotonic() - started:.1f} s", flush=True)
                lib.wait_for("named stacks of a program", lambda: found(SAMPLE), 10 * STACKS_S)
                print(f"  named stacks of a program are in the log after {time.monotonic() - started:.1f} s", flush=True)
                for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                    if kind in pod.container:
                        status = pod.probe(kind)
                        lib.check(status == 200, f"{kind} gets {status}")
                check_confinement(pod)
                lib.check(pod.stop() == 0, f"the container failed:\n{pod.text()[-3000:]}")
                last = re.findall(r"info stopped captured=(\d+) sent=(\d+) .*?lost=(\d+)", pod.text())
                lib.check(last and int(last[-1][0]) == int(last[-1][1]) + int(last[-1][2]), f"captured = sent + lost: {pod.text()[-500:]}")
                print(f"  captured {last[-1][0]}, printed {last[-1][1]}, lost {last[-1][2]}", flush=True)
        finally:
            load.kill()


def a_manifest_without_a_capability_is_noticed():
    """Without CAP_BPF the collector does not start, and its log says why. So the runner grants only what the manifest has."""
    with lib.directory() as d:
        path = manifest(d)
        text = path.read_text()
        changed = re.sub(r"^ *- BPF\n|\bBPF, ", "", text, count=1, flags=re.MULTILINE)
        lib.check(changed != text, f"{path} does not add BPF")
        (d / "manifest.yaml").write_text(changed)
        result = subprocess.run([sys.executable, run_pod.__file__, "--manifest", d / "manifest.yaml", "--image", made.image("kernel-collector", d),
                                 "--seconds", "60"], capture_output=True, text=True, check=False)
        lib.check(result.returncode == 1 and "CAP_BPF" in result.stdout, f"{result.returncode}: {result.stdout[-2000:]}{result.stderr}")


if __name__ == "__main__":
    lib.main(stacks_are_in_the_log, a_manifest_without_a_capability_is_noticed)
