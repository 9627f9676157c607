"""Tests the ports for monitoring.

It tests /metrics in the format that Prometheus reads, with numbers that /proc confirms; /healthz, /readyz and
--health-check; taken ports; and clients that send garbage, are slow, or do not read.
"""

import http.client
import os
import pathlib
import re
import socket
import subprocess

import fake_kubernetes
import lib
import prometheus_text

COMPONENTS = ("reducer", "kernel-collector", "k8s-collector")
PATIENT_S = 60


def get(port, path, method="GET", connection=None):
    """Returns status, headers and body. A given `connection` stays open for the next request."""
    client = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENT_S)
    client.request(method, path)
    answer = client.getresponse()
    body = answer.read().decode()
    if connection is None:
        client.close()
    return answer.status, answer.headers, body


def metrics(port, connection=None):
    status, headers, body = get(port, "/metrics", connection=connection)
    lib.check(status == 200, f"/metrics: {status}")
    content_type = headers["Content-Type"]
    lib.check(content_type == "text/plain; version=0.0.4; charset=utf-8", f"Content-Type: {content_type}")
    return prometheus_text.parse(body)


def raw(port, request, then_close=True):
    """Sends raw bytes and returns the whole answer."""
    with socket.create_connection(("127.0.0.1", port), PATIENT_S) as client:
        client.sendall(request)
        if then_close:
            client.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := client.recv(65536):
            answer += piece
    return answer.decode()


class Watcher(lib.Program):
    def __init__(self, directory, api_url, intake_port, *args):
        super().__init__("k8s-collector", [lib.BIN / "k8s-collector", "--api-server", api_url, "--cluster-name", "prod", "--intake-port",
                                           intake_port, *args], directory)


def health(binary, *args, env=None):
    result = subprocess.run([str(a) for a in (lib.BIN / binary, "--health-check", *args)], capture_output=True, text=True, timeout=PATIENT_S,
                            env={**os.environ, **(env or {})}, check=False)
    lines = (result.stdout + result.stderr).splitlines()
    lib.check(len(lines) == 1, f"{binary} --health-check prints {len(lines)} lines: {lines}")
    return result.returncode, lines[0]


def expect_health(code, words, binary, *args, env=None):
    got, line = health(binary, *args, env=env)
    lib.check(got == code and words in line, f"{binary} --health-check {args}: {got} {line}, expected {code} {words}")
    print(f"  {code}: {line}")


def proc_view(pid):
    """Returns values of /proc: CPU seconds, bytes in RAM, bytes of address space, open files, limit, start, threads."""
    proc = pathlib.Path(f"/proc/{pid}")
    fields = (proc / "stat").read_text().rpartition(") ")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    boot = int(re.search(r"^btime (\d+)", pathlib.Path("/proc/stat").read_text(), re.M).group(1))
    limit = re.search(r"^Max open files\s+(\S+)", (proc / "limits").read_text(), re.M).group(1)
    return {"process_cpu_seconds_total": (int(fields[11]) + int(fields[12])) / ticks,
            "process_resident_memory_bytes": int(fields[21]) * os.sysconf("SC_PAGESIZE"),
            "process_virtual_memory_bytes": int(fields[20]),
            "process_open_fds": len(os.listdir(proc / "fd")),
            "process_max_fds": float("inf") if limit == "unlimited" else int(limit),
            "process_start_time_seconds": boot + int(fields[19]) / ticks,
            "process_threads": int(fields[17])}


def check_process_metrics(program, port):
    """Checks that each number of /metrics lies between two readings of /proc.

    If the process changes meanwhile, the check is repeated.
    """
    slack = {"process_cpu_seconds_total": 0.05, "process_resident_memory_bytes": 2 << 20, "process_virtual_memory_bytes": 2 << 20,
             "process_start_time_seconds": 1.5}
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENT_S)
    wrong = None

    def agrees():
        nonlocal wrong
        get(port, "/healthz", connection=client)  # so that the connection is open in all three readings
        before = proc_view(program.pid)
        reported = metrics(port, client)
        after = proc_view(program.pid)
        wrong = {}
        for name, values in ((name, (before[name], after[name])) for name in before):
            value, more = reported[name][None], slack.get(name, 0)
            if not min(values) - more <= value <= max(values) + more:
                wrong[name] = (values, value)
        return not wrong

    try:
        lib.wait_for("/proc to agree", agrees, PATIENT_S)
    except lib.Failure as e:
        raise lib.Failure(f"{program.name}: /proc before and after, /metrics: {wrong}") from e
    finally:
        client.close()


