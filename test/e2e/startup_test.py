"""Tests errors at start and later.

An error at start gives one clear line with advice and the right exit code, never a stack trace. Later errors end no
program: an unreachable reducer, a full disk.
"""

import os
import re
import socket
import subprocess
import time

import lib

UNPRIVILEGED = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]


def run(args, timeout_s=20, prefix=()):
    return subprocess.run([*prefix, *[str(a) for a in args]], capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL,
                          check=False)


def expect_one_line(result, code, *words):
    output = (result.stdout + result.stderr).strip()
    lines = output.splitlines()
    lib.check(result.returncode == code, f"exit code {result.returncode}, expected {code}: {output}")
    lib.check(len(lines) == 1, f"{len(lines)} lines instead of one:\n{output}")
    for word in words:
        lib.check(word.lower() in output.lower(), f"the message does not mention '{word}': {output}")
    print(f"  {lines[0]}")


def options():
    for binary in ("kernel-collector", "reducer"):
        expect_one_line(run([lib.BIN / binary, "--log-levle=debug"]), 2, "log-level")
    expect_one_line(run([lib.BIN / "kernel-collector", "--sample-rate=fast"]), 2, "sample-rate", "number")
    expect_one_line(run([lib.BIN / "reducer", "--intake-listen=nowhere"]), 2, "HOST:PORT")
    expect_one_line(run([lib.BIN / "reducer", "--config=/nonexistent.yaml"]), 2, "/nonexistent.yaml")
    with lib.directory() as d:
        config = d / "reducer.yaml"
        config.write_text("http_lisen: 127.0.0.1:1\n")
        expect_one_line(run([lib.BIN / "reducer", f"--config={config}"]), 2, "http_lisen", "http_listen")
        for binary in ("kernel-collector", "reducer", "tributary"):
            lib.check(run([lib.BIN / binary, "--help"]).returncode == 0, f"{binary} --help")
            version = run([lib.BIN / binary, "--version"]).stdout
            lib.check(re.fullmatch(binary + r" \d+\.\d+\.\d+ \(commit dev\)\n", version), f"{binary} --version: {version!r}")
        # The output of --print-config is a valid configuration file.
        printed = run([lib.BIN / "kernel-collector", "--sample-rate=7", "--print-config"])
        config.write_text(printed.stdout)
        again = run([lib.BIN / "kernel-collector", f"--config={config}", "--print-config"])
        lib.check(again.returncode == 0 and "sample_rate: 7" in again.stdout, f"--print-config does not read back: {again}")
        # The values of this list contain commas.
        users = ["--http-user-rights=ann=read,upload", "--http-user-rights=*=none"]
        proxy = ["--http-proxy-from=127.0.0.1", "--http-proxy-user-header=X-User"]
        printed = run([lib.BIN / "reducer", *users, *proxy, "--print-config"])
        config.write_text(printed.stdout)
        again = run([lib.BIN / "reducer", f"--config={config}", "--print-config"])
        lib.check(all('"ann=read,upload", "*=none"' in result.stdout for result in (printed, again)), f"a list does not read back: {printed} {again}")


def collector_without_privilege():
    if os.geteuid() != 0:
        prefix = []
    else:
        prefix = UNPRIVILEGED
    expect_one_line(run([lib.BIN / "kernel-collector"], prefix=prefix), 1, "root", "CAP_BPF")


def collector_without_btf():
    with lib.directory() as d:
        script = f'mount --make-rprivate /sys && mount --bind {d} /sys/kernel/btf && exec "{lib.BIN}/kernel-collector"'
        expect_one_line(run(["unshare", "-m", "--propagation", "unchanged", "sh", "-c", script], prefix=lib.ROOT), 1, "BTF", "CONFIG_DEBUG_INFO_BTF")


def collector_on_an_old_kernel():
    expect_one_line(run(["setarch", "--uname-2.6", lib.BIN / "kernel-collector"], prefix=lib.ROOT), 1, "5.10")


def reducer_port_in_use():
    with lib.directory() as d, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        expect_one_line(run([lib.BIN / "reducer", "--data-dir", d / "a", "--intake-listen", address, "--http-listen", "127.0.0.1:0"]),
                        1, address, "in use", "--intake-listen")
        expect_one_line(run([lib.BIN / "reducer", "--data-dir", d / "b", "--http-listen", address, "--intake-listen", "127.0.0.1:0"]),
                        1, address, "in use", "--http-listen")


