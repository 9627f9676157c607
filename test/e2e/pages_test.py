"""Tests the configurations and commands of other projects' pages, as they are, without a reducer.

Their files are in test/fuzz/corpus/distribution_config_fuzz/ and dev/otel/.
"""

import json
import os
import re
import subprocess
import sys

import container_test
import lib

sys.path.insert(0, str(lib.SOURCE / "test" / "otlp"))
import otelcol  # noqa: E402

PAGES = lib.SOURCE / "test/fuzz/corpus/distribution_config_fuzz"
CONTAINER = "d1" * 32
PERIOD_NS = 1_000_000_000 // 997


def check_received(program, received, period_ns=PERIOD_NS):
    """Compares what a Collector received with the kernel's counters."""
    last = lib.last_totals(program.text())
    print(f"  captured {last['captured']} sent {last['sent']} lost {last['lost']}; received {received.count}, {received.ns} ns")
    lib.check(last["captured"] == last["sent"] == received.count > 0 and last["lost"] == 0, f"{last}")
    lib.check(received.ns == received.count * period_ns, f"{received.ns} ns")


def requests(path):
    """Returns the requests that a Collector wrote to a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def resources(text):
    """Returns the text of each resource that was printed."""
    return re.findall(r"-+ New Resource Profile -+\n(.*?)-+ End Resource Profile -+\n", text, re.DOTALL)


def the_distributions_first_example():
    """Prints the stacks of containers, with the page's file and flags."""
    folders = container_test.make(f"docker/{CONTAINER}")
    try:
        with lib.directory() as d, lib.programs() as programs:
            # The log goes elsewhere, because the page's file switches on debug messages.
            collector = lib.Program("collector", ["sh", "-c", 'exec "$@" 2>"$0"', d / "stderr", lib.BIN / "kernel-collector", *lib.PATIENT,
                                                  f"--config={PAGES / 'quick_start.yaml'}", "--feature-gates=service.profilesSupport"],
                                    d, as_root=True)
            programs.append(collector)

            def printed():
                container_test.run_in(folders, 2)
                return "Function: hash_blocks" in collector.text()

            lib.wait_for("stacks of the container", printed, 60)
            lib.stop_patiently(collector)
            found = resources(collector.text())
            skipped = [text for text in found if "SKIPPED (no container.id)" in text]
            shown = [text for text in found if text not in skipped]
            print(f"  {len(found)} resources, of which {len(skipped)} are in no container")
            lib.check(skipped and any(f"  container.id: {CONTAINER} (Str)\n" in text for text in shown), "resources are missing")
            for text in shown:
                lib.check("  container.id: " in text and "  foo: bar (Str)\n" in text, f"attributes are missing: {text}")
            frames = re.findall(r"Instrumentation: (\w+), Function: .*, File: .*, Line: \d+, Column: \d+\n", "".join(shown))
            lib.check("native" in frames and set(frames) <= {"native", "kernel", "go", "jvm", "php", "cpython"}, f"frames {set(frames)}")
            log = (d / "stderr").read_text()
            counts = lib.last_totals(log)
            lib.check(counts["captured"] == counts["sent"] > 0 and counts["lost"] == 0, f"{counts}")
            lib.check("customprofilesexporter: not used" not in log, "the exporter has no effect")
    finally:
        container_test.remove(folders)


def the_profilers_command():
    """Sends to a real Collector with the flags of lazybackend's and devfiler's pages."""
    with lib.directory() as d, lib.programs() as programs, otelcol.Collector(d / "otelcol") as otel:
        collector = lib.Program("collector", [lib.BIN / "kernel-collector", f"-collection-agent={otel.address}", "-disable-tls",
                                              "-tracers=perl,php,python,hotspot,ruby,v8,dotnet,go", "-samples-per-second=997",
                                              "-reporter-interval=1s", "--cpu-budget=off", *lib.PATIENT], d, as_root=True)
        programs.append(collector)
        lib.wait_for("the first request", otel.requests, 30)
        lib.run_truth(1)
        lib.stop_patiently(collector)
        otel.stop()
        check_received(collector, otelcol.Totals(otelcol.samples(otel.requests())))


