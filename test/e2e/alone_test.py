"""Tests kernel-collector without a reducer: it names the functions, and sends OTLP profiles or logs, or prints stacks.

The receiver is a small HTTP server in this file, or a real OpenTelemetry Collector. The number of samples that it
received must be equal to the number that the kernel's counters have, also if the receiver was away meanwhile.
"""

import gzip
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import faults
import lib

sys.path.insert(0, str(lib.SOURCE / "test" / "otlp"))
import otelcol  # noqa: E402

VALIDATE = pathlib.Path(os.environ["TRIBUTARY_BUILD"]) / "tests" / "otlp_validate"
RATE = 997


class Receiver:
    """A receiver of OTLP over HTTP. It keeps the bodies of all requests. It may be stopped and started again.

    While it is silent, it takes requests and does not answer.
    """

    def __init__(self):
        self.bodies, self.port, self.server, self.headers = [], otelcol.free_port(), None, []
        self.silent, self.released = False, threading.Event()

    def start(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # noqa: N802: the name that http.server requires
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.bodies.append(body)
                receiver.headers.append(dict(self.headers))
                if receiver.silent:
                    receiver.released.wait()
                    self.close_connection = True
                    return
                answer = b"{}" if self.headers["Content-Type"] == "application/json" else b""
                self.send_response(200)
                self.send_header("Content-Type", self.headers["Content-Type"])
                self.send_header("Content-Length", str(len(answer)))
                # Otherwise a stopped receiver would still answer on the open connection.
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def has_names(self):
        return any(b"hash_blocks" in body for body in self.bodies)

    def requests(self):
        """Returns the requests, if they are in JSON."""
        return [json.loads(body) for body in self.bodies]


def start(directory, receiver, *args, env=None, encoder="otlp_profiles", rate=RATE):
    return lib.Collector(directory, receiver.port, rate=rate, env={**os.environ, **(env or {})},
                         args=["--intake-encoder", encoder, "--intake-host", "http://127.0.0.1", "--batch-interval", "1s",
                               "--log-console", *lib.PATIENT, *args])


def run_named_truth(has_names):
    """Runs the workload until its names have arrived. Returns the measurements of the last run.

    The node makes one symbol table after the other. On a busy machine, those of the processes that ran before take a while.
    """
    measured = []

    def named():
        measured.append(lib.run_truth(2))
        return has_names()

    lib.wait_for("names", named, 60)
    measured.append(lib.run_truth(2))
    return measured[-1]


JSON = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=blue"}


def outage():
    """Sends with names, also after the receiver was away. Nothing is lost."""
    with lib.directory() as d, lib.programs() as programs:
        receiver = Receiver()
        receiver.start()
        collector = start(d, receiver, env=JSON)
        programs.append(collector)
        run_named_truth(receiver.has_names)
        receiver.stop()
        truth = lib.run_truth(6)
        before = len(receiver.bodies)
        lib.wait_for("a failure", lambda: "cannot send samples, will try again" in collector.text(), 30)
        receiver.start()
        lib.wait_for("requests after the outage", lambda: len(receiver.bodies) > before + 2, 60)
        lib.stop_patiently(collector)
        last = lib.last_totals(collector.text())
        requests = receiver.requests()
        received = otelcol.Totals(otelcol.samples(requests))
        print(f"  captured {last['captured']} sent {last['sent']} lost {last['lost']}; received {received.count}, {received.ns} ns")
        lib.check(last["lost"] == 0 and last["unacked"] == 0 and last["held"] == 0, f"samples are missing: {last}")
        lib.check(last["captured"] == last["sent"] == received.count, "captured, sent and received differ")
        lib.check(received.ns == received.count * (1_000_000_000 // RATE), f"{received.ns} ns")
        lib.check(all(headers["x-tenant"] == "blue" for headers in receiver.headers), "the header is missing")

        of_truth = [s for s in otelcol.samples(requests) if s.attributes.get("process.pid") == truth["pid"]]
        count = sum(s.count for s in of_truth)
        leaves = sum(s.count for s in of_truth if "hash_blocks" in s.frames())
        lib.check(count > 1000, f"{count} samples of the truth program arrived")
        lib.check(abs(leaves / count - 0.6) <= lib.four_sigma(0.6, count), f"{leaves} of {count} samples in hash_blocks")
        # Until its exec, the process is a copy of this test.
        resource = next(s.resource for s in of_truth if "hash_blocks" in s.frames())
        lib.check(resource["service.name"] == "truth" and resource["host.name"] and resource["host.id"], f"resource {resource}")
        kernel = {name for s in of_truth for name in s.frames() if name}
        lib.check(kernel & {"hash_blocks"} and any("entry" in name or "irq" in name or "timer" in name for name in
                                                   {n for s in otelcol.samples(requests) for n in s.frames() if n}),
                  "kernel frames have no names")


def protocol():
    """Every request in protobuf follows the protocol's rules. Without names, frames have only addresses."""
    for names in (True, False):
        with lib.directory() as d, lib.programs() as programs:
            receiver = Receiver()
            receiver.start()
            collector = start(d, receiver, f"--names={'true' if names else 'false'}")
            programs.append(collector)
            if names:
                run_named_truth(receiver.has_names)
            else:
                lib.run_truth(3)
            lib.stop_patiently(collector)
            receiver.stop()
            last = lib.last_totals(collector.text())
            lib.check(last["captured"] == last["sent"] + last["lost"] and last["lost"] == 0, f"the law is broken: {last}")
            framed = d / "requests"
            framed.write_bytes(b"".join(len(body).to_bytes(4, "big") + body for body in receiver.bodies))
            validated = subprocess.run([VALIDATE, "profiles", framed], capture_output=True, text=True, check=False)
            print(f"  names={names}: {last['sent']} samples, validator: {validated.stdout.strip()}")
            lib.check(validated.returncode == 0, "the validator has findings")
            lib.check((b"hash_blocks" in b"".join(receiver.bodies)) == names, "names are missing, or there are names")


def check_events(records, last, truth):
    """The records of process events are those that the kernel's counters have."""
    records = [r for r in records if r.event.startswith("tributary.process.")]
    count = sum(r.attributes.get("tributary.process.events", 1) for r in records)
    print(f"  events {last['events']} sent {last['events_sent']}; {len(records)} records of {count} events")
    lib.check(last["events"] == last["events_sent"] == count and last["events_lost"] == 0, f"{last}")
    lib.check(len({r.identity for r in records}) == len(records), "an identity occurs twice")
    kinds = {r.event.removeprefix("tributary.process."): r for r in records if r.attributes.get("process.pid") == truth["pid"]}
    lib.check({"start", "exec", "exit"} <= set(kinds), f"the truth program has only the events {set(kinds)}")
    lib.check(kinds["exit"].resource["service.name"] == "truth", f"resource {kinds['exit'].resource}")


def logs():
    """Sends OTLP logs with the variables of opentelemetry-network's page."""
    with lib.directory() as d, lib.programs() as programs:
        receiver = Receiver()
        receiver.start()
        variables = {"EBPF_NET_INTAKE_HOST": "127.0.0.1", "EBPF_NET_INTAKE_ENCODER": "otlp_log", **JSON}
        collector = lib.Collector(d, receiver.port, rate=RATE, env={**os.environ, **variables},
                                  args=["--batch-interval", "1s", "--log-console", *lib.PATIENT])
        programs.append(collector)
        truth = run_named_truth(receiver.has_names)
        lib.stop_patiently(collector)
        receiver.stop()
        last = lib.last_totals(collector.text())
        logged = list(otelcol.log_records(receiver.requests()))
        records = [r for r in logged if r.event == "tributary.samples"]
        count, ns = sum(r.count for r in records), sum(r.ns for r in records)
        print(f"  captured {last['captured']}; {len(records)} records of {count} samples, {ns} ns")
        lib.check(last["captured"] == last["sent"] == count and last["lost"] == 0, f"{last}")
        lib.check(ns == count * (1_000_000_000 // RATE), f"{ns} ns")
        of_truth = [r for r in records if r.attributes.get("process.pid") == truth["pid"]]
        lib.check(any(f.get("function") == "hash_blocks" for r in of_truth for f in r.attributes["tributary.stack"]), "no names")
        check_events(logged, last, truth)


def collector_gets(encoder, host, *args, json=False):
    """Sends to a real Collector in one way. Returns the data points that it has, by name, and the last totals."""
    rate = 199  # log records with names are large
    with lib.directory() as d, lib.programs() as programs, otelcol.Collector(d / "otelcol") as otel:
        address = host.format(grpc=otel.address, http=otel.http_address)
        received = otel.requests if encoder == "otlp_profiles" else otel.log_requests
        env = {**os.environ, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json" if json else ""}
        collector = lib.Collector(d, otel.address.split(":")[1], rate=rate, env=env, args=[
            "--intake-encoder", encoder, "--intake-host", address, "--batch-interval", "1s", "--log-console",
            *lib.PATIENT, *args])
        programs.append(collector)
        lib.wait_for("the first request", received, 30)
        lib.run_truth(1)
        lib.stop_patiently(collector)
        otel.stop()
        last = lib.last_totals(collector.text())
        items = list(otelcol.log_records(received()) if encoder == "otlp_log" else otelcol.samples(received()))
        count, ns = sum(item.count for item in items), sum(item.ns for item in items)
        print(f"  {encoder} to {host} json={json}: captured {last['captured']} sent {last['sent']}; received {count}, {ns} ns")
        lib.check(last["captured"] == last["sent"] == count and last["lost"] == 0, f"{last}")
        lib.check(ns == count * (1_000_000_000 // rate), f"{ns} ns")
        return {point.name: point for point in otelcol.points(otel.metrics_requests())}, last


def real_collector():
    """Sends profiles and logs to a real Collector in each way that pages_test.py and grpc_logs_and_metrics() do not test."""
    collector_gets_metrics("otlp_profiles", "otlp+http://{http}")
    collector_gets_metrics("otlp_log", "http://{http}/v1/logs", json=True)


def collector_gets_metrics(encoder, host, json=False):
    """Also sends the collector's own metrics. The last metrics have the last totals."""
    points, last = collector_gets(encoder, host, "--otlp-metrics-interval", "1s", json=json)
    sent = points["tributary_direct_samples_total"]
    lib.check(sent.value == last["sent"], f"the metric is {sent.value}")
    lib.check(sent.resource["service.name"] == "tributary-kernel-collector" and sent.resource["host.name"], f"{sent.resource}")


def grpc_logs_and_metrics():
    """Sends OTLP logs and the collector's own metrics over gRPC."""
    collector_gets_metrics("otlp_log", "otlp://{grpc}")


def killed():
    """Counts the samples that a killed collector had in memory."""
    lib.mount_bpffs()
    with lib.directory() as d, lib.programs() as programs:
        receiver = Receiver()
        collector = start(d, receiver)
        programs.append(collector)
        lib.wait_for("a failure", lambda: "cannot send samples, will try again" in collector.text(), 30)
        collector.kill()
        captured = sum(faults.pinned_captured().values())
        receiver.start()
        collector = start(d, receiver)
        programs.append(collector)
        lib.wait_for("a request", lambda: receiver.bodies, 30)
        lib.stop_patiently(collector)
        receiver.stop()
        found = re.findall(r"ended without sending all samples captured=(\d+) lost=(\d+) lost_before=(\d+)", collector.text())
        lib.check(len(found) == 1, "the next collector does not report the samples")
        reported, lost, before = (int(number) for number in found[0])
        print(f"  the kernel counted {captured}; reported {reported}, lost {lost}, lost before {before}")
        lib.check(reported == captured == lost + before and lost > 0, f"the kernel counted {captured}, reported are {found}")


REPORT = (r"ended without sending all samples captured=(\d+) lost=(\d+) lost_before=(\d+) lost_events=\d+ spooled=(\d+)",
          r"the spool had samples of earlier collectors samples=(\d+) sent=(\d+) lost=(\d+) left=(\d+) events=(\d+) events_sent=(\d+)")


def spooled():
    """Two killed collectors leave samples and process events in the spool. The next one sends all of them.

    The second one is killed while the receiver has a request and has not answered it. This request is repeated unchanged.
    """
    lib.mount_bpffs()
    with lib.directory() as d, lib.programs() as programs:
        receiver, spool, in_spool = Receiver(), d / "spool", 0

        def run():
            collector = start(d, receiver, "--spool-dir", spool, "--names=false", encoder="otlp_log", rate=97,
                              env={**JSON, "OTEL_EXPORTER_OTLP_TIMEOUT": "2000"})
            programs.append(collector)
            return collector

        def files():
            return {path.name for path in spool.glob("request-*.trq")}

        def check_killed(reports, captured):
            found = re.findall(REPORT[0], collector.text())  # the log has all runs
            lib.check(len(found) == reports, "the next collector does not report the killed one")
            reported, lost, before, of_killed = map(int, found[-1])
            print(f"  killed: captured {reported}, lost {lost}, in the spool {of_killed}")
            lib.check(captured == reported == lost + before + of_killed, f"the kernel counted {captured}, reported are {found[-1]}")
            return of_killed

        collector = run()
        lib.wait_for("files in the spool", lambda: len(files()) >= 6, 60)
        collector.kill()
        left, captured = files(), sum(faults.pinned_captured().values())
        receiver.silent = True
        receiver.start()
        collector = run()
        lib.wait_for("a request without an answer", lambda: receiver.bodies, 60)
        lib.wait_for("files of the next collector", lambda: len(files() - left) >= 2, 60)
        in_spool += check_killed(1, captured)
        collector.kill()
        captured, in_doubt = sum(faults.pinned_captured().values()), list(receiver.bodies)
        receiver.silent = False
        receiver.released.set()
        collector = run()
        lib.wait_for("an empty spool", lambda: not files(), 60)
        lib.stop_patiently(collector)
        receiver.stop()
        last = lib.last_totals(collector.text())
        in_spool += check_killed(2, captured)
        of_spool = re.search(REPORT[1], collector.text())
        lib.check(of_spool, "the spool was empty")
        _, sent, lost, left, _, events_sent = map(int, of_spool.groups())
        lib.check(sent + lost == in_spool > 0 and left == 0, f"{of_spool.group()}")
        lib.check(last["captured"] == last["sent"] and last["events"] == last["events_sent"] and last["unacked"] == 0, f"{last}")

        records = list(otelcol.log_records(receiver.requests()))
        once = {r.identity: r for r in records}
        count = sum(r.count for r in once.values())
        events = sum(r.attributes.get("tributary.process.events", 1) for r in once.values() if r.event != "tributary.samples")
        print(f"  sent {sent} of the spool; received {count} samples, {events} events, {len(records) - len(once)} records twice")
        lib.check(count == sent + last["sent"], f"{count} samples arrived")
        lib.check(events == events_sent + last["events_sent"], f"{events} events arrived")
        lib.check(all(receiver.bodies.count(body) >= 2 for body in in_doubt), "a request was not repeated unchanged")
        twice = list(otelcol.log_records(json.loads(body) for body in receiver.bodies[len(in_doubt):]))
        lib.check(len({r.identity for r in twice}) == len(twice), "an identity occurs twice")


def absent():
    """Without a receiver, the samples are counted as lost when the collector stops."""
    with lib.directory() as d, lib.programs() as programs:
        collector = start(d, Receiver(), "--shutdown-timeout", "1s")
        programs.append(collector)
        lib.wait_for("a failure", lambda: "cannot send samples, will try again" in collector.text(), 30)
        lib.check(collector.stop() == 0, "the collector's exit code")
        last = lib.last_totals(collector.text())
        lib.check(last["captured"] == last["lost"] == last["lost_shutdown"] > 0 and last["sent"] == 0, f"{last}")


def console():
    """Prints the stacks."""
    with lib.directory() as d, lib.programs() as programs:
        collector = lib.Collector(d, 8000, rate=199, args=["--intake-encoder", "console", "--batch-interval", "1s", *lib.PATIENT])
        programs.append(collector)
        run_named_truth(lambda: "Function: hash_blocks" in collector.text())
        lib.stop_patiently(collector)
        text = collector.text()
        for mark in ("--------------- New Resource Profile --------------", "  thread.name: truth (Str)",
                     "Instrumentation: native, Function: hash_blocks", "service.name: truth (Str)"):
            lib.check(mark in text, f"'{mark}' is missing")
        last = lib.last_totals(collector.text())
        lib.check(last["captured"] == last["sent"], f"{last}")


if __name__ == "__main__":
    lib.main(outage, protocol, logs, real_collector, grpc_logs_and_metrics, killed, spooled, absent, console)
