"""Tests what a pod or service says if its node or its configuration is bad: one clear log line, and /readyz.

Missing secrets, files that are no certificates, a wrong token, a kernel without type information (BTF), a memory limit
that is too small.
"""

import contextlib
import http.client
import pathlib
import re
import sys

import lib
from startup_test import expect_one_line, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
from memory_cgroup import MemoryCgroup  # noqa: E402  (in the folder of the benchmarks)

NOT_READY = 503


def readyz(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    with contextlib.closing(connection):
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        return answer.status, answer.read().decode().strip()


def missing_and_unusable_secrets():
    """A program whose secret is missing or is not what it should be ends with one line that names option and file."""
    with lib.directory() as d:
        (d / "empty").touch(mode=0o600)
        (d / "text").write_text("this is no certificate\n")
        programs = {
            "kernel-collector": ["--metrics-listen", "off"],
            "k8s-collector": ["--metrics-listen", "off", "--kubeconfig", d / "kubeconfig"],
            "reducer": ["--data-dir", d / "data", "--intake-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"],
        }
        (d / "kubeconfig").write_text("""{current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],
          clusters: [{name: k, cluster: {server: "http://127.0.0.1:1"}}], users: [{name: u, user: {}}]}""")
        cases = [
            ("kernel-collector", ["--intake-token-file", d / "absent"], ["--intake-token-file", "absent"]),
            ("kernel-collector", ["--intake-token-file", d / "empty"], ["--intake-token-file", "empty"]),
            ("kernel-collector", ["--tls", "--tls-ca", d / "absent"], ["--tls-ca", "absent"]),
            ("kernel-collector", ["--tls", "--tls-ca", d / "text"], ["--tls-ca", "text"]),
            ("k8s-collector", ["--intake-token-file", d / "absent"], ["--intake-token-file", "absent"]),
            ("k8s-collector", ["--tls", "--tls-ca", d / "text"], ["--tls-ca", "text"]),
            ("reducer", ["--intake-token-file", d / "absent"], ["--intake-token-file", "absent"]),
            ("reducer", ["--http-token-file", d / "absent"], ["--http-token-file", "absent"]),
            ("reducer", ["--tls-cert", d / "absent", "--tls-key", d / "absent"], ["--tls-cert", "absent"]),
            ("reducer", ["--tls-cert", d / "text", "--tls-key", d / "text"], ["--tls-cert", "text"]),
        ]
        for program, args, words in cases:
            prefix = lib.ROOT if program == "kernel-collector" else []
            result = run([lib.BIN / program, *programs[program], *args], prefix=prefix)
            expect_one_line(result, result.returncode, *words)
            lib.check(result.returncode in (1, 2), f"exit code {result.returncode}")


def wrong_token():
    """The collector logs once what the reducer says. /readyz and --health-check repeat it, until the token is right."""
    with lib.directory() as d, lib.programs() as programs:
        for name, token in (("reducer-tokens", "right-token-of-the-fleet"), ("token", "wrong-token-of-this-node")):
            (d / name).touch(mode=0o600)
            (d / name).write_text(token + "\n")
        reducer = lib.Reducer(d, ["--intake-token-file", d / "reducer-tokens"])
        programs.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=19, args=["--intake-token-file", d / "token", "--metrics-listen", "127.0.0.1:0"])
        programs.append(collector)
        port = lib.metrics_port(collector)
        lib.wait_for("/readyz to be 503", lambda: readyz(port)[0] == NOT_READY, 30)
        sentence = readyz(port)[1]
        print(f"  {sentence}")
        for word in (f"127.0.0.1:{reducer.intake_port}", "the token is not known"):
            lib.check(word in sentence, f"/readyz says: {sentence}")
        checked = run([lib.BIN / "kernel-collector", "--metrics-listen", f"127.0.0.1:{port}", "--health-check"])
        lib.check(checked.returncode == 0 and sentence in checked.stdout, f"--health-check: {checked}")
        lines = [line for line in collector.text().splitlines() if "the token is not known" in line]
        lib.check(len(lines) == 1 and "intake not connected" in lines[0], f"the log says: {lines}")
        lib.check(re.search(r"intake refused .*reason=bad_token", reducer.text()), "the reducer does not log the refusal")
        reducer.stop()
        lib.wait_for("/readyz to be 200, because no reducer refuses the node", lambda: readyz(port)[0] == 200, 60)
        (d / "token").write_text("right-token-of-the-fleet\n")
        reducer = lib.Reducer(d, ["--intake-token-file", d / "reducer-tokens"], intake_port=reducer.intake_port, name="reducer2")
        programs.append(reducer)
        lib.wait_for("samples with the right token", lambda: reducer.status()["total"]["stored"] > 0, 60)
        lib.check(readyz(port)[0] == 200, "not ready with the right token")
        lib.check(collector.stop() == 0, "the collector's exit code")
        lib.check_law(reducer.status(), lost=0)


def unusable_btf():
    """The file with the kernel's type information is empty, or something else."""
    with lib.directory() as d:
        for content in (b"", b"no type information\n" * 100):
            (d / "btf").write_bytes(content)
            script = f'mount --bind {d}/btf /sys/kernel/btf/vmlinux && exec "{lib.BIN}/kernel-collector" --metrics-listen off'
            expect_one_line(run(["unshare", "-m", "sh", "-c", script], prefix=lib.ROOT), 1, "BTF", "CONFIG_DEBUG_INFO_BTF")


def memory_limit():
    """With too small a limit, the kernel would kill the collector without a message. So the collector compares first."""
    with MemoryCgroup() as cgroup:
        cgroup.limit(16 << 20)
        result = run([*cgroup.prefix, lib.BIN / "kernel-collector", "--metrics-listen", "off"], prefix=lib.ROOT)
        expect_one_line(result, 1, "the memory limit is 16 MiB", "raise the limit")
        needed = int(re.search(r"at least (\d+) MiB", result.stdout + result.stderr).group(1))
    with MemoryCgroup() as cgroup, lib.directory() as d, lib.programs() as programs:
        cgroup.limit(needed << 20)
        reducer = lib.Reducer(d)
        programs.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=19, args=["--batch-interval", "500ms"], prefix=cgroup.prefix)
        programs.append(collector)
        lib.wait_for("samples with the least memory", lambda: reducer.status()["total"]["stored"] > 0 or not collector.running(), 60)
        lib.check(collector.running(), f"with {needed} MiB, the collector ended: {collector.process.poll()}\n{collector.text()}")
        lib.check(collector.stop(30) == 0, "the collector's exit code")
        lib.check(reducer.stop() == 0, "the reducer's exit code")
        print(f"  {needed} MiB are enough to sample")


if __name__ == "__main__":
    lib.main(missing_and_unusable_secrets, wrong_token, unusable_btf, memory_limit)
