"""The build image for tests: how it is made, and how the documented command lines are run with it, word for word."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess

import lib

LONG = bool(os.environ.get("TRIBUTARY_LONG"))
DOCUMENT = lib.SOURCE / "docs/build-image.md"
# Four programs, compiled without a cache on a machine that has other work, and all else in proportion.
BUILD_TIMEOUT_S = 3 * 3600
REGISTRY = "localhost:5000"
# No layer may have these: they stand in this machine's settings while the image is made.
MARKERS = {"apt": "leaked-by-apt", "npm": "leaked-by-npm", "proxy": "leaked-by-proxy.invalid"}


def run(command, env=None, cwd=None, timeout_s=BUILD_TIMEOUT_S):
    return subprocess.run([str(word) for word in command], env=env, cwd=cwd, capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, timeout=timeout_s, check=False)


def documented_lines():
    """The command lines of docs/build-image.md that run the image: to build, to push, and with volumes."""
    blocks = re.findall(r"^```\n(docker run .*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    lib.check(len(blocks) == 3, f"{DOCUMENT} has {len(blocks)} command lines")
    return blocks


class Builder:
    """The image build-env in a daemon of ours, and a clone of this tree's commit."""

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
        # The tree is another user's, as it is when a developer's is mounted into a container of root.
        (home / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")
        (directory / "apt.conf").write_text(f'Acquire::http::User-Agent "{MARKERS["apt"]}";\n')
        no_proxy = ",".join(word for word in (os.environ.get("no_proxy"), MARKERS["proxy"]) if word)
        self.environment = {**os.environ, "DOCKER_HOST": docker.host, "HOME": str(home), "APT_CONFIG": str(directory / "apt.conf"),
                            "no_proxy": no_proxy}
        self.source = directory / "source"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", lib.SOURCE, self.source], check=True, capture_output=True)
        subprocess.run([*lib.ROOT, "chown", "-R", "1000:1000", self.source], check=True)

    def make_base(self):
        """A root file system without apt sources of its own."""
        base = self.directory / "base.tar"
        result = run([*lib.ROOT, "mmdebstrap", "--variant=minbase", "--customize-hook=rm -f \"$1\"/etc/apt/sources.list", "bookworm", base])
        lib.check(result.returncode == 0, f"mmdebstrap: {result.stderr[-2000:]}")
        return base

    def build_image(self, *arguments, tree=None, **environment):
        return run([*lib.ROOT, (tree or self.source) / "build-env/build.sh", *arguments], env={**self.environment, **environment})

    def leaks(self):
        """Which of the markers the image has, in any layer or in its configuration."""
        with subprocess.Popen([*lib.ROOT, "docker", "--host", self.docker.host, "save", "build-env"], stdout=subprocess.PIPE) as save:
            found, tail = set(), b""
            while block := save.stdout.read(8 << 20):
                found |= {kind for kind, marker in MARKERS.items() if marker.encode() in tail + block}
                tail = block[-64:]
        lib.check(save.returncode == 0, "docker save failed")
        return found

    def line(self, line, mounts):
        """A documented line, run at a terminal as its user does. The one change: this daemon's socket. To save an hour,
        unless TRIBUTARY_LONG is set, also volumes that keep what was compiled."""
        text = line.replace("source=/var/run/docker.sock", f"source={self.socket}")
        lib.check(text != line, f"no socket in {line}")
        if not LONG:
            text = text.replace("-it --rm \\\n", "-it --rm \\\n" + "".join(f"  --mount {mount} \\\n" for mount in mounts))
        result = run(["script", "--quiet", "--return", "--flush", "--command", text, "/dev/null"], env=self.environment, cwd=self.source)
        return result.returncode, result.stdout

    def ccache(self):
        """This machine's own cache, which has what the preset compiled here already."""
        cache = pathlib.Path(os.environ.get("CCACHE_DIR") or pathlib.Path.home() / ".cache/ccache")
        if lib.ROOT:  # the container writes as root
            cache = pathlib.Path.home() / ".cache/tributary/ccache-of-root"
        cache.mkdir(parents=True, exist_ok=True)
        return f"type=bind,source={cache},destination=/root/.cache/ccache"

    def build_sh(self, *words, options=(), variables=(), socket=True, source=True):
        """/root/build.sh in a container without a network. Exit status and everything it wrote."""
        command = ["docker", "run", "--rm", "--network", "none", "--env", "EBPF_NET_OUT_DIR=/root/out", *options]
        if socket:
            command += ["--mount", f"type=bind,source={self.socket},destination=/var/run/docker.sock"]
        if source:
            command += ["--mount", f"type=bind,source={self.source},destination=/root/src,readonly"]
        command += [word for variable in variables for word in ("--env", variable)]
        result = run([*lib.ROOT, *command, "build-env", "/root/build.sh", *words], env=self.environment)
        return result.returncode, result.stdout + result.stderr

    def refused(self, sentence, *words, status=1, **how):
        """It ends with one sentence that says `sentence`, a regular expression."""
        code, text = self.build_sh(*words, **how)
        last = (text.strip().splitlines() or [""])[-1]
        lib.check(code == status, f"exit status {code}, not {status}: {text[-2000:]}")
        lib.check(re.search(rf"^build\.sh: .*{sentence}", last), f"{last!r} does not say {sentence!r}")
        print(f"  {last}", flush=True)


@contextlib.contextmanager
def registry(directory):
    """Debian's docker-registry, where the public page expects it."""
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
