"""Tests the files of deploy/compose: docker compose's own parser takes them, they agree with the pages, and nothing is privileged."""

import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import compose_model  # noqa: E402
import grafana_files  # noqa: E402
from compose_model import BASE, COMPOSE, OVERRIDES, SOURCE, Refused, documents, model  # noqa: E402

BIN = pathlib.Path(os.environ["TRIBUTARY_BIN"])
OURS = ("reducer", "kernel-collector")
DEPLOY = (SOURCE / "docs/deploy.md").read_text()
PAGE = (SOURCE / "docs/compose.md").read_text()
# Visitors may look, and nobody can sign in.
GRAFANA_ACCESS = {"GF_AUTH_ANONYMOUS_ENABLED": "true", "GF_AUTH_ANONYMOUS_ORG_ROLE": "Viewer", "GF_AUTH_BASIC_ENABLED": "false",
                  "GF_AUTH_DISABLE_LOGIN_FORM": "true", "GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION": "true"}
# Old text, new text, words of the parser's message.
PLANTED = (
    ("    pid: host\n", "    pidd: host\n", "pidd"),
    ("read_only: true", "read_only: maybe", "read_only"),
    ("      - spool:/var", "      - spoool:/var", "spoool"),
    ("depends_on: [prometheus]", "depends_on: [prometheuss]", "prometheuss"),
    ("mem_limit: 1g", "mem_limit: 1potato", "potato"),
    ("stop_grace_period: 60s", "stop_grace_period: soon", "soon"),
    ("${TRIBUTARY_PULL:-never}", "${TRIBUTARY_PULL:-nevre}", "nevre"),
)


def combinations():
    for count in range(len(OVERRIDES) + 1):
        for chosen in itertools.combinations(OVERRIDES, count):
            yield (BASE, *chosen)


def documented_runs():
    """Returns the words of each `docker run … kernel-collector` of docs/deploy.md."""
    blocks = re.findall(r"^docker run (.*?)(?:\n\n|\n```)", DEPLOY.replace("\\\n", " "), re.MULTILINE | re.DOTALL)
    return [block.split() for block in blocks if " kernel-collector --" in block and "--privileged" not in block]


def values_of(words, option):
    return [words[i + 1] for i, word in enumerate(words) if word == option]


def mounts(service):
    return {volume["target"]: volume for volume in service["volumes"]}


def options_of(program):
    """Returns (flags, environment variables) of a program's section in docs/options.md."""
    page = (SOURCE / "docs/options.md").read_text()
    section = page.split(f"\n## {program}\n")[1].split("\n## ")[0]
    return set(re.findall(r"--[a-z0-9-]+", section)), set(re.findall(r"EBPF_NET_[A-Z0-9_]+", section))


