"""Tests the three daemons as services: reports to a service manager, log formats, and the effects of SIGHUP.

The test is the service manager: it reads the socket in $NOTIFY_SOCKET, as systemd does.
"""

import concurrent.futures
import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time

import fake_kubernetes
import lib
import security_test

WATCHDOG_S = 2  # a ping arrives each second; a loop is stuck if it is late by more than one second
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d"
# Stops one thread, like a loop that waits for ever: seize, interrupt. Detaches at the end of standard input.
FREEZE = """import ctypes, os, sys
ptrace, thread = ctypes.CDLL(None).ptrace, int(sys.argv[1])
assert ptrace(0x4206, thread, 0, 0) == 0 and ptrace(0x4207, thread, 0, 0) == 0
os.waitpid(thread, 0x40000000)
print("frozen", flush=True)
sys.stdin.read()
ptrace(17, thread, 0, 0)"""


class Manager:
    """The service manager's end of one service."""

    def __init__(self, directory, name):
        self.path = str(directory / f"{name}.notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        os.chmod(self.path, 0o666)
        self.env = {**os.environ, "NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": str(WATCHDOG_S * 1_000_000)}

    def receive(self, timeout_s):
        """Returns the next message as a dictionary, or None."""
        if not select.select([self.socket], [], [], timeout_s)[0]:
            return None
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())

    def wait_for(self, name, timeout_s=60):
        """Returns the next message that has this variable."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            message = self.receive(deadline - time.monotonic())
            if message is not None and name in message:
                return message
        raise lib.Failure(f"no {name} within {timeout_s} s")

    def drain(self):
        while self.receive(0) is not None:
            pass

    def no_pings(self, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            message = self.receive(deadline - time.monotonic())
            lib.check(message is None or "WATCHDOG" not in message, "a ping, though nothing makes progress")


class Service:
    """A daemon with its own manager and configuration file."""

    def __init__(self, d, programs, name, start, config):
        self.name, self.config = name, d / f"{name}.yaml"
        self.configure(config)
        self.manager = Manager(d, name)
        self.program = start(["--config", self.config], self.manager.env)
        programs.append(self.program)

    def configure(self, config):
        text = config if isinstance(config, str) else "".join(f"{key}: {json.dumps(value)}\n" for key, value in config.items())
        part = self.config.with_suffix(".part")
        part.write_text(text)
        part.rename(self.config)

    def reload(self, config=None):
        """Reloads the daemon. Returns the log lines of the reload when the daemon reports that it is done."""
        if config is not None:
            self.configure(config)
        before = len(self.program.text())
        self.manager.drain()
        self.program.signal(signal.SIGHUP)
        reloading = self.manager.wait_for("RELOADING")
        lib.check(0 < int(reloading["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000, f"{self.name}: the time of {reloading}")
        self.manager.wait_for("READY")
        return self.program.text()[before:]


def messages(text, log_format):
    """Returns (level, message) of each line. A line in another format is a failure."""
    out = []
    for line in text.splitlines():
        if log_format == "json":
            parsed = json.loads(line)
            lib.check(list(parsed) == ["time", "level", "msg"] and re.fullmatch(TIME, parsed["time"]), f"no line of JSON: {line}")
            out.append((parsed["level"], parsed["msg"]))
        else:
            pattern = rf'time={TIME} level=(\w+) msg="((?:[^"\\]|\\.)*)"' if log_format == "logfmt" else rf"{TIME} (\w+) (.*)"
            match = re.fullmatch(pattern, line)
            lib.check(match, f"no line of {log_format}: {line}")
            message = match.group(2)
            out.append((match.group(1), re.sub(r"\\(.)", r"\1", message) if log_format == "logfmt" else message))
    lib.check(out, f"nothing was logged as {log_format}")
    return out


def thread_of(program, loop):
    """Returns a loop's thread id. The main loop's thread id is the pid. Other threads are named after their loop."""
    if loop == "main":
        return program.pid
    for tid in os.listdir(f"/proc/{program.pid}/task"):
        with open(f"/proc/{program.pid}/task/{tid}/comm", encoding="utf8") as name:
            if name.read().strip() == loop:
                return int(tid)
    raise lib.Failure(f"{program.name} has no thread {loop}")


@contextlib.contextmanager
def frozen(thread):
    with subprocess.Popen(lib.ROOT + [sys.executable, "-c", FREEZE, str(thread)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as tracer:
        lib.check(tracer.stdout.readline() == "frozen\n", "a thread could not be stopped by ptrace")
        try:
            yield
        finally:
            tracer.stdin.close()
            tracer.wait()


def check_watchdog(service, loop):
    manager, program = service.manager, service.program
    for _ in range(2):
        manager.wait_for("WATCHDOG")
    with frozen(thread_of(program, loop)):
        lib.wait_for(f"{service.name} to name its stuck loop", lambda: "an event loop is stuck" in program.text(), 60)
        manager.drain()
        manager.no_pings(1.5 * WATCHDOG_S)
    manager.wait_for("WATCHDOG")
    stuck = [message for _, message in messages(program.text(), service.log_format) if "an event loop is stuck" in message]
    lib.check(len(stuck) == 1 and f'loop="{loop}":' in stuck[0], f"{service.name}: {stuck}")
    program.signal(signal.SIGSTOP)
    manager.drain()
    manager.receive(1)  # a ping may have been sent before the stop
    manager.no_pings(WATCHDOG_S)
    program.signal(signal.SIGCONT)
    manager.wait_for("WATCHDOG")


def check_reloads(service, config, restart_key):
    """Reloads from level info to error and back, with wrong files in between."""
    option = restart_key.replace("_", "-")
    changed = {**config, "log_level": "error", restart_key: "7s"}
    log = messages(service.reload(changed), service.log_format)
    lib.check(("info", "options reloaded changed=log-level") in log, f"{service.name}: {log}")
    lib.check(("warning", f"some changed options take effect only after a restart options={option}") in log, f"{service.name}: {log}")
    lib.check(service.reload() == "", f"{service.name} logs at level error")
    for wrong in ("log_level: [", {**changed, "log_level": "loud"}, {**changed, "log_lewel": "info"},
                  {**changed, "log_level": "info", "intake_token_file": "/nonexistent/token"}):
        log = messages(service.reload(wrong), service.log_format)
        lib.check(len(log) == 1 and log[0][0] == "error" and log[0][1].startswith("reload failed, all options keep their values"),
                  f"{service.name}: {wrong}: {log}")
        lib.check(service.reload(changed) == "", f"{service.name}: a wrong file changed something")
    log = messages(service.reload(config), service.log_format)
    lib.check(("info", "options reloaded changed=log-level") in log, f"{service.name}: {log}")


def check_log_file(service, path):
    """Checks that the log file has the same lines as standard error, in the same format."""
    lib.check(path.read_text() == service.program.text(), f"{service.name}: its log file differs from its standard error")
    messages(path.read_text(), service.log_format)


def exercise(d, programs, name, log_format, start, is_ready, restart_key, loop):
    log = d / f"{name}.copy.log"
    config = {"log_level": "info", "log_format": log_format, "log_file_path": str(log), "log_console": True}
    service = Service(d, programs, name, start, config)
    service.log_format = log_format
    ready = service.manager.wait_for("READY")
    lib.check(ready["STATUS"] and is_ready(service.program), f"{name} is not ready: {ready}\n{service.program.text()}")
    check_reloads(service, config, restart_key)
    check_watchdog(service, loop)
    check_log_file(service, log)
    service.manager.drain()
    service.program.signal(signal.SIGTERM)
    service.manager.wait_for("STOPPING")
    # Do not call stop(): a second signal would end the program at once.
    lib.wait_for(f"{name} to stop", lambda: not service.program.running(), 60)
    lib.check(service.program.process.returncode == 0, f"{name}'s exit code: {service.program.process.returncode}")
    lib.check(service.manager.path not in service.program.text(), f"{name} logs its manager's socket")


def three_services():
    with lib.directory() as d, fake_kubernetes.FakeKubernetes() as api, lib.programs() as programs:
        def reducer(args, env):
            return lib.Reducer(d, ["--shards", 2, *args], env=env)

        def kernel_collector(args, env):
            return lib.Collector(d, 1, rate=19, args=["--log-console", "--shutdown-timeout", "0s", *args], env=env)

        def k8s_collector(args, env):
            return lib.Program("k8s-collector", [lib.BIN / "k8s-collector", "--api-server", api.url, "--intake-port", 1, *args], d, env=env)

        with concurrent.futures.ThreadPoolExecutor() as at_once:
            runs = [at_once.submit(exercise, d, programs, *arguments) for arguments in (
                ("reducer", "json", reducer, lambda r: r.get("/readyz") is not None, "metadata_wait", "shard 1"),
                ("kernel-collector", "logfmt", kernel_collector, lambda c: "sampling rate_hz=19" in c.text(), "batch_interval", "main"),
                ("k8s-collector", "text", k8s_collector, lambda c: f"watching api_server={api.url}" in c.text(), "cluster_name", "main"))]
            for run in runs:
                run.result()


def sessions(reducer):
    return reducer.metric("tributary_intake_sessions")


def rotation():
    """Tests a new authority, certificate and token.

    Both ends reload, and the next connection uses the new credentials. A client with the old ones is refused.
    """
    with lib.directory() as d, fake_kubernetes.FakeKubernetes() as api, lib.programs() as programs:
        for age in ("old", "new"):
            security_test.shell(d, f"""
                openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {age}-ca.key -out {age}-ca.pem -subj /CN={age}
                umask 077; openssl rand -hex 32 > {age}-token""")
            security_test.sign(d, f"{age}", "localhost", ca=f"{age}-ca")

        def at_reducer(age):
            return {"tls_cert": str(d / f"{age}.pem"), "tls_key": str(d / f"{age}.key"), "intake_token_file": str(d / f"{age}-token")}

        def at_client(age):
            return {"tls_ca": str(d / f"{age}-ca.pem"), "tls_server_name": "localhost",
                    "intake_token_file": str(d / f"{age}-token")}

        def client(name, config):
            def start(args, env):
                return lib.Program(name, [lib.BIN / "k8s-collector", "--api-server", api.url, "--cluster-name", name,
                                          "--intake-port", reducer.program.intake_port, *args], d, env=env)
            return Service(d, programs, name, start, config)

        reducer = Service(d, programs, "reducer", lambda args, env: lib.Reducer(d, args, env=env), at_reducer("old"))
        k8s = client("k8s", at_client("old"))
        flags = ["--batch-interval", "500ms", "--node-id", "node"]
        node = Service(d, programs, "collector", lambda args, env: lib.Collector(
            d, reducer.program.intake_port, rate=99, args=[*flags, *args], env=env), at_client("old"))
        lib.wait_for("both old clients", lambda: sessions(reducer.program) == 2, 60)

        log = reducer.reload(at_reducer("new"))
        lib.check("reloaded changed=tls-cert,tls-key,intake-token-file" in log, log)
        lib.check(sessions(reducer.program) == 2, "a reload ended open connections")
        for name, config, reason in (("old-authority", at_client("old"), "tls_failed"),
                                     ("old-token", {**at_client("new"), "intake_token_file": str(d / "old-token")}, "bad_token")):
            before = security_test.refusals(reducer.program, reason)
            refused = client(name, config)
            lib.wait_for(f"{name} to be refused", lambda: security_test.refusals(reducer.program, reason) > before, 60)
            refused.program.kill()

        for service in (k8s, node):
            log = service.reload(at_client("new"))
            lib.check("reloaded changed=tls-ca,intake-token-file" in log, log)
        # The open connections stay open. The next connections are to a reducer that knows only the new credentials.
        port = reducer.program.intake_port
        lib.check(reducer.program.stop(60) == 0, "the reducer's exit code")
        again = lib.Reducer(d, ["--config", reducer.config], intake_port=port, name="reducer-again")
        programs.append(again)
        lib.wait_for("both clients with their new credentials", lambda: sessions(again) == 2, 120)
        stored = again.status()["total"]["stored"]
        lib.wait_for("samples by the new connection", lambda: again.status()["total"]["stored"] > stored, 60)
        for service in (k8s, node):
            lib.check(service.program.stop(60) == 0, f"{service.name}'s exit code")
        lib.check_law(again.status(), lost=0)
        logs = "".join(program.text() for program in programs)
        for age in ("old", "new"):
            lib.check((d / f"{age}-token").read_text().strip() not in logs, "a token was logged")


def sample_rate():
    """Tests that a raised rate shows in the samples, and that the ring, sized for the old rate, loses nothing."""
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        load = lib.Program("load", [lib.BIN / "truth", 3600, os.cpu_count()], d)
        programs.append(load)

        def start(args, env):
            command = [lib.BIN / "kernel-collector", "--intake-port", reducer.intake_port, "--cpu-budget", "off"]
            return lib.Program("collector", [*command, "--batch-interval", "500ms", *args], d, as_root=True, env=env)

        collector = Service(d, programs, "collector", start, {"sample_rate": 19})
        lib.check(collector.manager.wait_for("READY")["STATUS"] == "sampling at 19 Hz", "the status at 19 Hz")
        log = collector.reload({"sample_rate": 10_000})
        lib.check("some changed options take effect only after a restart options=sample-rate" in log, log)
        log = collector.reload({"sample_rate": 499})
        lib.check("reloaded changed=sample-rate" in log and "sampling rate raised rate_hz=499" in log, log)
        raised = lib.now_ms() + 1000
        time.sleep(4)

        def rate():
            graph = reducer.flamegraph('{process_executable_name="truth"}', raised, lib.now_ms())
            return graph.total_count[0] * 1e9 / graph.total_ns[0] if len(graph) and graph.total_count[0] > 200 else None

        lib.check(abs(lib.wait_for("samples at the new rate", rate, 60) - 499) < 1, "the samples' rate")
        log = collector.reload({"sample_rate": 29})
        lib.check("sampling rate lowered rate_hz=29" in log, log)
        lib.check(collector.program.stop(60) == 0, "the collector's exit code")
        lib.check_law(reducer.status(), lost=0)


if __name__ == "__main__":
    lib.main(three_services, rotation, sample_rate)
