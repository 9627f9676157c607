"""Tests metrics from profiles, and deploy/grafana with a real Prometheus that scrapes a real run.

It compares the metrics with the flame graph, and asks Prometheus each query of the dashboard.
"""

import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import urllib.parse
import urllib.request

import lib
import prometheus_text

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import grafana_files  # noqa: E402

PATIENT_S = 90
METRICS = grafana_files.metric_options()


class Prometheus(lib.Program):
    """A Prometheus that scrapes `targets` (job: address) every second, and evaluates the rules of deploy/grafana."""

    def __init__(self, directory, targets):
        binary = shutil.which("prometheus")
        lib.check(binary, "there is no prometheus: dev/deps installs Debian's package")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
                  "rule_files": [str(grafana_files.RULES)],
                  "scrape_configs": [{"job_name": job, "static_configs": [{"targets": [address]}]} for job, address in targets.items()]}
        path = directory / "prometheus.json"  # YAML contains JSON
        path.write_text(json.dumps(config))
        super().__init__("prometheus", [binary, f"--config.file={path}", f"--storage.tsdb.path={directory / 'tsdb'}",
                                        f"--web.listen-address={self.url.removeprefix('http://')}"], directory)

    def get(self, path, **parameters):
        lib.check(self.running(), f"prometheus ended:\n{self.text()}")
        with urllib.request.urlopen(f"{self.url}{path}?{urllib.parse.urlencode(parameters)}", timeout=PATIENT_S) as answer:
            return json.loads(answer.read())["data"]

    def answers(self):
        try:
            return bool(self.get("/api/v1/query", query="1"))
        except OSError:
            return False

    def query(self, query):
        return self.get("/api/v1/query", query=query)["result"]


def seconds(metrics, name, **labels):
    """Returns the sum of the series that have these labels."""
    return sum(value for key, value in metrics.get(name, {}).items()
               if all(f'{label}="{wanted}"' in (key or "") for label, wanted in labels.items()))


def functions_of_truth(metrics):
    """Returns the names of functions of the workload for which there is a series."""
    labels = (re.fullmatch(r'function="(.*)",library="truth"', key) for key in metrics.get("profile_function_cpu_seconds_total", {}))
    return {found[1] for found in labels if found} - {"[unknown]"}


def metrics_of(reducer):
    return prometheus_text.parse(reducer.get("/metrics").decode())


def check_queries(prometheus):
    """Checks that each query of the dashboard has data, and that no rule has an error."""
    queries = grafana_files.queries("10s")
    waiting = dict(queries)

    def all_have_data():
        for panel, query in list(waiting.items()):
            if prometheus.query(query):
                del waiting[panel]
        return not waiting

    try:
        lib.wait_for("data for each query", all_have_data, PATIENT_S, 1)
    except lib.Failure as e:
        raise lib.Failure(f"no data: {waiting}") from e
    def rules():
        return [rule for group in prometheus.get("/api/v1/rules")["groups"] for rule in group["rules"]]

    lib.check(len(rules()) > 10 and all(rule["health"] == "ok" for rule in rules()), f"rules: {rules()}")
    # Most alerts fire only after minutes. Their conditions must end soon after the start.
    try:
        lib.wait_for("no alert", lambda: all(rule["state"] == "inactive" for rule in rules()), PATIENT_S, 1)
    except lib.Failure as e:
        raise lib.Failure(f"alerts in a healthy run: {[rule['name'] for rule in rules() if rule['state'] != 'inactive']}") from e
    print(f"  {len(queries)} queries have data, {len(rules())} rules are evaluated")


def check_sums(reducer, started_ms):
    """Checks that the metrics are equal to the flame graph of the whole run."""
    stored = reducer.metric("tributary_reducer_committed_samples_total")
    lib.wait_for("all samples to be counted", lambda: reducer.metric("tributary_profile_metrics_samples_total") == 2 * stored, PATIENT_S)
    metrics = metrics_of(reducer)
    ranges = (started_ms - 60_000, lib.now_ms() + 60_000)
    everything = reducer.flamegraph("", *ranges)
    truth = reducer.flamegraph('{process.executable.name="truth"}', *ranges)
    kernel_ns = sum(everything.self_ns[i] for i in range(len(everything)) if everything.kind_of(i) == "kernel")
    for what, got, wanted_ns in (
            ("all", seconds(metrics, "profile_cpu_seconds_total"), everything.total_ns[0]),
            ("by function", seconds(metrics, "profile_function_cpu_seconds_total"), everything.total_ns[0]),
            ("the workload", seconds(metrics, "profile_cpu_seconds_total", executable="truth"), truth.total_ns[0]),
            ("the kernel", seconds(metrics, "profile_cpu_seconds_total", language="kernel"), kernel_ns)):
        print(f"  {what}: {got:.3f} s, the flame graph has {wanted_ns / 1e9:.3f} s")
        lib.check(wanted_ns > 0 and abs(got - wanted_ns / 1e9) < 1e-6, f"{what}: {got} s, the flame graph has {wanted_ns} ns")
    # The names of the first samples may have arrived after these were counted.
    wrong = functions_of_truth(metrics) - set(truth.names)
    lib.check(not wrong, f"the flame graph has no functions {wrong}")


def dashboard():
    """Tests each query of the dashboard, and the sums of the metrics."""
    with lib.directory() as d, lib.programs() as programs:
        started_ms = lib.now_ms()
        reducer = lib.Reducer(d, args=[*METRICS, "--metadata-wait", "1s"])
        programs.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=99, args=["--metrics-listen", "127.0.0.1:0"])
        programs.append(collector)
        workload = lib.Program("truth", [lib.BIN / "truth", "600", "1"], d)
        programs.append(workload)
        prometheus = Prometheus(d, {"tributary-reducer": f"127.0.0.1:{reducer.http_port}",
                                    "tributary-kernel-collector": f"127.0.0.1:{lib.metrics_port(collector)}"})
        programs.append(prometheus)
        lib.wait_for("prometheus", prometheus.answers, PATIENT_S)
        check_queries(prometheus)
        lib.wait_for("functions with names", lambda: len(functions_of_truth(metrics_of(reducer))) > 1, PATIENT_S)
        workload.kill()
        lib.check(collector.stop() == 0, "the collector's exit code")
        check_sums(reducer, started_ms)
        lib.check(reducer.stop() == 0, "the reducer's exit code")
        prometheus.stop()


def refused():
    """Tests that a wrong --metric ends the reducer with status 2 and a sentence that points at the mistake."""
    for spec, words in (("name=a_total,bye=service", "unknown key 'bye' at byte 13"),
                        ("name=a-total", "'a-total' at byte 5 is not the name of a metric"),
                        ("name=a_total,selector={x=1}", "the selector that begins at byte 22: selector: expected a value in double quotes at byte 3"),
                        ("name=a_total,by=" + ",".join(f"a{i}" for i in range(9)), "more than 8 labels: 'a8'")):
        result = subprocess.run([lib.BIN / "reducer", "--metric", spec], capture_output=True, text=True, timeout=PATIENT_S, check=False)
        lines = result.stderr.splitlines()
        lib.check(result.returncode == 2 and len(lines) == 1 and "--metric" in lines[0] and words in lines[0], f"{spec}: {result}")
        print(f"  {lines[0]}")


lib.main(refused, dashboard)
