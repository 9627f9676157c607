"""Tests dev/certs: its files work with a real reducer and collector, and a second run keeps what programs use."""

import base64
import json
import os
import pathlib
import re
import ssl
import stat
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

import lib  # noqa: E402

CERTS = lib.SOURCE / "dev/certs"
FILES = ("ca.crt", "ca.key", "http-tokens", "intake-token", "tls.crt", "tls.key")
# `kubectl create secret tls` and cert-manager use the same keys.
SECRETS = {("prod", "tributary-tls"): {"ca.crt", "tls.crt", "tls.key"}, ("prod", "tributary-tokens"): {"http-tokens", "intake-token"}}
NODE_SECRETS = {("nodes", "tributary-tls"): {"ca.crt"}, ("nodes", "tributary-tokens"): {"intake-token"}}
DEFAULT_NAMES = {"localhost", "reducer", "127.0.0.1", "reducer.tributary", "reducer.tributary.svc",
                 "*.reducer-headless.tributary.svc", "reducer.tributary.svc.cluster.local",
                 "*.reducer-headless.tributary.svc.cluster.local"}


def certs(directory, *arguments, user=()):
    """Runs the script. `user`: words of a command that runs it as another user."""
    return subprocess.run([*user, CERTS, "--out", directory, *arguments], capture_output=True, text=True, check=False)


def made(directory, *arguments):
    result = certs(directory, *arguments)
    lib.check(result.returncode == 0, f"certs {arguments}: {result.stderr}")
    return result.stdout


def refused(directory, words, *arguments, status=1):
    """Checks that the command fails, in one line that has the words, and changes no file."""
    before = content(directory)
    result = certs(directory, *arguments)
    lib.check(result.returncode == status, f"certs {arguments}: exit status {result.returncode}, {result.stderr}")
    lib.check(len(result.stderr.splitlines()) == 1 and words in result.stderr, f"certs {arguments}: {result.stderr}")
    lib.check(result.stdout == "" and content(directory) == before, f"certs {arguments} changed files")


def content(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()} if directory.exists() else {}


def openssl(*words):
    return subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, text=True).stdout


def names(directory):
    text = openssl("x509", "-in", directory / "tls.crt", "-noout", "-ext", "subjectAltName")  # the script must not use -ext
    return set(re.findall(r"(?:DNS|IP Address):([^,\s]+)", text))


def documented_names_and_modes():
    with lib.directory() as d:
        made(d / "set")
        lib.check(sorted(content(d / "set")) == list(FILES), f"files: {sorted(content(d / 'set'))}")
        for path in [d / "set", *(d / "set").iterdir()]:
            mode = stat.S_IMODE(path.stat().st_mode)
            lib.check(mode == (0o700 if path.is_dir() else 0o644 if path.suffix == ".crt" else 0o600), f"{path.name}: mode {mode:o}")
        lib.check(names(d / "set") == DEFAULT_NAMES, f"names: {names(d / 'set')}")
        made(d / "other", "--namespace", "prod", "reducer.example", "10.1.2.3", "2001:db8::1")
        lib.check({"reducer.example", "10.1.2.3", "2001:DB8:0:0:0:0:0:1", "*.reducer-headless.prod.svc"} <= names(d / "other"),
                  f"names: {names(d / 'other')}")


def a_second_run_keeps_keys_and_tokens():
    with lib.directory() as d:
        out = d / "set"
        made(out, "a.example")
        first = content(out)
        made(out)
        made(out, "a.example", "reducer")
        lib.check(content(out) == first, "a second run with the same names changed files")
        made(out, "2001:db8::1")
        first = content(out)
        made(out, "2001:DB8:0::0001")
        lib.check(content(out) == first, "another form of an address changed files")
        made(out, "b.example")
        second = content(out)
        changed = {name for name in FILES if first[name] != second[name]}
        lib.check(changed == {"tls.crt"}, f"one more name changed {changed}")
        lib.check({"a.example", "b.example"} <= names(out), f"a name is gone: {names(out)}")
        # A certificate that ends within 30 days is made anew, and so is a missing one.
        made(out, "--days", "20", "c.example")
        before = content(out)
        made(out)
        after = content(out)
        lib.check({name for name in FILES if before[name] != after[name]} == {"tls.crt"}, "an old certificate was not made anew")
        (out / "tls.crt").unlink()
        made(out)
        lib.check(content(out)["tls.key"] == first["tls.key"], "the key was replaced")


