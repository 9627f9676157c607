"""Tests the steps of build-env/build.sh that need no Docker, and the image's inputs: apt's settings and the lock."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

BUILD_ENV = pathlib.Path(__file__).resolve().parent.parent / "build-env"


class BuildImageTest(unittest.TestCase):
    """Tests the steps of build.sh that need no Docker, and its inputs."""

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="build-env-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        (self.directory / "bin").mkdir()

    def program(self, name, text):
        path = self.directory / "bin" / name
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def run_script(self, script, *arguments, path=None, **environment):
        return subprocess.run([shutil.which("bash"), BUILD_ENV / script, *arguments], capture_output=True, text=True, timeout=60, check=False,
                              env={"PATH": path or f"{self.directory}/bin:{os.environ['PATH']}", "HOME": str(self.directory), **environment})

    def test_without_docker(self):
        for name in ("dirname", "sed", "cut"):
            (self.directory / "bin" / name).symlink_to(shutil.which(name))
        result = self.run_script("build.sh", path=f"{self.directory}/bin")
        self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result)
        self.assertIn("there is no docker command; install Docker", result.stderr)
        self.program("docker", "exit 1")
        result = self.run_script("build.sh")
        self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result)
        self.assertIn("docker does not answer", result.stderr)

    def test_an_unavailable_base_is_refused(self):
        self.program("docker", '[ "$1" = version ] || { echo "no such host" >&2; exit 1; }')
        sources = self.directory / "sources.list"
        sources.write_text("deb file:/nowhere bookworm main\n")
        result = self.run_script("build.sh", "--apt-sources", str(sources))
        self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result)
        self.assertIn("docker cannot pull debian:12-slim; check the network, or make a root file system (mmdebstrap", result.stderr)

    def test_settings_of_apt_are_copied_with_their_files(self):
        (self.directory / "ca.pem").write_text("a certificate\n")
        (self.directory / "sources.list").write_text("deb http://mirror.example/debian bookworm main\n")
        self.program("apt-config", f"""case $* in
          "dump Acquire") echo 'Acquire::http::Proxy "http://proxy.example:3128";'; echo 'Acquire::Languages:: "de";'
                          echo 'Acquire::https::CAInfo "{self.directory}/ca.pem";' ;;
          *) echo 'Acquire::https::CAInfo "{self.directory}/ca.pem";' ;;
        esac""")
        result = self.run_script("apt_settings.sh", f"{self.directory}/settings", "/mnt/s", f"{self.directory}/sources.list", SSL_CERT_FILE="")
        self.assertEqual(result.returncode, 0, result)
        conf = (self.directory / "settings/apt.conf").read_text()
        self.assertIn('Acquire::http::Proxy "http://proxy.example:3128";', conf)
        self.assertNotIn('"de"', conf)
        brought = re.search(r'Acquire::https::CAInfo "/mnt/s/(files/\S+)";', conf).group(1)
        self.assertEqual((self.directory / "settings" / brought).read_text(), "a certificate\n")
        self.assertEqual((self.directory / "settings/sources.list").read_text(), "deb http://mirror.example/debian bookworm main\n")

    def test_a_machine_without_debian_12_repositories_uses_the_repositories_of_the_base(self):
        self.program("apt-get", "echo 'Debian http://mirror.example/debian trixie main'; echo 'Other http://other.example bookworm main'")
        result = self.run_script("apt_settings.sh", f"{self.directory}/settings", "/mnt/s")
        self.assertEqual(result.returncode, 0, result)
        self.assertNotIn("Dir::Etc::SourceList", (self.directory / "settings/apt.conf").read_text())
        self.program("apt-get", "echo 'Debian http://mirror.example/debian bookworm-updates main'")
        result = self.run_script("apt_settings.sh", f"{self.directory}/again", "/mnt/s")
        self.assertEqual(result.returncode, 0, result)
        self.assertIn('Dir::Etc::SourceList "/mnt/s/sources.list";\nDir::Etc::SourceParts "/dev/null";\n',
                      (self.directory / "again/apt.conf").read_text())
        self.assertRegex((self.directory / "again/sources.list").read_text(), r"^deb \[signed-by=\S+\] http://mirror.example/debian bookworm-updates main$")

    def test_the_lock_has_every_package(self):
        lines = [line for line in (BUILD_ENV / "packages.lock").read_text().splitlines() if not line.startswith("#")]
        for line in lines:
            self.assertRegex(line, r"^[a-z0-9.+-]+(:arm64)?=[A-Za-z0-9.+:~-]+$")
        locked = {line.split("=")[0] for line in lines}
        self.assertEqual(len(locked), len(lines), "a package has two versions")
        above, marker, _ = (BUILD_ENV / "packages.txt").read_text().partition("\n## tests")
        self.assertTrue(marker)
        wanted = {line.split()[0] for line in above.splitlines() if line and not line.startswith("#")}
        foreign = {line.split()[0] for line in (BUILD_ENV / "packages-arm64.txt").read_text().splitlines() if ":arm64" in line.split("#")[0]}
        self.assertEqual((wanted | foreign) - locked, set(), "run build-env/lock.sh")


if __name__ == "__main__":
    unittest.main()
