"""Tests kernel-collector with configuration files and flags of the OpenTelemetry eBPF profiler's Collector distribution.

The examples on the distribution's page must work as they are. Hostile files give one clear line and exit status 2.
"""

import os
import re
import resource
import signal
import subprocess

import lib

PAGES = lib.SOURCE / "test/fuzz/corpus/distribution_config_fuzz"
# The worst text needs 72 MiB in all.
PEAK_KB_MAX = (4 if lib.is_instrumented("kernel-collector") else 1) * 128 << 10


def warnings(text):
    return [line.split(" warning ", 1)[1] for line in text.splitlines() if " warning --" in line]


def run(*args):
    return subprocess.run([lib.BIN / "kernel-collector", *args], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                          env={**os.environ, "OWN": "${env:OWN}"}, check=False)


def the_pages_example_samples():
    """Runs the page's first file with the page's flags, and finds its rate, its attribute and its warnings.

    After SIGHUP, the warnings are those of the changed file.
    """
    with lib.directory() as d, lib.programs() as programs:
        config = d / "config.yaml"
        text = (PAGES / "quick_start.yaml").read_text()
        config.write_text(text)
        reducer = lib.Reducer(d)
        programs.append(reducer)
        collector = lib.Program("collector", [lib.BIN / "kernel-collector", f"--config={config}",
                                              "--feature-gates=service.profilesSupport", f"--intake-host={reducer.intake}",
                                              "--cpu-budget=off", "--batch-interval=1s"], d, as_root=True)
        programs.append(collector)
        lib.wait_for("samples with the processor's attribute", lambda: "foo" in reducer.get("/api/v1/labels").decode(), 60)
        found = warnings(collector.text())
        changed = text.replace("OffCPUThreshold: 0", "OffCPUThreshold: 0.5")
        lib.check(changed != text, "the example has no OffCPUThreshold")
        config.write_text(changed)
        collector.signal(signal.SIGHUP)
        lib.wait_for("the warning of the changed file", lambda: "OffCPUThreshold: off-CPU samples" in collector.text(), 60)
        lib.check(collector.stop() == 0, "the collector's exit code")
        lib.check_law(reducer.status(), lost=0)
        for line in found:
            print(f"  {line}")
        for name, count in (("customprofilesreceiver", 1), ("processors.customprofilesexporter", 1),
                            ("exporters.customprofilesexporter", 1), ("perl, php, hotspot, ruby, v8, dotnet;", 1)):
            lib.check(sum(name in line for line in found) == count, f"{name}: not {count} warnings: {found}")
        lib.check(len(found) == 4, f"other warnings: {found}")


def settings_of_the_pages():
    """Checks the values and warnings of all examples, without sampling."""
    for name, expected in (("quick_start", ["sample_rate: 20", "log_level: debug", "foo=bar"]),
                           ("kubernetes", ["sample_rate: 20"]), ("gateway", ["sample_rate: 97", "batch_interval: 10s"])):
        result = run("-config", PAGES / f"{name}.yaml", "--print-config")
        lib.check(result.returncode == 0 and all(text in result.stdout for text in expected), f"{name}: {result}")
    lib.check("--metadata-wait 10s" in run("-config", PAGES / "kubernetes.yaml", "--print-config").stderr, "no option for k8sattributes")
    # The command of lazybackend's and devfiler's pages.
    result = run("-collection-agent=localhost:4137", "-disable-tls", "-tracers=perl,go", "--print-config")
    found = warnings(result.stderr)
    lib.check(len(found) == 1 and "yet: perl;" in found[0], f"{result}")
    lib.check("intake_encoder: otlp_profiles" in result.stdout and 'intake_host: "localhost:4137"' in result.stdout, f"{result}")
    result = run("-collection-agent=localhost:4137", "-disable-tls", "--intake-host=reducer", "--print-config")
    lib.check("--export otlp://localhost:4137" in result.stderr and "intake_encoder: binary" in result.stdout, f"{result}")
    for flag in ("-collection-agent", "-colection-agent", "--colection-agent"):
        result = run(f"{flag}=http://user:secret@host:1")
        lib.check(result.returncode == 2 and "secret" not in result.stdout + result.stderr, f"{result}")
    result = run("-tracers=perl", "--version")
    lib.check(result.returncode == 0 and not result.stderr, f"{result}")


