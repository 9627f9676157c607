"""Tests the documents that the real programs generate: man pages, completions in their shells, configuration files."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import shell_completions

BIN = pathlib.Path(os.environ["TRIBUTARY_BIN"])
DAEMONS = ["kernel-collector", "reducer", "k8s-collector"]
PROGRAMS = DAEMONS + ["tributary"]
LEVELS = {"trace", "debug", "info", "warning", "error", "critical"}
FORMATS = {"man", "bash", "zsh", "fish", "yaml"}
FILES = {"a cert.pem", "folder"}

# Typed text → all completions that the shell must offer.
EXACT = {
    "kernel-collector --log-level ": LEVELS,
    "kernel-collector --log-level=d": {"debug"},
    "kernel-collector --cloud-metadata ": {"auto", "off", "aws", "gcp", "azure"},
    "kernel-collector --intake-host 127.0.0.1 --log-level t": {"trace"},
    "kernel-collector --no-log-c": {"--no-log-console"},
    "kernel-collector --tls-cert ": FILES,
    "kernel-collector --spool-dir ": {"folder"},
    "kernel-collector --sample-rate ": set(),
    "reducer --symbol-uploads o": {"on", "off"},
    "reducer --intake-identity ": {"credential", "any"},
    "reducer --data-dir fo": {"folder"},
    "reducer --print-docs ": FORMATS,
    "k8s-collector --print-doc": {"--print-docs"},
    "k8s-collector --kubeconfig a": {"a cert.pem"},
    "tributary sym": {"symbols"},
    "tributary symbols pu": {"push"},
    "tributary symbols push fo": {"folder"},
    "tributary symbols push --who": {"--whole"},
    "tributary flamegraph --unit ": {"ns", "count"},
    "tributary top --query push --ty": {"--type"},
    "tributary flamegraph --format fold": {"folded", "folded-address"},
    "tributary inspect a": {"a cert.pem"},
    "tributary record --format ": {"svg", "html", "folded"},
    "tributary --print-docs ": FORMATS - {"yaml"} | {"commands"},
}
# Typed text → some of the completions that the shell must offer.
AMONG = {
    "kernel-collector --": {"--intake-host", "--sample-rate", "--tls", "--no-tls", "--help", "--config", "--print-config"},
    "reducer -": {"--intake-listen", "--port", "-p", "--export"},
    "tributary ": {"status", "top", "lines", "rollouts", "events", "flamegraph", "record", "inspect", "replay", "symbols"},
    "tributary symbols ": {"push", "resolve"},
    "tributary symbols --": {"--limit", "--query", "--json"},
    "tributary record -- bas": {"bash"},
}


def run(*arguments, environment=None, **more):
    return subprocess.run([str(BIN / arguments[0]), *arguments[1:]], capture_output=True, text=True, timeout=60,
                          env=environment or {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}, **more)


def document(program, form, *command, **more):
    done = run(program, "--print-docs", form, *command, **more)
    assert done.returncode == 0 and not done.stderr, f"{program} --print-docs {form}: {done.stderr}"
    return done.stdout


def values(printed):
    """Returns the output of --print-config without the sources of the values."""
    return [line.split("  # ")[0] for line in printed.splitlines()]


class DocsGenTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def pages(self):
        pages = {f"{daemon}.8": document(daemon, "man") for daemon in DAEMONS}
        pages["tributary.1"] = document("tributary", "man")
        for command in document("tributary", "commands").split():
            pages[f"tributary-{command}.1"] = document("tributary", "man", command)
        return pages

    def test_man_pages(self):
        pages = self.pages()
        self.assertEqual(len(pages), 4 + 14)
        paths = [self.write(name, text) for name, text in pages.items()]
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *paths], capture_output=True, text=True)
        self.assertEqual((lint.stdout, lint.stderr, lint.returncode), ("", "", 0))
        for name, text in pages.items():
            sections = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]
            sections += ["ENVIRONMENT"] if "-" not in name or name.endswith(".8") else []
            sections += ["FILES", "SIGNALS"] if name.endswith(".8") else []
            found = re.findall(r"^\.SH (.*)$", text, re.M)
            self.assertLessEqual(set(sections), set(found), name)
            self.assertEqual(len(found), len(set(found)), name)
            for page, section in re.findall(r"^\\fB(\S+)\\fR\((\d)\)", text, re.M):
                if section in "18":
                    self.assertIn(page.replace("\\-", "-") + "." + section, pages, f"{name} refers to it")

    def test_man_renders_every_option_as_it_is_typed(self):
        for program in DAEMONS:
            path = self.write(program + ".8", document(program, "man"))
            environment = os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MAN_KEEP_FORMATTING": "", "MANPAGER": "cat"}
            shown = subprocess.run(["man", "--warnings", "-l", path], capture_output=True, text=True, env=environment, check=True)
            self.assertEqual(shown.stderr, "", program)
            options = re.findall(r"^  (--[a-z0-9-]+)", run(program, "--help").stdout, re.M)
            self.assertGreater(len(options), 15)
            for option in options:
                self.assertRegex(shown.stdout, rf"(?m)^ +{option}\b", program)

    def test_completions(self):
        lines = list(EXACT) + list(AMONG)
        work = self.folder / "work"
        (work / "folder").mkdir(parents=True)
        (work / "a cert.pem").touch()
        for shell, ask in shell_completions.SHELLS.items():
            check = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-config", "--no-execute"]}[shell]
            scripts = [self.write(f"{program}.{shell}", document(program, shell)) for program in PROGRAMS]
            for script in scripts:
                subprocess.run([*check, script], check=True)
            everything = self.write(f"all.{shell}", "".join(f"source {script}\n" for script in scripts))
            found = ask(everything, lines, work)
            for line, expected in EXACT.items():
                self.assertEqual(found[line], expected, f"{shell}: {line}")
            for line, expected in AMONG.items():
                self.assertLessEqual(expected, found[line], f"{shell}: {line}")

    def test_configuration_files(self):
        for program in DAEMONS:
            text = document(program, "yaml")
            defaults = run(program, "--print-config").stdout
            names = re.findall(r"^([a-z0-9_]+):", defaults, re.M)
            self.assertEqual(re.findall(r"^#([a-z0-9_]+):", text, re.M), names, program)
            as_it_is = run(program, "--config", str(self.write("as-it-is.yaml", text)), "--print-config")
            self.assertEqual(as_it_is.stdout, defaults, as_it_is.stderr)
            every_line = self.write("every-line.yaml", re.sub(r"(?m)^#(?=[a-z])", "", text))
            used = run(program, "--config", str(every_line), "--print-config")
            if os.getuid() == 0:  # other users have another data directory
                self.assertEqual(values(used.stdout), values(defaults), used.stderr)
            self.assertEqual(used.returncode, 0, used.stderr)
            self.assertIn("every-line.yaml", used.stdout)
        refused = run("tributary", "--print-docs", "yaml")
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("reads no configuration file", refused.stderr)

    def test_the_same_documents_anywhere(self):
        for program in PROGRAMS:
            for form in sorted(FORMATS - ({"yaml"} if program == "tributary" else set())):
                here = document(program, form)
                other = {"HOME": "/x", "USER": "u", "XDG_STATE_HOME": "/y", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
                self.assertEqual(document(program, form, environment=other, cwd="/"), here, f"{program} {form}")
                self.assertNotIn(str(BIN), here)
        dated = document("reducer", "man", environment={"SOURCE_DATE_EPOCH": "1700000000", "TZ": "Asia/Tokyo"})
        self.assertIn(".TH REDUCER 8 2023-11-14 ", dated)
        wrong = run("reducer", "--print-docs", "man", environment={"SOURCE_DATE_EPOCH": "now"})
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))


if __name__ == "__main__":
    unittest.main()