def files_keep_their_owner():
    """A renewal by root without --owner must not take the certificate from the user of the reducer."""
    with lib.directory() as d:
        out = d / "set"
        for arguments in (["--owner", "65532:65533"], ["new.example"]):
            result = certs(out, *arguments, user=lib.ROOT)
            lib.check(result.returncode == 0, f"certs {arguments}: {result.stderr}")
            shown = subprocess.run([*lib.ROOT, "stat", "--format", "%n %u:%g %a", out, *(out / name for name in FILES)], check=True,
                                   capture_output=True, text=True).stdout
            found = {pathlib.Path(name).name: (owner, mode) for name, owner, mode in map(str.split, shown.splitlines())}
            lib.check(found == {"set": ("0:0", "711"), "ca.key": ("0:0", "600"),
                                **{name: ("65532:65533", "644" if name.endswith(".crt") else "600") for name in FILES if name != "ca.key"}},
                      f"after certs {arguments}: {found}")
        lib.check("new.example" in names(out), "the certificate was not made anew")


def a_file_that_cannot_be_read_is_named():
    with lib.directory() as d:
        d.chmod(0o711)
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        made(d / "set")
        subprocess.run([*lib.ROOT, "chown", "65534" if user else str(os.geteuid()), d / "set"], check=True)
        for name, *arguments in (("tls.key",), ("intake-token",), ("ca.key", "new.example")):
            for each in FILES:
                subprocess.run([*lib.ROOT, "chown", "0" if each == name else "65534" if user else str(os.geteuid()), d / "set" / each], check=True)
            result = certs(d / "set", *arguments, user=user)
            lib.check(result.returncode == 1 and f"{name} cannot be read: run certs as its owner" in result.stderr
                      and len(result.stderr.splitlines()) == 1, f"{name}: {result.stderr}")


def nothing_needs_newer_tools():
    """A Mac has Bash 3.2 and LibreSSL."""
    text = re.sub(r"(^|\s)#.*", "", CERTS.read_text(), flags=re.MULTILINE)
    newer = (r"\bmapfile\b", r"\breadarray\b", r"\b(declare|local|typeset) -[Agn]", r"\$\{\w+(\[@\])?[,^@]", r"\|&", r"&>>", r"\bstat\b", r"\bsed -[a-z]*r",
             r"\breadlink\b", r"(?<![+])\"\$\{(given|kept)\[@\]\}", r" -ext\b", r" -(checkip|checkhost|addext|copy_extensions)\b", r"\bP-256\b",
             r"\bbase64 -w")
    lib.check([found for each in newer if (found := re.findall(each, text))] == [], "the script uses newer features of Bash or OpenSSL")


def bad_input_is_refused():
    with lib.directory() as d:
        out = d / "set"
        for words, *arguments in (("there is no option --nmae", "--nmae", "x"), ("--out needs a value", "--out"), ("--days is 0", "--days", "0"),
                                  ("neither a DNS name nor an IP address", "a_b/c"), ("neither a DNS name", "300.1.1.1"),
                                  ("neither a DNS name", "a,DNS:evil"), ("neither a DNS name", "a.*.example"),
                                  ("neither a DNS name", ""), ("neither a DNS name", "::::"),
                                  ("X is not the name of a namespace", "--namespace", "X"),
                                  ("is for --kubernetes", "--node-namespace", "nodes"),
                                  ("the same as --namespace", "--kubernetes", "--node-namespace", "tributary"),
                                  ("--owner is a b", "--owner", "a b")):
            refused(out, words, *arguments, status=2)
        lib.check(not out.exists(), "a refused command made a folder")
        (d / "file").write_text("")
        lib.check("not a folder where you may write" in certs(d / "file").stderr, "a file is taken as a folder")
        made(out)
        kept = content(out)

        def restore():
            for path in out.iterdir():
                path.unlink()
            for name, data in kept.items():
                (out / name).write_bytes(data)

        (out / "ca.key").unlink()
        made(out)
        refused(out, "has no ca.key to sign it", "new.example")
        restore()
        (out / "ca.crt").unlink()
        refused(out, "not the ca.crt that signed it")
        restore()
        (out / "tls.key").unlink()
        refused(out, "not its key tls.key")
        restore()
        made(d / "other")
        (out / "tls.key").write_bytes((d / "other/tls.key").read_bytes())
        refused(out, "is not the key of")
        restore()
        (out / "ca.crt").write_bytes((d / "other/ca.crt").read_bytes())
        refused(out, "did not sign")