def hostile_files():
    """Tests that each hostile file gives one line with its place, exit status 2, and little memory."""
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    for i in range(1, 12):
        laughs += f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n"
    service = "service: {pipelines: {profiles: {receivers: [profiling]}}}\n"
    cases = {
        "100 levels": ("".join(f"{' ' * i}a:\n" for i in range(100)), "nested more than 32 deep"),
        "100 lists": ("[" * 100 + "]" * 100, "nested more than 32 deep"),
        "brackets": ("[" * (256 << 10), "line 1, column 1"),
        "billion laughs": (laughs, "too large"),
        "NUL": ("receivers:\n  profiling: \0\n", "line 2, column 14: the text has a NUL byte"),
        "duplicate": ("receivers: {profiling: }\nreceivers: {}\n", "line 2, column 1: the key 'receivers' stands twice"),
        "no text": (b"receivers: \xff\xfe", "not UTF-8"),
        "wrong type": ("receivers: {profiling: {OffCPUThreshold: [1]}}\n" + service, "line 1, column 42: OffCPUThreshold must be a number"),
        "out of range": ("receivers: {profiling: {SamplesPerSecond: 0}}\n" + service, "line 1, column 43: "),
        "our own key": ("cpu_budget: off\nsample_rate: [1]\n", "line 2, column 14: sample_rate: must be one value"),
        "another source": ("receivers: {profiling: {include_env_vars: '${file:/etc/shadow}'}}\n" + service,
                           "line 1, column 43: only environment variables are expanded"),
        "endless variable": ("receivers: {profiling: {Tracers: '${env:OWN}'}}\n" + service, "line 1, column 34: a variable contains itself"),
        "two receivers": ("receivers: {profiling: }\nexporters: {otlp: {endpoint: 'a:1'}, otlp/2: {endpoint: 'b:1'}}\n"
                          "service: {pipelines: {profiles: {receivers: [profiling], exporters: [otlp, otlp/2]}}}\n",
                          "line 2, column 38: exporters.otlp/2: a node sends to one receiver"),
        "port 0": ("receivers: {profiling: }\nexporters: {otlp: {endpoint: 'a:0'}}\n"
                   "service: {pipelines: {profiles: {receivers: [profiling], exporters: [otlp]}}}\n", "line 2, column 30: "),
        "header": ("receivers: {profiling: }\nexporters: {otlp: {endpoint: 'a:1', headers: {a: \"geheim\\r\\nX: y\"}}}\n"
                   "service: {pipelines: {profiles: {receivers: [profiling], exporters: [otlp]}}}\n", "line 2, column 50: "),
        "flags": ("tracers go\nsamples-per-second many\n", "line 2, column 20: samples_per_second must be a whole number"),
        "unknown component": ("receivers: {profiling: , hostmetrics: }\n" + service, "line 1, column 26: hostmetrics: unknown component"),
        "unknown tracer": ("receivers: {profiling: {Tracers: cobol}}\n" + service, "line 1, column 34: "),
        "not a map": ("receivers: 5\n" + service, "'profiling' is not defined"),
    }
    with lib.directory() as d:
        path = d / "config.yaml"
        for name, (text, expected) in cases.items():
            path.write_bytes(text.encode() if isinstance(text, str) else text)
            result = run(f"--config={path}")
            output = (result.stdout + result.stderr).strip()
            lib.check(result.returncode == 2 and expected in output and len(output.splitlines()) == 1, f"{name}: {result}")
            lib.check(re.search(r"line \d+, column \d+", output), f"{name} has no place: {output}")
            lib.check("geheim" not in output, f"{name} shows a secret: {output}")
        with open(path, "wb") as file:
            file.truncate(1 << 40)
        result = run(f"--config={path}")
        lib.check(result.returncode == 2 and "more than 262144 bytes" in result.stderr, f"a huge file: {result}")
    peak_kb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"  {len(cases) + 1} files, peak {peak_kb >> 10} MiB")
    lib.check(peak_kb < PEAK_KB_MAX, f"peak {peak_kb} KiB")


if __name__ == "__main__":
    lib.main(hostile_files, settings_of_the_pages, the_pages_example_samples)
