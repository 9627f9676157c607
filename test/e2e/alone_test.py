"""Tests kernel-collector without a reducer: it names the functions, and sends OTLP profiles over HTTP or prints them.

The receiver is a small HTTP server in this file. The number of samples that it received must be equal to the number
that the kernel's counters have, also if the receiver was away meanwhile.
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

import lib

sys.path.insert(0, str(lib.SOURCE / "test" / "otlp"))
import otelcol  # noqa: E402

VALIDATE = pathlib.Path(os.environ["TRIBUTARY_BUILD"]) / "tests" / "otlp_validate"
RATE = 997


class Receiver:
    """A receiver of OTLP over HTTP. It keeps the bodies of all requests. It may be stopped and started again."""

    def __init__(self):
        self.bodies, self.port, self.server, self.headers = [], otelcol.free_port(), None, []

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

    def requests(self):
        """Returns the requests, if they are in JSON."""
        return [json.loads(body) for body in self.bodies]


def start(directory, receiver, *args, env=None):
    return lib.Collector(directory, receiver.port, rate=RATE, env={**os.environ, **(env or {})},
                         args=["--intake-encoder", "otlp_profiles", "--intake-host", "http://127.0.0.1", "--batch-interval", "1s",
                               "--log-console", *args])


def totals(collector):
    """Returns the numbers of the collector's last line of totals."""
    line = [line for line in collector.text().splitlines() if " stopped captured=" in line][-1]
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}


JSON = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=blue"}


def outage():
    """Sends with names, also after the receiver was away. Nothing is lost."""
    with lib.directory() as d, lib.programs() as programs:
        receiver = Receiver()
        receiver.start()
        collector = start(d, receiver, env=JSON)
        programs.append(collector)
        lib.wait_for("the first request", lambda: receiver.bodies, 30)
        receiver.stop()
        truth = lib.run_truth(6)
        before = len(receiver.bodies)
        lib.wait_for("a failure", lambda: "cannot send samples, will try again" in collector.text(), 30)
        receiver.start()
        lib.wait_for("requests after the outage", lambda: len(receiver.bodies) > before + 2, 60)
        lib.check(collector.stop() == 0, "the collector's exit code")
        last = totals(collector)
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
        resource = of_truth[0].resource
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
            lib.wait_for("the first request", lambda: receiver.bodies, 30)
            lib.run_truth(2)
            lib.check(collector.stop() == 0, "the collector's exit code")
            receiver.stop()
            last = totals(collector)
            lib.check(last["captured"] == last["sent"] + last["lost"] and last["lost"] == 0, f"the law is broken: {last}")
            framed = d / "requests"
            framed.write_bytes(b"".join(len(body).to_bytes(4, "big") + body for body in receiver.bodies))
            validated = subprocess.run([VALIDATE, framed], capture_output=True, text=True, check=False)
            print(f"  names={names}: {last['sent']} samples, validator: {validated.stdout.strip()}")
            lib.check(validated.returncode == 0, "the validator has findings")
            lib.check((b"hash_blocks" in b"".join(receiver.bodies)) == names, "names are missing, or there are names")


def absent():
    """Without a receiver, the samples are counted as lost when the collector stops."""
    with lib.directory() as d, lib.programs() as programs:
        collector = start(d, Receiver(), "--shutdown-timeout", "1s")
        programs.append(collector)
        lib.wait_for("a failure", lambda: "cannot send samples, will try again" in collector.text(), 30)
        lib.check(collector.stop() == 0, "the collector's exit code")
        last = totals(collector)
        lib.check(last["captured"] == last["lost"] == last["lost_shutdown"] > 0 and last["sent"] == 0, f"{last}")


def console():
    """Prints the stacks."""
    with lib.directory() as d, lib.programs() as programs:
        collector = lib.Collector(d, 8000, rate=199, args=["--intake-encoder", "console", "--batch-interval", "1s"])
        programs.append(collector)
        lib.wait_for("the first samples", lambda: "New Sample" in collector.text(), 30)
        lib.run_truth(3)
        lib.check(collector.stop() == 0, "the collector's exit code")
        text = collector.text()
        for mark in ("--------------- New Resource Profile --------------", "  thread.name: truth (Str)",
                     "Instrumentation: native, Function: hash_blocks", "service.name: truth (Str)"):
            lib.check(mark in text, f"'{mark}' is missing")
        last = totals(collector)
        lib.check(last["captured"] == last["sent"], f"{last}")


if __name__ == "__main__":
    lib.main(outage, protocol, absent, console)
