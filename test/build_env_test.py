"""Tests /root/build.sh of the build image, with fake compilers, deploy scripts and a fake Docker daemon.

It checks which programs build.sh starts and in which order, and that every failure ends in one sentence.
test/packages/docker_test.py uses the real programs.
"""

import contextlib
import dataclasses
import errno
import http.server
import importlib.util
import io
import json
import os
import pathlib
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

SOURCE = pathlib.Path(__file__).resolve().parent.parent
BUILD_ENV = SOURCE / "build-env"

# Each tool records its arguments. The tool that FAIL names fails.
TOOL = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
[ "$FAIL" != "$(basename "$0")" ]
"""
# sh runs this script instead of Python: starting Python a hundred times takes seconds. The last argument is the
# argument of --out.
STAGE = """echo "stage $*" >> "$CALLS"
for out; do :; done
mkdir -p "$out/usr/bin"
printf %s "$WORD" > "$out/usr/bin/made"
[ "$FAIL" != stage ]
"""
IMAGE = """echo "image $*" >> "$CALLS"
for out; do :; done
printf archive > "$out"
"""


SPEC = importlib.util.spec_from_file_location("entry", BUILD_ENV / "entry.py")
entry = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(entry)


@dataclasses.dataclass
class Result:
    returncode: int
    stdout: str
    stderr: str


class Daemon(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A Docker daemon that records its requests. `refuse` is the registry's answer to a push."""

    daemon_threads = True

    def __init__(self, path, refuse=None, load_error=None):
        self.requests = []
        self.refuse, self.load_error = refuse, load_error
        super().__init__(str(path), Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def address_string(self):
        return "socket"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(b"OK")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append((self.path, len(body)))
        if "/push" in self.path:
            self.answer(json.dumps({"error": self.server.refuse} if self.server.refuse else {"aux": {"Digest": "sha256:0123"}}).encode())
        elif "/load" in self.path and self.server.load_error:
            self.answer(json.dumps({"error": self.server.load_error}).encode())
        else:
            self.answer(b"{}")

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class EntryTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="build-env-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.out = self.directory / "out"
        self.calls_file = self.directory / "calls"
        self.source = self.make_source("src")
        tools = self.directory / "tools"
        tools.mkdir()
        for name in ("cmake", "ninja"):
            (tools / name).write_text(TOOL)
            (tools / name).chmod(0o755)
        self.environment = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(self.directory / "home"), "CALLS": str(self.calls_file),
                            "EBPF_NET_SRC": str(self.source), "EBPF_NET_OUT_DIR": str(self.out), "PYTHONDONTWRITEBYTECODE": "1",
                            "DOCKER_HOST": f"unix://{self.directory}/socket", "TMPDIR": str(self.directory)}

    def make_source(self, name):
        source = self.directory / name
        (source / "deploy").mkdir(parents=True)
        (source / "CMakeLists.txt").write_text("project(tributary VERSION 0.1.0)\n")
        shutil.copy(SOURCE / "deploy/docker_daemon.py", source / "deploy")
        (source / "deploy/stage.py").write_text(STAGE)
        (source / "deploy/image.py").write_text(IMAGE)
        return source

    def daemon(self, **answers):
        server = Daemon(self.directory / "socket", **answers)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def run_entry(self, *arguments, **environment):
        self.calls_file.write_text("")
        with unittest.mock.patch.dict(os.environ, {**self.environment, **environment}, clear=True), \
                unittest.mock.patch.object(entry.sys, "executable", shutil.which("sh")), \
                unittest.mock.patch.object(entry.sys, "path", list(sys.path)), \
                contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
            try:
                status = entry.main(list(arguments))
            except SystemExit as e:
                status = e.code
        self.calls = self.calls_file.read_text().splitlines()
        return Result(status or 0, out.getvalue(), errors.getvalue())

    def fails(self, status, pattern, *arguments, **environment):
        """Expects that the run fails with one sentence and without a Python traceback."""
        result = self.run_entry(*arguments, **environment)
        self.assertEqual(result.returncode, status, result)
        last = result.stderr.strip().splitlines()[-1]
        self.assertRegex(last, rf"^build\.sh: .*{pattern}")
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        return result

    def works(self, *arguments, **environment):
        result = self.run_entry(*arguments, **environment)
        self.assertEqual(result.returncode, 0, result)
        return result

    def test_it_is_a_program(self):
        result = subprocess.run([BUILD_ENV / "entry.py", "dockr"], env=self.environment, capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (2, "build.sh: unknown target dockr; the nearest is docker, and --list-targets "
                                                                 "prints all\n"))

    def test_targets_and_help(self):
        targets = self.works("--list-targets").stdout.split()
        for name in ("docker", "docker-registry", "kernel-collector", "reducer", "k8s-collector", "tributary", "packages"):
            self.assertIn(name, targets)
        text = self.works("--help").stdout
        for word in (*targets, "--clean", "-j", "--debug", "--asan", "--ubsan", "--no-docker", "--list-targets", "EBPF_NET_SRC_ROOT",
                     "EBPF_NET_OUT_DIR", "EBPF_NET_DOCKER_REGISTRY", "IMAGE_TAGS"):
            self.assertIn(word, text)
        self.assertFalse(self.out.exists())

    def test_the_components_are_those_of_deploy(self):
        result = subprocess.run([sys.executable, "-c", "import components; print(*components.COMPONENTS)"], cwd=SOURCE / "deploy",
                                capture_output=True, text=True, check=True, env=self.environment)
        self.assertEqual(tuple(result.stdout.split()), entry.COMPONENTS)

    def test_names_the_nearest_target_and_option(self):
        self.fails(2, "unknown target dokcer; the nearest is docker,", "dokcer")
        self.fails(2, "unknown target kernal-collector; the nearest is kernel-collector,", "kernal-collector")
        self.fails(2, "unknown option --cleen; the nearest is --clean,", "--cleen", "docker")
        self.fails(2, "no target was given", "--debug")
        self.fails(2, "-j takes a number", "-j", "0", "docker")
        self.fails(2, "--help lists", "-j", "many", "docker")
        self.assertEqual(self.calls, [])

    def test_source_variables(self):
        other = self.make_source("other")
        for environment, expected in (({"EBPF_NET_SRC_ROOT": str(other)}, self.source),
                                      ({"EBPF_NET_SRC_ROOT": str(other), "EBPF_NET_SRC": ""}, other)):
            # build.sh starts the tools in the source tree: pwd prints the chosen tree.
            (self.directory / "tools/cmake").write_text('#!/bin/sh\npwd >> "$CALLS"\n')
            self.works("tributary", **environment)
            self.assertEqual(self.calls[0], str(expected))
        self.fails(1, "/home/src holds no source tree .*--mount.*EBPF_NET_SRC", "tributary", EBPF_NET_SRC="")
        self.fails(1, "holds no source tree", "tributary", EBPF_NET_SRC=str(self.directory))

    def test_unwritable_output(self):
        self.fails(1, r"cannot write to /proc/nowhere .*EBPF_NET_OUT_DIR", "tributary", EBPF_NET_OUT_DIR="/proc/nowhere")
        self.assertEqual(self.calls, [])

    def test_full_disk(self):
        sentence = f"the disk of {self.out} is full; free about 3 GB there"
        with unittest.mock.patch("tempfile.TemporaryFile", side_effect=OSError(errno.ENOSPC, "No space left on device")):
            self.fails(1, sentence, "tributary")
        with unittest.mock.patch.object(entry, "FULL_BELOW_BYTES", 1 << 62):
            self.fails(1, sentence, "tributary", FAIL="ninja")

    def test_builds_one_program(self):
        result = self.works("-j", "3", "reducer")
        self.assertEqual(self.calls[0], f"cmake --preset package -B {self.out}/build/package")
        self.assertEqual(self.calls[1], f"ninja -C {self.out}/build/package -j 3 reducer")
        self.assertEqual(self.calls[2], f"stage --build {self.out}/build/package --component reducer --arch amd64 --out {self.out}/reducer.partial")
        self.assertIn(f"{self.out}/reducer/usr/bin/reducer", result.stdout)
        self.assertEqual({path.name for path in self.out.iterdir()}, {"reducer"})

    def test_modes_have_folders_of_their_own(self):
        self.works("--debug", "--asan", "--ubsan", "tributary")
        self.assertIn(f"-B {self.out}/build/package-debug-asan-ubsan -DCMAKE_BUILD_TYPE=Debug -DTRIBUTARY_SANITIZE=address,undefined", self.calls[0])
        self.works("--arch", "arm64", "tributary")
        self.assertEqual(self.calls[0], f"cmake --preset package-arm64 -B {self.out}/build/package-arm64")
        (self.out / "build/package/old").mkdir(parents=True)
        self.works("--clean", "tributary")
        self.assertFalse((self.out / "build/package/old").exists())

    def test_failures_keep_the_earlier_output(self):
        self.works("tributary", WORD="good")
        for tool, words in (("cmake", "configuring failed"), ("ninja", "compiling tributary failed"), ("stage", "deploy/stage.py for tributary failed")):
            self.fails(1, f"{words}; its messages are above", "tributary", FAIL=tool, WORD="bad")
            self.assertEqual({path.name for path in self.out.iterdir()}, {"tributary"})
            self.assertEqual((self.out / "tributary/usr/bin/made").read_text(), "good")
        self.works("tributary", WORD="better")
        self.assertEqual((self.out / "tributary/usr/bin/made").read_text(), "better")

    def test_docker_needs_a_daemon_before_anything_is_compiled(self):
        self.fails(1, "no Docker daemon answers at .*/socket .*start Docker and mount its socket .*--no-docker", "docker")
        self.assertEqual(self.calls, [])
        self.fails(1, "only a Unix socket can be used", "docker", DOCKER_HOST="tcp://127.0.0.1:2375")
        self.works("--no-docker", "docker")
        self.assertEqual(len(list((self.out / "images").glob("*-amd64.tar"))), 4)

    def test_docker(self):
        daemon = self.daemon()
        self.works("docker", IMAGE_TAGS="1.0, latest")
        images = [line for line in self.calls if line.startswith("image ")]
        self.assertEqual(len(images), 4)
        self.assertIn("--component kernel-collector --arch amd64 --tag kernel-collector:1.0 kernel-collector:latest --out "
                      f"{self.out}/images/kernel-collector-amd64.tar", images[0])
        self.assertEqual(daemon.requests, [("/images/load?quiet=1", len("archive"))] * 4)

    def test_docker_registry(self):
        daemon = self.daemon()
        result = self.works("tributary-docker-registry")
        self.assertEqual([path for path, _ in daemon.requests],
                         ["/images/load?quiet=1", "/images/tributary%3Alatest/tag?repo=localhost%3A5000%2Ftributary&tag=latest",
                          "/images/localhost%3A5000/tributary/push?tag=latest"])
        self.assertIn("pushed as localhost:5000/tributary:latest sha256:0123", result.stdout)
        daemon.requests.clear()
        self.works("docker-registry", EBPF_NET_DOCKER_REGISTRY="registry.example/team/", IMAGE_TAGS="a b")
        self.assertEqual(sum("/push" in path for path, _ in daemon.requests), 8)
        self.assertIn(("/images/registry.example/team/reducer/push?tag=b", 0), daemon.requests)

    def test_refusals_of_registry_and_daemon(self):
        daemon = self.daemon(refuse="dial tcp 127.0.0.1:5000: connection refused")
        self.fails(1, r"the registry localhost:5000 did not accept localhost:5000/reducer:latest \(dial tcp .* refused\); .*EBPF_NET_DOCKER_REGISTRY",
                   "reducer-docker-registry")
        daemon.load_error = "no space left on device"
        self.fails(1, "could not load .*no space left on device; .*run this again", "docker")

    def test_bad_names(self):
        self.fails(2, "EBPF_NET_DOCKER_REGISTRY is http://x; write HOST", "docker", EBPF_NET_DOCKER_REGISTRY="http://x")
        self.fails(2, "IMAGE_TAGS has 'a/b'", "docker", IMAGE_TAGS="a/b")
        self.fails(2, "leave out --no-docker", "--no-docker", "docker-registry")

    def test_login(self):
        sys.path.insert(0, str(SOURCE / "deploy"))
        self.addCleanup(sys.path.remove, str(SOURCE / "deploy"))
        daemon = importlib.import_module("docker_daemon")
        (self.directory / ".docker").mkdir()
        (self.directory / ".docker/config.json").write_text('{"auths": {"r.example": {"auth": "bWU6cGFzczp3b3Jk"}}}')
        self.assertEqual(daemon.login_for("r.example", self.directory), {"username": "me", "password": "pass:word", "serveraddress": "r.example"})
        self.assertIsNone(daemon.login_for("other.example", self.directory))
        self.assertIsNone(daemon.login_for("r.example", self.directory / "nowhere"))


if __name__ == "__main__":
    unittest.main()
