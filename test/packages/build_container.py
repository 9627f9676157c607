"""Makes the build image for tests, and runs the documented command lines with it, word for word."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess

import lib

LONG = bool(os.environ.get("TRIBUTARY_LONG"))
DOCUMENT = lib.SOURCE / "docs/build-image.md"
# Enough to compile four programs without a cache on a busy machine. The other steps take proportionally less.
BUILD_TIMEOUT_S = 3 * 3600
REGISTRY = "localhost:5000"
# This machine's settings contain these texts while the image is made. No layer may contain them.
MARKERS = {"apt": "leaked-by-apt", "npm": "leaked-by-npm", "proxy": "leaked-by-proxy.invalid"}


def run(command, env=None, cwd=None, timeout_s=BUILD_TIMEOUT_S):
    return subprocess.run([str(word) for word in command], env=env, cwd=cwd, capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, timeout=timeout_s, check=False)


def documented_lines():
    """Returns the command lines of docs/build-image.md that run the image: to build, to push, and with volumes."""
    blocks = re.findall(r"^```\n(docker run .*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    lib.check(len(blocks) == 3, f"{DOCUMENT} has {len(blocks)} command lines")
    return blocks


class Builder:
    """The image build-env in the test's own Docker daemon, and a clone of this tree's commit."""

    def __init__(self, directory, docker):
        self.directory, self.docker = directory, docker
        self.socket = docker.host.removeprefix("unix://")
        home = directory / "home"
        home.mkdir()
        npmrc = pathlib.Path.home() / ".npmrc"
        with contextlib.suppress(FileNotFoundError):
            shutil.copy(npmrc, home / ".npmrc")
        with open(home / ".npmrc", "a", encoding="utf-8") as f:
            f.write(f"\n//registry.invalid/:_authToken={MARKERS['npm']}\n")
        # The tree belongs to another user, like a developer's tree that is mounted into a container that runs as root.
        (home / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")
        (directory / "apt.conf").write_text(f'Acquire::http::User-Agent "{MARKERS["apt"]}";\n')
        no_proxy = ",".join(word for word in (os.environ.get("no_proxy"), MARKERS["proxy"]) if word)
        self.environment = {**os.environ, "DOCKER_HOST": docker.host, "HOME": str(home), "APT_CONFIG": str(directory / "apt.conf"),
                            "no_proxy": no_proxy}
        self.source = directory / "source"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", lib.SOURCE, self.source], check=True, capture_output=True)
        subprocess.run([*lib.ROOT, "chown", "-R", "1000:1000", self.source], check=True)

    def make_base(self):
        """Makes a root file system without apt sources. Returns its path."""
        base = self.directory / "base.tar"
        result = run([*lib.ROOT, "mmdebstrap", "--variant=minbase", "--customize-hook=rm -f \"$1\"/etc/apt/sources.list", "bookworm", base])
        lib.check(result.returncode == 0, f"mmdebstrap: {result.stderr[-2000:]}")
        return base

    def build_image(self, *arguments, tree=None, **environment):
        return run([*lib.ROOT, (tree or self.source) / "build-env/build.sh", *arguments], env={**self.environment, **environment})

    def leaks(self):
        """Returns the kinds of the markers that the image contains in any layer or in its configuration."""
        with subprocess.Popen([*lib.ROOT, "docker", "--host", self.docker.host, "save", "build-env"], stdout=subprocess.PIPE) as save:
            found, tail = set(), b""
            while block := save.stdout.read(8 << 20):
                found |= {kind for kind, marker in MARKERS.items() if marker.encode() in tail + block}
                tail = block[-64:]
        lib.check(save.returncode == 0, "docker save failed")
        return found

    def line(self, line, mounts):
        """Runs a documented line at a terminal, as its user does. Returns the exit status and the output.

        The line is changed in one place: it gets the socket of this daemon. Unless TRIBUTARY_LONG is set, `mounts` are
        added, too: volumes that keep compiled files, to save an hour."""
        text = line.replace("source=/var/run/docker.sock", f"source={self.socket}")
        lib.check(text != line, f"no socket in {line}")
        if not LONG:
            text = text.replace("-it --rm \\\n", "-it --rm \\\n" + "".join(f"  --mount {mount} \\\n" for mount in mounts))
        result = run(["script", "--quiet", "--return", "--flush", "--command", text, "/dev/null"], env=self.environment, cwd=self.source)
        return result.returncode, result.stdout

    def ccache(self):
        """Returns the mount of a ccache folder. If the tests run as root, the folder is this machine's own cache, which
        contains the files that the preset compiled here. Otherwise it is a separate folder."""
        cache = pathlib.Path(os.environ.get("CCACHE_DIR") or pathlib.Path.home() / ".cache/ccache")
        if lib.ROOT:  # the container writes as root
            cache = pathlib.Path.home() / ".cache/tributary/ccache-of-root"
        cache.mkdir(parents=True, exist_ok=True)
        return f"type=bind,source={cache},destination=/root/.cache/ccache"

    def build_sh(self, *words, options=(), variables=(), socket=True, source=True):
        """Runs /root/build.sh in a container without a network. Returns the exit status and all output."""
        command = ["docker", "run", "--rm", "--network", "none", "--env", "EBPF_NET_OUT_DIR=/root/out", *options]
        if socket:
            command += ["--mount", f"type=bind,source={self.socket},destination=/var/run/docker.sock"]
        if source:
            command += ["--mount", f"type=bind,source={self.source},destination=/root/src,readonly"]
        command += [word for variable in variables for word in ("--env", variable)]
        result = run([*lib.ROOT, *command, "build-env", "/root/build.sh", *words], env=self.environment)
        return result.returncode, result.stdout + result.stderr

    def refused(self, sentence, *words, status=1, **how):
        """Checks that build.sh fails and that its last line matches `sentence`, a regular expression."""
        code, text = self.build_sh(*words, **how)
        last = (text.strip().splitlines() or [""])[-1]
        lib.check(code == status, f"exit status {code}, not {status}: {text[-2000:]}")
        lib.check(re.search(rf"^build\.sh: .*{sentence}", last), f"{last!r} does not say {sentence!r}")
        print(f"  {last}", flush=True)


@contextlib.contextmanager
def registry(directory):
    """Runs Debian's docker-registry at the address that the public page uses."""
    folder = directory / "registry"
    folder.mkdir(exist_ok=True)
    (folder / "config.yml").write_text(f"version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {folder}/data\n"
                                       "http:\n  addr: 127.0.0.1:5000\n")
    program = lib.Program("docker-registry", ["docker-registry", "serve", folder / "config.yml"], directory)
    try:
        def answers():
            lib.check(program.running(), f"docker-registry ended; is port 5000 in use?\n{program.text()}")
            return run(["curl", "-fsS", f"http://{REGISTRY}/v2/"]).returncode == 0
        lib.wait_for("docker-registry", answers, 60)
        yield
    finally:
        program.kill()