class Compose(unittest.TestCase):
    maxDiff = None

    def test_the_parser_takes_every_combination(self):
        for files in combinations():
            with self.subTest(files=files):
                self.assertEqual(set(model(*files)["services"]), {*OURS, "prometheus", "grafana"})

    def test_the_parser_refuses_planted_errors(self):
        for old, new, words in PLANTED:
            with self.subTest(new=new), tempfile.TemporaryDirectory() as folder:
                text = (COMPOSE / BASE).read_text()
                self.assertIn(old, text)
                path = pathlib.Path(folder) / BASE
                path.write_text(text.replace(old, new, 1))
                with self.assertRaisesRegex(Refused, words):
                    model(path)

    def test_nothing_is_privileged(self):
        for files in combinations():
            for name, service in model(*files)["services"].items():
                with self.subTest(files=files, service=name):
                    self.assertNotIn("privileged", service)
                    self.assertEqual(service["cap_drop"], ["ALL"])
                    self.assertTrue(service["read_only"])
                    self.assertIn("no-new-privileges:true", service["security_opt"])
                    self.assertTrue(name == "kernel-collector" or "cap_add" not in service)
                    self.assertEqual(service.get("pid"), "host" if name == "kernel-collector" else None)
                    for key in ("restart", "stop_grace_period", "mem_limit", "logging"):
                        self.assertIn(key, service)

    def test_ports_are_on_loopback_without_tls(self):
        for files in combinations():
            services = model(*files)["services"]
            published = {(name, port.get("host_ip")) for name, service in services.items() for port in service.get("ports", [])}
            anonymous = services["reducer"]["environment"]["EBPF_NET_ALLOW_ANONYMOUS"] == "true"
            with self.subTest(files=files):
                if "compose.host-network.yaml" in files:
                    self.assertEqual(published, set())
                    for service in services.values():
                        self.assertEqual(service["network_mode"], "host")
                    for name in OURS:
                        for key, value in services[name]["environment"].items():
                            if key.endswith("_LISTEN"):
                                self.assertTrue(value.startswith("127.0.0.1:"), (key, value))
                else:
                    open_to_all = {("reducer", None)} if "compose.tls.yaml" in files else set()
                    self.assertEqual({each for each in published if each[1] != "127.0.0.1"}, open_to_all)
                    self.assertNotEqual(anonymous, bool(open_to_all))

    def test_capabilities_and_mounts_are_those_of_the_page(self):
        runs = documented_runs()
        self.assertEqual(len(runs), 2)
        table = re.findall(r"^\| CAP_([A-Z_]+) \|", DEPLOY, re.MULTILINE)
        self.assertEqual(len(table), 6)
        collector = model(BASE)["services"]["kernel-collector"]
        self.assertEqual(collector["cap_add"], [*table, "SYS_ADMIN"])
        self.assertEqual(set(table), set(values_of(runs[0], "--cap-add")))
        old = model(BASE, "compose.old-docker.yaml")["services"]["kernel-collector"]
        self.assertEqual(set(old["cap_add"]), set(values_of(runs[1], "--cap-add")))
        self.assertNotIn("docker.sock", str(collector["volumes"]))
        found = mounts(model(BASE, "compose.docker-names.yaml")["services"]["kernel-collector"])
        for volume in values_of(runs[0], "--volume"):
            source, target, *mode = volume.split(":")
            self.assertEqual(found[target]["source"], source)
            self.assertEqual(found[target].get("read_only", False), mode == ["ro"], target)
        extra = set(found) - {volume.split(":")[1] for volume in values_of(runs[0], "--volume")}
        self.assertEqual(extra, {"/sys/fs/bpf", "/var/lib/tributary-kernel-collector"})
        self.assertIn("`--volume /sys/fs/bpf:/sys/fs/bpf`", DEPLOY)

    def test_the_programs_know_every_option(self):
        prometheus = subprocess.run(["prometheus", "--help"], capture_output=True, text=True, check=False).stdout
        known = set(re.findall(r"--[a-z][a-z.-]+", prometheus))
        for files in (each for each in combinations() if "compose.old-docker.yaml" not in each):
            services = model(*files)["services"]
            for name in OURS:
                flags, variables = options_of(name)
                environment, command = services[name]["environment"], services[name].get("command") or []
                used = {word for word in command if word.startswith("--")}
                with self.subTest(files=files, program=name):
                    self.assertEqual((used - flags, {key for key in environment if key not in variables}), (set(), set()))
                    result = subprocess.run([BIN / name, *command, "--print-config"], capture_output=True, text=True, check=False,
                                            env={"HOME": "/"} | environment)
                    self.assertEqual(result.returncode, 0, result.stderr)
            used = {word.split("=")[0] for word in services["prometheus"]["command"]}
            self.assertEqual(used - known, set(), files)

    def test_the_dashboard_has_its_metrics(self):
        self.assertEqual(model(BASE)["services"]["reducer"]["command"], grafana_files.metric_options())
        environment = model(BASE)["services"]["grafana"]["environment"]
        self.assertEqual({key: environment[key] for key in GRAFANA_ACCESS}, GRAFANA_ACCESS)
        grafana = mounts(model(BASE)["services"]["grafana"])
        provider = documents(COMPOSE / "grafana/dashboards.yaml")[0]["providers"][0]
        self.assertIn(f"{provider['options']['path']}/tributary-dashboard.json", grafana)
        source = documents(COMPOSE / "grafana/datasources.yaml")[0]["datasources"][0]
        self.assertEqual((source["type"], source["url"]), ("prometheus", "$TRIBUTARY_PROMETHEUS_URL"))

    def test_prometheus_scrapes_both_programs(self):
        services = model(BASE)["services"]
        with tempfile.TemporaryDirectory() as folder:
            for target, volume in mounts(services["prometheus"]).items():
                if volume["type"] == "bind":
                    (pathlib.Path(folder) / pathlib.Path(target).name).write_bytes(pathlib.Path(volume["source"]).read_bytes())
            result = subprocess.run(["promtool", "check", "config", f"{folder}/prometheus.yml"], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        jobs = {job["job_name"]: job["static_configs"][0]["targets"] for job in documents(COMPOSE / "prometheus.yml")[0]["scrape_configs"]}
        self.assertEqual(jobs, {f"tributary-{name}": [f"{name}:{services[name]['environment']['EBPF_NET_METRICS_LISTEN'].split(':')[1]}"]
                                for name in OURS})
        example = {job["job_name"] for job in documents(grafana_files.CONFIG)[0]["scrape_configs"]}
        self.assertLess(set(jobs), example)

    def test_mounted_files_exist(self):
        services = model(BASE)["services"]
        own = [volume["source"] for service in services.values() for volume in service["volumes"]
               if volume["type"] == "bind" and volume["source"].startswith(str(SOURCE))]
        self.assertEqual(len(own), 5)
        self.assertEqual([source for source in own if not pathlib.Path(source).is_file()], [])

    def test_mounted_certificates_are_those_of_certs(self):
        made = re.findall(r"^#   (\S+?)(?:, (\S+))?  ", (SOURCE / "dev/certs").read_text(), re.MULTILINE)
        files = {name for names in made for name in names if name}
        tls = model(BASE, "compose.tls.yaml", environment=(("TRIBUTARY_CERTS", "/c"),))
        self.assertEqual({secret["file"] for secret in tls["secrets"].values()}, {"/c/ca.crt", "/c/intake-token"})
        reducer, collector = (tls["services"][name] for name in OURS)
        folder = mounts(reducer)["/run/certs"]
        self.assertEqual((folder["source"], folder["read_only"], folder["bind"].get("create_host_path", False)), ("/c", True, False))
        used = {value for value in reducer["environment"].values() if value.startswith("/run/")}
        self.assertEqual(used, {f"/run/certs/{name}" for name in files - {"ca.crt", "ca.key"}})
        self.assertEqual({value for value in collector["environment"].values() if value.startswith("/run/")},
                         {f"/run/secrets/{secret['source']}" for secret in collector["secrets"]})
        self.assertNotIn("/run/certs", mounts(collector))

    def test_images_have_the_version_of_the_source(self):
        version = re.search(r"^project\(tributary VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
        for name, service in model(BASE)["services"].items():
            if name != "grafana":
                self.assertEqual((service["image"], service["pull_policy"]), (f"tributary/{name}:{version}", "never"))

    def test_the_page_has_every_variable_and_file(self):
        used = {name for path in COMPOSE.glob("compose*.yaml") for name in re.findall(r"\$\{(TRIBUTARY_[A-Z_]+)", path.read_text())}
        self.assertEqual(used, set(re.findall(r"`(TRIBUTARY_[A-Z_]+)`", PAGE)))
        self.assertEqual({path.name for path in COMPOSE.glob("compose*.yaml")}, {BASE, *OVERRIDES})
        for name in (BASE, *OVERRIDES):
            self.assertIn(f"`{name}`", PAGE)

    def test_variables_change_the_model(self):
        services = model(BASE, environment=tuple({
            "TRIBUTARY_REGISTRY": "registry.example/t", "TRIBUTARY_VERSION": "9", "TRIBUTARY_HTTP_PORT": "4141",
            "TRIBUTARY_REDUCER": "r.example", "TRIBUTARY_REDUCER_PORT": "8111", "TRIBUTARY_PULL": "missing"}.items()))["services"]
        self.assertEqual(services["reducer"]["image"], "registry.example/t/reducer:9")
        self.assertEqual(services["reducer"]["ports"][0]["published"], "4141")
        self.assertEqual(services["kernel-collector"]["environment"]["EBPF_NET_INTAKE_HOST"], "r.example")
        self.assertEqual(services["kernel-collector"]["environment"]["EBPF_NET_INTAKE_PORT"], "8111")
        host = ("compose.tls.yaml", "compose.host-network.yaml")
        services = model(BASE, *host, environment=(("TRIBUTARY_LISTEN", "0.0.0.0"), ("TRIBUTARY_INTAKE_PORT", "8222")))["services"]
        listen = {key: value for name in OURS for key, value in services[name]["environment"].items() if key.endswith("_LISTEN")}
        self.assertEqual((listen["EBPF_NET_HTTP_LISTEN"], listen["EBPF_NET_INTAKE_LISTEN"]), ("0.0.0.0:4040", "0.0.0.0:8222"))
        self.assertTrue(listen["EBPF_NET_METRICS_LISTEN"].startswith("127.0.0.1:"))
        self.assertEqual(services["kernel-collector"]["environment"]["EBPF_NET_INTAKE_PORT"], "8222")
        self.assertEqual(compose_model.model(BASE)["services"]["reducer"]["ports"][0]["published"], "4040")


if __name__ == "__main__":
    unittest.main()
