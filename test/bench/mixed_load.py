"""A mixed real load: programs that a company's machines run, all at the same time.

The load leaves out parts if their programs are not installed, and lists them.
"""

import os
import pathlib
import pwd
import shutil
import subprocess
import sys

import loads
import lib

PROGRAMS = pathlib.Path(__file__).resolve().parent / "mixed"


def _postgres_bin():
    """Finds the folder of pgbench and initdb. Debian keeps both next to the server, outside PATH."""
    for each in sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if all((each / name).exists() for name in ("postgres", "initdb", "pgbench", "createdb")):
            return each
    return None


def _other_user():
    """Returns another user than root: PostgreSQL refuses to run as root."""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    return None


class Mixed(loads.Load):
    """Mixed: compilers, Python, Node, Java, databases, shells, go build, gzip, openssl, git, Perl, all at once."""

    name = "mixed"
    bounds = {97: 10, 20: 15}  # bytes a sample at most, by rate

    def __init__(self, directory):
        self._home = pathlib.Path(directory) / "mixed"
        self._home.mkdir()
        makers = {"compilers": (self._compilers, "gcc g++"), "python": (self._python, "python3"), "node": (self._node, "node"),
                  "java": (self._java, "java javac"), "sqlite": (self._sqlite, "sqlite3"), "shells": (self._shells, "sh awk sed sort find"),
                  "go build": (self._go, "go"), "gzip": (self._gzip, "gzip tar"), "openssl": (self._openssl, "openssl"),
                  "git": (self._git, "git"), "perl": (self._perl, "perl"), "postgresql": (self._postgresql, "runuser")}
        commands, self.parts, self.left_out = [], [], []
        for name, (make, needs) in makers.items():
            made = make() if all(shutil.which(n) for n in needs.split()) else None
            (self.parts if made else self.left_out).append(name)
            commands += made or []
        super().__init__(*commands)

    def _file(self, name):
        return shutil.copy(PROGRAMS / name, self._home / name)

    @staticmethod
    def _loop(script):
        return ["sh", "-c", f"while :; do {script}; done"]

    def _compilers(self):
        a, b, c = map(self._file, ("containers.cc", "patterns.cc", "tables.c"))
        out = self._home / "compiled"
        return [self._loop(f"g++ -O2 -g -c -o {out}.o {a}; gcc -O2 -Wall -o {out} {c} && {out} a b a; g++ -O0 -c -o {out}.o {b}; "
                           f"g++ -std=c++20 -O1 -o {out} {a} && {out}; gcc -O3 -S -o {out}.s {c}; g++ -fsyntax-only {b}")]

    def _python(self):
        return [[sys.executable, self._file("work.py")], [sys.executable, "-c", loads.PYTHON_RECURSION]]

    def _node(self):
        return [["node", self._file("work.js")]]

    def _java(self):
        source = self._file("Work.java")
        return [self._loop(f"javac -d {self._home} {source}; timeout 120 java -Xmx256m -cp {self._home} Work")]

    def _sqlite(self):
        return [self._loop(f"sqlite3 {self._home}/work.db < {self._file('work.sql')}; rm {self._home}/work.db")]

    def _shells(self):
        return [self._loop("ls -l /usr/bin | awk '{print $5, $NF}' | sort -rn | head -n 20; find /usr/share/doc -maxdepth 1 | sed s/a/b/ | cksum; "
                           "for i in 1 2 3 4 5 6 7 8 9; do echo $i; done | xargs -n 2 echo; grep -rl GNU /usr/share/doc/bash* | wc -l; sleep 0.05")]

    def _go(self):
        (self._home / "go").mkdir()
        shutil.copy(PROGRAMS / "work.go", self._home / "go" / "main.go")
        (self._home / "go" / "go.mod").write_text("module work\n\ngo 1.19\n")
        prefix = f"cd {self._home}/go && GOCACHE={self._home}/go/cache GOFLAGS=-buildvcs=false"
        return [self._loop(f"{prefix} go build -p 1 -o work . && ./work; {prefix} go vet -p 1 .; rm -rf {self._home}/go/cache")]

    def _gzip(self):
        text = self._home / "text.tar"
        subprocess.run(["tar", "-cf", text, "-C", lib.SOURCE, "docs", "intake", "test/bench"], check=True)
        return [self._loop(f"gzip -k -c {text} > {text}.gz; gzip -dc {text}.gz | cksum")]

    def _openssl(self):
        return [self._loop(f"openssl dgst -sha256 {self._home}/text.tar; openssl speed -seconds 1 -bytes 16384 aes-256-cbc; openssl genrsa 2048; "
                           "openssl speed -seconds 1 ecdsap256")]

    def _git(self):
        repository = self._home / "repository"
        shutil.copytree(lib.SOURCE / "intake", repository / "intake")
        git = f"git -C {repository} -c user.name=bench -c user.email=bench@localhost -c gc.auto=0"
        subprocess.run(f"{git} init -q && {git} add . && {git} commit -qm first", shell=True, check=True)
        return [self._loop(f"for f in {repository}/intake/*/*.cc; do echo '// more' >> $f; done; {git} commit -qam next; {git} log -p --stat | cksum; "
                           f"{git} gc -q --prune=now; {git} grep -c Status; {git} blame -- intake/wire/frame.cc | cksum; {git} status")]

    def _perl(self):
        return [["perl", self._file("work.pl")]]

    def _postgresql(self):
        bin_directory, user = _postgres_bin(), _other_user()
        if bin_directory is None or user is None:
            return None
        for parent in self._home.parents:
            if not parent.stat().st_mode & 0o001:
                os.chmod(parent, 0o711)
        base = self._home / "postgresql"
        base.mkdir()
        os.chown(base, user.pw_uid, user.pw_gid)
        as_user = ["runuser", "-u", user.pw_name, "--"]
        subprocess.run([*as_user, bin_directory / "initdb", "-D", base / "data", "-A", "trust"], check=True, stdout=subprocess.DEVNULL, cwd=base)
        server = [*as_user, bin_directory / "postgres", "-D", base / "data", "-k", base, "-c", "listen_addresses="]
        bench = f"{bin_directory}/pgbench -h {base} postgres"
        return [server, [*as_user, "sh", "-c", f"cd {base}; until {bin_directory}/createdb -h {base} probe; do sleep 0.2; done; {bench} -i -s 2; "
                                               f"while :; do {bench} -c 2 -T 20; {bench} -S -M prepared -c 2 -T 10; done"]]


class Tight(loads.Load):
    """Tight: gzip, openssl and sqlite, each doing one thing over and over."""

    name = "tight"
    bounds = {97: 5, 20: 5}

    def __init__(self, directory):
        home = pathlib.Path(directory)
        text = home / "text.tar"
        subprocess.run(["tar", "-cf", text, "-C", lib.SOURCE, "docs", "intake", "test/bench"], check=True)
        for _ in range(6):  # a few hundred MB: a run of gzip lasts
            text.write_bytes(text.read_bytes() * 2)
        self.parts, self.left_out = ["gzip", "openssl", "sqlite"], []
        query = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000) "
                 "SELECT sum(i % 7), max(i * 3 % 1000003) FROM n;")
        super().__init__(["sh", "-c", f"while :; do gzip -c {text} > /dev/null; done"],
                         ["sh", "-c", "while :; do openssl speed -seconds 60 -bytes 16384 aes-256-cbc; done"],
                         ["sh", "-c", f"while :; do sqlite3 :memory: '{query}'; done"])