def check_pages(program, port):
    component = program.name
    check_process_metrics(program, port)
    info = metrics(port)["tributary_build_info"]
    version = subprocess.run([lib.BIN / component, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    lib.check(len(info) == 1 and list(info.values()) == [1], f"tributary_build_info: {info}")
    labels = dict(re.findall(r'(\w+)="([^"]*)"', list(info)[0]))
    lib.check(labels["component"] == component and labels["version"] == version and labels["commit"], f"tributary_build_info: {labels}")
    lib.check(get(port, "/healthz")[::2] == (200, "ok\n"), f"{component}: /healthz")
    status, headers, body = get(port, "/metrics", "HEAD")
    lib.check(status == 200 and int(headers["Content-Length"]) > 1000 and body == "", f"{component}: HEAD /metrics")
    lib.check(get(port, "/metric")[0] == 404, f"{component}: /metric")
    lib.check(get(port, "/metrics", "POST")[0] == 405, f"{component}: POST /metrics")


def everything():
    """Tests the pages of all three programs, and when each program is ready."""
    with fake_kubernetes.FakeKubernetes() as api, lib.directory() as d, lib.programs() as programs:
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))
            intake_port = reserved.getsockname()[1]
        api.put("Namespace", "kube-system", "00000000-0000-0000-0000-000000000001")
        collector = lib.Collector(d, intake_port, rate=19, args=["--metrics-listen", "127.0.0.1:0"], name="kernel-collector")
        absent = Watcher(d, "http://127.0.0.1:1", intake_port, "--metrics-listen", "0")
        programs += [collector, absent]
        status, _, body = get(lib.metrics_port(absent), "/readyz")
        lib.check(status == 503 and "not read all" in body and len(body.splitlines()) == 1, f"k8s-collector without an API server: {status} {body}")
        lib.check(get(lib.metrics_port(absent), "/healthz")[0] == 200, "k8s-collector without an API server is not healthy")
        lib.check(absent.stop() == 0, "k8s-collector's exit code")
        absent.log_path.unlink()
        watcher = Watcher(d, api.url, intake_port, "--metrics-listen", "0")
        programs.append(watcher)
        ports = {"kernel-collector": lib.metrics_port(collector), "k8s-collector": lib.metrics_port(watcher)}
        lib.wait_for("k8s-collector to have read all", lambda: "not sent all" in get(ports["k8s-collector"], "/readyz")[2], PATIENT_S)
        lib.check(get(ports["k8s-collector"], "/readyz")[0] == 503, "k8s-collector is ready without a reducer")
        lib.wait_for("the collector to sample", lambda: get(ports["kernel-collector"], "/readyz")[::2] == (200, "ok\n"), PATIENT_S)

        reducer = lib.Reducer(d, intake_port=intake_port)
        programs.append(reducer)
        ports["reducer"] = reducer.http_port
        lib.wait_for("k8s-collector to be ready", lambda: get(ports["k8s-collector"], "/readyz")[::2] == (200, "ok\n"), PATIENT_S)
        lib.wait_for("samples", lambda: metrics(ports["kernel-collector"])["tributary_collector_captured_samples_total"][None] > 0, PATIENT_S)
        for program in (reducer, collector, watcher):
            check_pages(program, ports[program.name])
            option = "--http-listen" if program is reducer else "--metrics-listen"
            expect_health(0, "is healthy", program.name, option, f"127.0.0.1:{ports[program.name]}")
            expect_health(0, "is healthy", program.name, option, f"0.0.0.0:{ports[program.name]}")
        reported = metrics(ports["kernel-collector"])
        lib.check(reported["tributary_collector_sampling_seconds_total"]['context="tick"'] < 1, "the time of sampling is not in seconds")
        for program in (collector, watcher, reducer):
            lib.check(program.stop() == 0, f"{program.name}'s exit code")
            option = "--http-listen" if program is reducer else "--metrics-listen"
            expect_health(1, "is not healthy: connect to", program.name, option, f"127.0.0.1:{ports[program.name]}")


def health_check():
    """Tests where --health-check finds the address (flag, environment, file), and its message if no port answers."""
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d, http_host="[::1]" if has_ipv6() else "127.0.0.1")
        programs.append(reducer)
        address = reducer.url.removeprefix("http://")
        expect_health(0, "reducer is healthy", "reducer", env={"EBPF_NET_HTTP_LISTEN": address})
        config = d / "reducer.yaml"
        config.write_text(f"http_listen: \"{address.replace('[::1]', '[::]')}\"\n")
        expect_health(0, "reducer is healthy", "reducer", "--config", config)
    for binary in COMPONENTS[1:]:
        expect_health(1, "--metrics-listen is off", binary, env={"EBPF_NET_METRICS_LISTEN": "off"})
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        expect_health(1, "within the time limit", "kernel-collector", "--metrics-listen", f"127.0.0.1:{silent.getsockname()[1]}")


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False