def keys_of_secrets(printed, directory):
    """Returns (namespace, name) → keys. Checks that the values are the files of the folder."""
    found = {}
    for text in printed.split("---\n")[1:]:
        head, data = text.split("\ndata:\n")
        lib.check(head.startswith("apiVersion: v1\nkind: Secret\n"), head)
        name, namespace = (re.search(rf"^  {key}: (\S+)$", head, re.MULTILINE)[1] for key in ("name", "namespace"))
        values = dict(re.fullmatch(r"  (\S+): (\S+)", line).groups() for line in data.splitlines())
        found[namespace, name] = set(values)
        for key, value in values.items():
            lib.check(base64.b64decode(value) == (directory / key).read_bytes(), f"{name}: {key}")
    return found


def secrets_have_the_keys_that_manifests_mount():
    with lib.directory() as d:
        printed = made(d / "set", "--kubernetes", "--namespace", "prod")
        lib.check(made(d / "set", "--kubernetes", "--namespace", "prod") == printed, "a second run prints other Secrets")
        lib.check(keys_of_secrets(printed, d / "set") == SECRETS, f"Secrets: {printed}")
        both = made(d / "set", "--kubernetes", "--namespace=prod", "--node-namespace=nodes")
        lib.check(both.startswith(printed) and keys_of_secrets(both, d / "set") == SECRETS | NODE_SECRETS, f"Secrets: {both}")
        lib.check("ca.key" not in printed, "the key of the authority leaves the folder")


def status(url, token, trusted):
    request = urllib.request.Request(f"{url}/api/v1/status", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=30, context=trusted) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code


def programs_accept_the_files():
    with lib.directory() as d, lib.programs() as programs:
        made(d)
        tls = ["--http-tls-cert", d / "tls.crt", "--http-tls-key", d / "tls.key", "--http-token-file", d / "http-tokens"]
        reducer = lib.Reducer(d, ["--tls-cert", d / "tls.crt", "--tls-key", d / "tls.key", "--intake-token-file", d / "intake-token", *tls])
        programs.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=199, args=["--batch-interval", "1s", "--tls-ca", d / "ca.crt",
                                                                           "--intake-token-file", d / "intake-token"])
        programs.append(collector)
        trusted = ssl.create_default_context(cafile=d / "ca.crt")
        trusted.verify_flags |= ssl.VERIFY_X509_STRICT
        url = f"https://localhost:{reducer.http_port}"
        tokens = dict(reversed(line.split()[::2]) for line in (d / "http-tokens").read_text().splitlines())
        lib.check(set(tokens) == {"admin", "reader"}, f"names of tokens: {set(tokens)}")
        lib.check(status(url, "0" * 64, trusted) == 401, "another token is accepted")
        lib.wait_for("samples through TLS", lambda: status(url, tokens["reader"], trusted)["total"]["stored"] > 0, 60)
        rights = {name: sorted(json.load(urllib.request.urlopen(urllib.request.Request(
            f"{url}/api/v1/whoami", headers={"Authorization": f"Bearer {token}"}), context=trusted))["rights"]) for name, token in tokens.items()}
        lib.check(rights["reader"] == ["read"] and "admin" in rights["admin"], f"rights: {rights}")
        lib.check(collector.stop() == 0 and reducer.stop() == 0, "a program failed")


if __name__ == "__main__":
    lib.main(documented_names_and_modes, a_second_run_keeps_keys_and_tokens, files_keep_their_owner, a_file_that_cannot_be_read_is_named,
             nothing_needs_newer_tools, bad_input_is_refused, secrets_have_the_keys_that_manifests_mount, programs_accept_the_files)
