"""Tests deploy/prometheus_image.py: the image has all that Debian's Prometheus needs, and the same input gives the same bytes."""

import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "deploy"))

import debian  # noqa: E402
import prometheus_image  # noqa: E402
from failure import Failure  # noqa: E402

PAGE = "usr/share/prometheus/web"


def make(out, *more):
    return subprocess.run([sys.executable, SOURCE / "deploy/prometheus_image.py", "--arch", debian.NATIVE, "--tag", "t/prometheus:1", *more,
                           "--out", out], capture_output=True, text=True, check=False)


class PrometheusImage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "image.tar"
            cls.result, cls.again = make(out), make(pathlib.Path(folder) / "again.tar")
            cls.same = out.read_bytes() == (pathlib.Path(folder) / "again.tar").read_bytes()
            with tarfile.open(out) as image:
                manifest = json.load(image.extractfile("manifest.json"))[0]
                cls.config = json.load(image.extractfile(manifest["Config"]))["config"]
                cls.layer = image.extractfile(manifest["Layers"][0]).read()
        with tarfile.open(fileobj=io.BytesIO(cls.layer)) as tar:
            cls.members = {member.name: member for member in tar}

    def text(self, name):
        with tarfile.open(fileobj=io.BytesIO(self.layer)) as tar:
            return tar.extractfile(name).read().decode()

    def test_the_image_runs_prometheus_as_an_unprivileged_user(self):
        self.assertEqual(self.result.returncode, 0, self.result.stderr)
        self.assertEqual((self.config["User"], self.config["Entrypoint"]), ("65532:65532", ["/usr/bin/prometheus"]))
        self.assertEqual(self.config["Cmd"], ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/var/lib/tributary"])
        self.assertEqual(self.config["Healthcheck"]["Test"], ["CMD", *prometheus_image.PROMETHEUS.health])
        self.assertEqual(self.members["var/lib/tributary"].uid, 65532)
        for name in ("usr/bin/prometheus", "usr/bin/promtool"):
            self.assertEqual(self.members[name].mode, 0o755)

    def test_the_same_input_gives_the_same_bytes(self):
        self.assertTrue(self.same)

    def test_the_configuration_is_that_of_deploy_grafana(self):
        for name in ("prometheus.yml", "tributary-rules.yml"):
            self.assertEqual(self.text(f"etc/prometheus/{name}"), (SOURCE / "deploy/grafana" / name).read_text())

    def test_the_page_has_every_file_that_it_loads(self):
        templates = [name for name in self.members if name.startswith(f"{PAGE}/templates/")]
        self.assertGreater(len(templates), 5)
        used = {found for name in templates for found in re.findall(r"static/[\w./-]+", self.text(name))}
        self.assertGreater(len(used), 20)
        self.assertEqual({name for name in used if f"{PAGE}/{name}" not in self.members}, set())

    def test_licences_and_bill_of_materials_name_every_package(self):
        licences = {name.rsplit("/", 1)[1] for name, member in self.members.items() if "/copyright/" in name and member.isreg()}
        packages = {package["name"] for package in json.loads(self.text("usr/share/sbom/prometheus.spdx.json"))["packages"]}
        self.assertEqual(licences, packages)
        self.assertLess({"prometheus", "libc6", "libjs-jquery", "ca-certificates"}, packages)

    def test_bad_input_is_one_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            result = make(pathlib.Path(folder) / "image.tar", "--tag", "A b")
            self.assertEqual((result.returncode, len(result.stderr.splitlines())), (1, 1))
            self.assertIn("is not an image name", result.stderr)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])

    def test_a_missing_page_is_refused(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(Failure, "no files of Prometheus's page"):
            prometheus_image.page_files(debian.Root(folder, debian.NATIVE))

    def test_a_file_of_no_package_is_refused(self):
        with self.assertRaisesRegex(Failure, "/no/such/file belongs to no Debian package"):
            prometheus_image.owners_of(debian.Root("/", debian.NATIVE), [pathlib.Path("/no/such/file")])


if __name__ == "__main__":
    unittest.main()