def taken_ports():
    """Tests taken ports: the default port gives one warning, a port from an option gives an error with advice.

    With "off" there is no port.
    """
    with fake_kubernetes.FakeKubernetes() as api, lib.directory() as d, lib.programs() as programs, socket.socket() as taken:
        try:
            taken.bind(("127.0.0.1", 4041))
            taken.listen()
        except OSError:
            print("  4041 was taken before")  # by another program, which is enough for the test
        collector = lib.Collector(d, 1, rate=19, args=["--shutdown-timeout", "0s"])
        watcher = Watcher(d, api.url, 1, "--metrics-listen", "off")
        programs += [collector, watcher]
        lib.wait_for("the collector to sample", lambda: "sampling rate_hz" in collector.text(), PATIENT_S)
        warnings = [line for line in collector.text().splitlines() if "4041" in line]
        lib.check(len(warnings) == 1 and "in use" in warnings[0] and "--metrics-listen" in warnings[0], f"about the taken port: {warnings}")
        print(f"  {warnings[0]}")
        lib.wait_for("the watcher", lambda: "objects were read" in watcher.text(), PATIENT_S)
        lib.check("metrics url" not in watcher.text(), "a port although it is off")
        for program in programs:
            lib.check(program.stop() == 0, f"{program.name}'s exit code")
        for command in ([lib.BIN / "k8s-collector", "--api-server", api.url], lib.ROOT + [lib.BIN / "kernel-collector"]):
            result = subprocess.run([str(a) for a in (*command, "--metrics-listen", "127.0.0.1:4041")], capture_output=True, text=True,
                                    timeout=PATIENT_S, check=False)
            lines = result.stderr.splitlines()
            lib.check(result.returncode == 1 and len(lines) == 1 and "Choose another address" in lines[0], f"{command}: {result}")
            print(f"  {lines[0]}")


def hostile_clients():
    """Tests garbage, half requests, pipelined requests, idle connections, and clients that do not read.

    Each is limited and counted.
    """
    with lib.directory() as d, lib.programs() as programs:
        collector = lib.Collector(d, 1, rate=19, args=["--metrics-listen", "0", "--shutdown-timeout", "0s"])
        programs.append(collector)
        port = lib.metrics_port(collector)
        metrics(port)
        resident = proc_view(collector.pid)["process_resident_memory_bytes"]
        for request, status in ((b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400), (b"hello\r\n\r\n", 400),
                                (b"GET /metrics HTTP/1.1\r\n\r\n", 400),
                                (b"GET /" + b"a" * 5000, 414), (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 5000, 431),
                                (b"GET /metrics HTTP/2.0\r\n\r\n", 505), (b"DELETE /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 405)):
            answer = raw(port, request)
            lib.check(answer.startswith(f"HTTP/1.1 {status} "), f"{request[:40]}: {answer[:100]}")
        lib.check(raw(port, b"GET /hea") == "", "half a request is answered")
        answers = raw(port, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" * 1000)
        lib.check(answers.count("HTTP/1.1 200 OK\r\n") == 1000, "pipelined requests are not all answered")
        idle = [socket.create_connection(("127.0.0.1", port), PATIENT_S) for _ in range(100)]
        lib.check(get(port, "/healthz")[0] == 200, "idle connections keep others out")
        deaf = [socket.create_connection(("127.0.0.1", port), PATIENT_S) for _ in range(10)]
        for client in deaf:
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 1000)
        endless = socket.create_connection(("127.0.0.1", port), PATIENT_S)
        endless.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        lib.check(get(port, "/healthz")[0] == 200, "clients that do not read keep others out")
        # The program makes the text again a few times a second.
        lib.wait_for("the refusals", lambda: sum(metrics(port)["tributary_http_refusals_total"].values()) >= 90)
        reported = metrics(port)
        grown = proc_view(collector.pid)["process_resident_memory_bytes"] - resident
        refusals = {labels.split('"')[1]: value for labels, value in reported["tributary_http_refusals_total"].items()}
        print(f"  refusals {refusals}, {grown / 2**20:.1f} MiB more in RAM")
        lib.check(refusals["malformed"] >= 4 and refusals["too_large"] >= 2 and refusals["busy"] >= 84, f"refusals: {refusals}")
        lib.check(reported["tributary_http_connections"][None] <= 16, "more than 16 connections")
        lib.check(grown < (200 if lib.is_instrumented("kernel-collector") else 16) << 20, f"{grown} bytes more in RAM")
        for client in (*idle, *deaf, endless):
            client.close()
        lib.check(collector.stop() == 0, "the collector's exit code")


if __name__ == "__main__":
    lib.main(everything, health_check, taken_ports, hostile_clients)