def reducer_data_directory():
    with lib.directory() as d, lib.programs() as programs:
        programs.append(lib.Reducer(d))
        expect_one_line(run([lib.BIN / "reducer", "--data-dir", d / "data", "--intake-listen", "127.0.0.1:0", "--http-listen",
                             "127.0.0.1:0"]), 1, "another reducer", str(d / "data"))
        (d / "file").write_text("")
        expect_one_line(run([lib.BIN / "reducer", "--data-dir", d / "file" / "x", "--intake-listen", "127.0.0.1:0", "--http-listen",
                             "127.0.0.1:0"]), 1, "--data-dir")


def nothing_writable_but_the_data_directory():
    """Tests an image with a read-only root file system: temporary files must be next to the data."""
    with lib.directory() as d, lib.programs() as programs:
        script = "".join(f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder} && " for folder in ("/tmp", "/var/tmp"))
        script += f'mount --bind {d} {d} && mount -o remount,bind,rw {d} && cd /proc && exec "$@"'
        reducer = lib.Reducer(d, prefix=["env", "-u", "TMPDIR", "unshare", "--mount", "sh", "-c", script, "sh"])
        programs.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=99, args=["--batch-interval", "1s"])
        programs.append(collector)
        lib.wait_for("samples", lambda: reducer.status()["total"]["stored"] > 0, 60)
        lib.check(run([lib.BIN / "tributary", "symbols", "push", "--server", reducer.url, "--whole", lib.BIN / "truth"]).returncode == 0,
                  "the reducer took no file")
        lib.check(collector.stop() == 0, "the collector's exit code")
        lib.check(reducer.stop() == 0, "the reducer's exit code")


def intake_unreachable():
    with lib.directory() as d, lib.programs() as programs:
        collector = lib.Collector(d, 1, rate=19)
        programs.append(collector)
        time.sleep(3)
        lib.check(collector.running(), "the collector gave up")
        lines = [line for line in collector.text().splitlines() if "127.0.0.1:1" in line]
        lib.check(1 <= len(lines) <= 3, f"{len(lines)} lines about the unreachable reducer")
        print(f"  {lines[0]}")
        started = time.monotonic()
        lib.check(collector.stop(8) == 0, "the collector's exit code")
        lib.check(time.monotonic() - started < 6.5, "SIGTERM took longer than 5 s")


def disk_full():
    """Fills the data directory: nothing is acknowledged, nothing is lost, and storing continues when space is free."""
    with lib.directory() as d, lib.programs() as programs:
        data = d / "small"
        data.mkdir()
        subprocess.run(lib.ROOT + ["mount", "-t", "tmpfs", "-o", f"size=4m,uid={os.geteuid()}", "tmpfs", data], check=True)
        try:
            reducer = lib.Reducer(d, data=data)
            programs.append(reducer)
            filler = data / "filler"
            free = os.statvfs(data)
            filler.write_bytes(b"x" * (free.f_bavail * free.f_bsize))
            collector = lib.Collector(d, reducer.intake_port, rate=997, args=["--batch-interval", "1s"])
            programs.append(collector)
            lib.wait_for("a commit to fail on the full disk",
                         lambda: not reducer.running() or reducer.metric("tributary_reducer_commit_failures_total") >= 2, 60)
            lib.check(reducer.running(), "the reducer ended on a full disk")
            lib.check(reducer.status()["total"]["stored"] == 0, "something was stored on a full disk")
            lines = [line for line in reducer.text().splitlines() if "full" in line]
            print(f"  {lines[0]}")
            lib.check(len(lines) < 10, "a full disk floods the log")
            filler.unlink()
            lib.wait_for("samples once there is room", lambda: reducer.status()["total"]["stored"] > 0, 30)
            lib.check(collector.stop() == 0, "the collector's exit code")
            lib.check_law(reducer.status(), lost=0)
            lib.check(reducer.stop() == 0, "the reducer's exit code")
        finally:
            for program in programs:
                if program.running():
                    program.kill()
            subprocess.run(lib.ROOT + ["umount", "-l", data], check=True)


if __name__ == "__main__":
    lib.main(options, collector_without_privilege, collector_without_btf, collector_on_an_old_kernel, reducer_port_in_use,
             reducer_data_directory, nothing_writable_but_the_data_directory, intake_unreachable, disk_full)