TLS = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:{port}", tls: {{cert_file: {folder}/cert, key_file: {folder}/key}}}}}}}}}}
exporters: {{file: {{path: {folder}/received}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{profiles: {{receivers: [otlp], exporters: [file]}}}}
"""


def start_tls_collector(folder, programs):
    """Starts a Collector with TLS. Returns it and its port. A port that was just free may be taken: then it tries another."""
    for attempt in range(5):
        port = otelcol.free_port()
        (folder / "config.yaml").write_text(TLS.format(port=port, folder=folder))
        otel = lib.Program(f"otelcol-{attempt}", [otelcol.binary(), "--config", folder / "config.yaml",
                                                  "--feature-gates=service.profilesSupport"], folder)
        programs.append(otel)
        lib.wait_for("the Collector", lambda: "Everything is ready" in otel.text() or not otel.running(), 30)
        if otel.running():
            return otel, port
    raise lib.Failure("the Collector does not start")


def the_profilers_command_with_tls():
    """Without -disable-tls, the receiver must have a certificate that the node trusts."""
    with lib.directory() as d, lib.programs() as programs:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost", "-keyout", d / "key", "-out", d / "cert"], check=True, capture_output=True)
        otel, port = start_tls_collector(d, programs)
        command = [lib.BIN / "kernel-collector", f"-collection-agent=localhost:{port}", "-reporter-interval=1s", "--names=false",
                   "--shutdown-timeout=2s"]
        refusing = lib.Program("refusing", command, d, as_root=True)
        programs.append(refusing)
        lib.wait_for("the refusal", lambda: "certificate" in refusing.text(), 30)
        lib.check(refusing.stop() == 0, "the exit code of the collector that refuses the certificate")
        lib.check(lib.last_totals(refusing.text())["sent"] == 0, "samples went to a receiver without a trusted certificate")
        collector = lib.Program("collector", [*command, *lib.PATIENT, f"--tls-ca={d / 'cert'}"], d, as_root=True)
        programs.append(collector)
        lib.wait_for("a request", lambda: (d / "received").exists() and (d / "received").stat().st_size, 30)
        lib.stop_patiently(collector)
        lib.check(otel.stop(20) == 0, "the Collector's exit code")
        check_received(collector, otelcol.Totals(otelcol.samples(requests(d / "received"))), 1_000_000_000 // 19)


GATEWAY = """
receivers:
  profiling: {samples_per_second: "${env:RATE:-997}", reporter_interval: 1s}
exporters:
  otlphttp:
    endpoint: http://${env:GATEWAY}
    encoding: json
    headers: {x-token: "${TOKEN}"}
  customprofilesexporter:
    ignore_profiles_without_container_id: false
    export_stack_frames: false
service:
  pipelines:
    profiles: {receivers: [profiling], exporters: [otlphttp, customprofilesexporter]}
"""


def a_gateway():
    """Sends to a real Collector over HTTP, and prints, as a file with both exporters says."""
    with lib.directory() as d, lib.programs() as programs, otelcol.Collector(d / "otelcol") as otel:
        (d / "config.yaml").write_text(GATEWAY)
        collector = lib.Program("collector", [lib.BIN / "kernel-collector", "--config", d / "config.yaml", "--cpu-budget=off", *lib.PATIENT], d,
                                as_root=True, env={**os.environ, "GATEWAY": otel.http_address, "TOKEN": "geheim"})
        programs.append(collector)
        lib.wait_for("the first request", otel.requests, 30)
        lib.run_truth(1)
        lib.stop_patiently(collector)
        otel.stop()
        check_received(collector, otelcol.Totals(otelcol.samples(otel.requests())))
        text = collector.text()
        lib.check("  thread.name: truth (Str)\n" in text and "Function:" not in text, "the switches have no effect")
        lib.check("geheim" not in text, "the log has a secret")


def opentelemetry_networks_page():
    """Sends logs to a real Collector with the page's variables, to the page's port in a network of its own.

    The Collector has the configuration in dev/otel/, but writes to a file, because the test's Collector has no exporter `debug`.
    """
    text = (lib.SOURCE / "dev/otel/otel-config.yaml").read_text()
    lib.check(text.count("debug") == 2 and "endpoint: 0.0.0.0:8000" in text, "dev/otel/otel-config.yaml has changed")
    with lib.directory() as d, lib.programs() as programs:
        received = d / "received"
        (d / "config.yaml").write_text(text.replace("debug:\n    verbosity: detailed", f"file:\n    path: {received}").replace("[debug]", "[file]"))
        network = lib.Program("network", ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep 600"], d, as_root=True)
        programs.append(network)
        lib.wait_for("the network", lambda: "up" in network.text(), 10)
        inside = ["nsenter", f"--net=/proc/{network.pid}/ns/net"]
        otel = lib.Program("otelcol", [*inside, otelcol.binary(), "--config", d / "config.yaml"], d, as_root=True)
        programs.append(otel)
        lib.wait_for("the Collector", lambda: "Everything is ready" in otel.text(), 30)
        page = {"EBPF_NET_INTAKE_HOST": "127.0.0.1", "EBPF_NET_INTAKE_PORT": "8000", "EBPF_NET_INTAKE_ENCODER": "otlp_log"}
        collector = lib.Program("collector", [*inside, lib.BIN / "kernel-collector", "--log-console", "--cpu-budget=off",
                                              "--sample-rate=199", *lib.PATIENT], d, as_root=True, env={**os.environ, **page})
        programs.append(collector)
        lib.wait_for("sampling", lambda: " sampling rate_hz=" in collector.text(), 30)
        lib.run_truth(1)
        lib.stop_patiently(collector)
        lib.check(otel.stop(20) == 0, "the Collector's exit code")
        network.kill()
        check_received(collector, otelcol.Totals(otelcol.log_records(requests(received))), 1_000_000_000 // 199)


def hostile_destinations():
    """Tests that a wrong destination gives one line without secrets, and exit status 2."""
    cases = {
        ("-collection-agent=h:0",): "must be HOST:PORT",
        ("-collection-agent=http://h:1",): "must be HOST:PORT and no URL",
        ("-collection-agent=http://u:geheim@h:1",): "must not contain a user or a password",
        ("--intake-host=u:geheim@h:1",): "must be HOST or HOST:PORT",
        ("--intake-encoder=otlp_profiles", "--intake-host=http://h:0"): "must be 1 to 65535",
        ("--intake-encoder=otlp_profiles", "--intake-host=ftp://h"): "--intake-host",
        ("--intake-encoder=otlp_profiles", "--intake-host=http://u:geheim@h"): "must have no user name or password",
        ("--intake-encoder=otlp_log", "--intake-host=h\r\nX: y"): "--intake-host",
        ("--intake-encoder=console", "--console=layout=geheim&"): "layout must be",
        ("--intake-port=0",): "--intake-port = 0",
    }
    for arguments, expected in cases.items():
        done = subprocess.run([lib.BIN / "kernel-collector", *arguments], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, check=False)
        output = (done.stdout + done.stderr).strip()
        lib.check(done.returncode == 2 and expected in output and len(output.splitlines()) == 1, f"{arguments}: {done}")
        # The value of an option that is not secret is in the message.
        lib.check("geheim" not in output or arguments[-1].startswith("--console"), f"{arguments}: {done}")


if __name__ == "__main__":
    lib.main(hostile_destinations, the_distributions_first_example, the_profilers_command, the_profilers_command_with_tls, a_gateway,
             opentelemetry_networks_page)
