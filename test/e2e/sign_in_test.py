"""Tests who may do what at the reducer's HTTP port: every route, and every kind of caller, with real reducers.

Needs only a reducer. The callers have different loopback addresses: 127.0.0.7 is the trusted proxy.
"""

import base64
import contextlib
import dataclasses
import http.client
import json
import re
import signal
import ssl
import subprocess

import lib

PROXY = "127.0.0.7"
RIGHTS = ("read", "send", "upload", "admin")
TOKENS = {right: f"token-with-the-right-{right}" for right in RIGHTS}
WRONG = "token-that-is-not-in-the-file"
USER_HEADER = "X-Forwarded-User"
BUILD_ID = "00aa11bb22cc33dd"

# The method, the path, and what it needs: None: nothing; "sign-in": any caller that has signed in; else a right.
ROUTES = [
    ("GET", "/", None), ("GET", "/app.js", None), ("GET", "/nothing", None), ("POST", "/", None),
    ("GET", "/healthz", None), ("GET", "/readyz", None), ("HEAD", "/healthz", None),
    ("GET", "/api/v1/whoami", "sign-in"),
    ("GET", "/metrics", "read"), ("HEAD", "/metrics", "read"),
    ("GET", "/api/v1/flamegraph", "read"), ("GET", "/api/v1/top", "read"), ("GET", "/api/v1/types", "read"),
    ("GET", "/api/v1/timeline", "read"), ("GET", "/api/v1/series", "read"), ("GET", "/api/v1/labels", "read"),
    ("GET", "/api/v1/stack-health", "read"), ("GET", "/api/v1/lines?function=f", "read"), ("GET", "/api/v1/rollouts", "read"),
    ("GET", "/api/v1/events", "read"), ("GET", "/api/v1/events/marks", "read"), ("GET", "/api/v1/events/programs", "read"),
    ("GET", "/api/v1/symbols", "read"), ("HEAD", "/api/v1/symbols", "read"), ("POST", "/api/v1/symbols", "read"),
    ("GET", "/api/v1/status", "read"), ("GET", "/api/v1/nothing", "read"), ("PUT", "/api/v1/top", "read"),
    ("PUT", f"/api/v1/symbols?build-id={BUILD_ID}", "upload"),
    ("DELETE", f"/api/v1/symbols?build-id={BUILD_ID}", "admin"),
]


@dataclasses.dataclass
class Caller:
    """`rights` is None for a caller that is refused as not signed in."""
    name: str
    rights: tuple | None
    headers: dict = dataclasses.field(default_factory=dict)
    source: str = "127.0.0.1"
    signed_in_by: str = "token"
    user: str = ""
    certificate: str = ""  # the name of its files; "": none

    def may(self, need):
        return need == "sign-in" or need in self.rights or "admin" in self.rights


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def basic(token):
    return {"Authorization": "Basic " + base64.b64encode(f"any:{token}".encode()).decode()}


def ask(reducer, method, path, headers=None, source="127.0.0.1", port=None, tls=None):
    """Returns the status, the headers and the body of an answer. With `tls`, an ssl.SSLContext, it uses HTTPS."""
    to = {"host": "127.0.0.1", "port": port or reducer.http_port, "timeout": 60, "source_address": (source, 0)}
    connection = http.client.HTTPSConnection(**to, context=tls) if tls else http.client.HTTPConnection(**to)
    with contextlib.closing(connection):
        connection.request(method, path, body=b"no table" if method in ("PUT", "POST") else None, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def check_caller(reducer, caller, tls=None):
    for method, path, need in ROUTES:
        status, headers, body = ask(reducer, method, path, caller.headers, caller.source, tls=tls)
        what = f"{caller.name}: {method} {path}: {status} {body[:200]}"
        if need is None or (caller.rights is not None and caller.may(need)):
            lib.check(status not in (401, 403), what)
            lib.check(status < 500, what)
        elif caller.rights is None:
            lib.check(status == 401 and headers["WWW-Authenticate"] == 'Bearer realm="tributary"', what)
            lib.check(method == "HEAD" or json.loads(body)["error"], what)
        else:
            lib.check(status == 403, what)
            lib.check(method == "HEAD" or f"'{need}'" in json.loads(body)["error"], f"the message does not name the right: {what}")
    if caller.rights is not None:
        _, _, body = ask(reducer, "GET", "/api/v1/whoami", caller.headers, caller.source, tls=tls)
        rights = list(RIGHTS) if "admin" in caller.rights else [right for right in RIGHTS if right in caller.rights]
        expected = {"name": caller.user, "signed_in_by": caller.signed_in_by, "rights": rights}
        lib.check(json.loads(body) == expected, f"{caller.name}: whoami: {body}")


def write_tokens(path, text, mode=0o600):
    """Replaces the file, as docs/security.md says."""
    new = path.with_suffix(".new")
    new.touch(mode)
    new.chmod(mode)
    new.write_bytes(text if isinstance(text, bytes) else text.encode())
    new.rename(path)
    return path


def token_lines(rights=RIGHTS):
    return "".join(f"{TOKENS[right]} {right} Ann's {right} token\n" for right in rights)


def token_callers(reducer_is_open=False):
    """`reducer_is_open`: callers that do not try to sign in may read."""
    yield Caller("nothing", ("read",) if reducer_is_open else None, signed_in_by="none")
    yield Caller("a wrong token", None, bearer(WRONG))
    yield Caller("a wrong password", None, basic(WRONG))
    yield Caller("another scheme", None, {"Authorization": f"Digest {TOKENS['admin']}"})
    yield Caller("an empty token", None, {"Authorization": "Bearer "})
    for right in RIGHTS:
        yield Caller(f"{right} by token", (right,), bearer(TOKENS[right]), user=f"Ann's {right} token")
        yield Caller(f"{right} by password", (right,), basic(TOKENS[right]), user=f"Ann's {right} token")


def proxy_callers():
    for right in RIGHTS:
        header = {USER_HEADER: f"{right}-ben"}
        yield Caller(f"{right} by proxy", (right,), header, PROXY, "proxy", f"{right}-ben")
        yield Caller(f"{right} by a header that no proxy sent", None, header)
    yield Caller("a user without a rule", ("read",), {USER_HEADER: "ben"}, PROXY, "proxy", "ben")
    yield Caller("a proxy without a user", None, {}, PROXY)
    yield Caller("a proxy's user with a token", ("admin",), {USER_HEADER: "ben", **bearer(TOKENS["admin"])}, PROXY,
                 user="Ann's admin token")


PROXY_OPTIONS = ["--http-proxy-from", f"{PROXY}/32", "--http-proxy-user-header", USER_HEADER,
                 *(f"--http-user-rights={right}-*={right}" for right in RIGHTS)]


def every_route_and_every_caller():
    with lib.directory() as d, lib.programs() as programs:
        tokens = write_tokens(d / "tokens", token_lines())

        def start(name, *args, host="0.0.0.0"):
            reducer = lib.Reducer(d, args, data=d / f"{name}-data", name=name, http_host=host)
            programs.append(reducer)
            return reducer

        closed = start("closed", "--http-token-file", tokens, *PROXY_OPTIONS)
        for caller in [*token_callers(), *proxy_callers()]:
            check_caller(closed, caller)
        both = start("both", "--http-token-file", tokens, "--allow-anonymous")
        for caller in token_callers(reducer_is_open=True):
            check_caller(both, caller)
        secure = start("secure", "--http-token-file", tokens, *PROXY_OPTIONS, *tls_options(d))
        for caller in [*token_callers(), *proxy_callers(), *certificate_callers()]:
            check_caller(secure, caller, tls=client_tls(d, caller.certificate))
        everyone = ("read", "send", "upload", "admin")
        anonymous = start("anonymous", "--allow-anonymous")
        check_caller(anonymous, Caller("everyone", everyone, signed_in_by="none"))
        loopback = start("loopback", host="127.0.0.1")
        check_caller(loopback, Caller("a caller on loopback", everyone, signed_in_by="none"))
        check_caller(loopback, Caller("a token that nobody checks", everyone, bearer(WRONG), signed_in_by="none"))
        for reducer in programs:
            lib.check(reducer.stop() == 0, f"the exit code of {reducer.name}")
            lib.check(not any(token in reducer.text() for token in [*TOKENS.values(), WRONG]), f"{reducer.name} logged a token")


def shell(directory, command):
    subprocess.run(["bash", "-ec", command], cwd=directory, check=True, capture_output=True, text=True)


def sign(d, name, subject, days=365, ca="ca", alternatives="DNS:unused.example"):
    """Makes NAME.pem and NAME.key, signed by the authority `ca`, which it makes if it does not exist yet."""
    if not (d / f"{ca}.pem").exists():
        shell(d, f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {ca}.key -out {ca}.pem -subj /CN={ca}")
    shell(d, f"""
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key -out {name}.csr -subj /CN={subject}
        openssl x509 -req -in {name}.csr -CA {ca}.pem -CAkey {ca}.key -CAcreateserial -days {days} -out {name}.pem \\
            -extfile <(echo subjectAltName={alternatives})""")


def tls_options(d):
    """Makes the certificates of a reducer and of its callers. Returns the reducer's options."""
    sign(d, "reducer", "reducer", alternatives="IP:127.0.0.1,DNS:reducer.example")
    for right in RIGHTS:
        sign(d, right, f"{right}-cert")
    sign(d, "other", "other")
    return ["--http-tls-cert", d / "reducer.pem", "--http-tls-key", d / "reducer.key", "--http-tls-ca", d / "ca.pem"]


def client_tls(d, certificate=""):
    context = ssl.create_default_context(cafile=d / "ca.pem")
    if certificate:
        context.load_cert_chain(d / f"{certificate}.pem", d / f"{certificate}.key")
    return context


def certificate_callers():
    for right in RIGHTS:
        yield Caller(f"{right} by certificate", (right,), certificate=right, signed_in_by="certificate", user=f"{right}-cert")
    yield Caller("a certificate without a rule", ("read",), certificate="other", signed_in_by="certificate", user="unused.example")
    yield Caller("a certificate and a token", ("read",), bearer(TOKENS["read"]), certificate="admin", user="Ann's read token")
    yield Caller("a certificate and a wrong token", None, bearer(WRONG), certificate="admin")


def the_table_has_every_route():
    documented = set(re.findall(r"^## (?:GET|PUT|DELETE) (/api/v1/\S+)", (lib.SOURCE / "docs/api.md").read_text(), re.M))
    tested = {path.split("?")[0] for _, path, _ in ROUTES}
    lib.check(documented and documented <= tested, f"not in the table: {documented - tested}")


def a_loopback_reducer_behind_a_proxy():
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d, PROXY_OPTIONS)
        programs.append(reducer)
        host = {"Host": "profiles.example"}
        user = {**host, USER_HEADER: "admin-ben"}
        lib.check(ask(reducer, "GET", "/api/v1/status", user, PROXY)[0] == 200, "the proxy's user is refused")
        lib.check(ask(reducer, "GET", "/api/v1/status", host, PROXY)[0] == 401, "a proxy's request without a user")
        lib.check(ask(reducer, "GET", "/api/v1/status", user)[0] == 403, "another program may use any host name")
        for header in ("Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"):
            unknown = ask(reducer, "GET", "/api/v1/status", {"Host": "localhost", header: "203.0.113.9"})
            lib.check(unknown[0] == 401, f"a request of an unknown proxy, with {header}: {unknown[0]}")
        upload = ("PUT", "/api/v1/symbols")
        for headers, allowed in (({}, True), ({"Origin": "https://profiles.example", "Sec-Fetch-Site": "same-origin"}, True),
                                 ({"Origin": "https://evil.example"}, False), ({"Origin": "null"}, False),
                                 ({"Sec-Fetch-Site": "cross-site"}, False), ({"Sec-Fetch-Site": "same-site"}, False)):
            status = ask(reducer, *upload, {**user, **headers}, PROXY)[0]
            lib.check(status == (400 if allowed else 403), f"an upload with {headers}: {status}")
        renamed = {USER_HEADER: "admin-ben", "Host": "10.0.0.1:4040", "Origin": "https://profiles.example"}
        lib.check(ask(reducer, *upload, renamed, PROXY)[0] == 403, "the origin is not the host")
        renamed["X-Forwarded-Host"] = "profiles.example"
        lib.check(ask(reducer, *upload, renamed, PROXY)[0] == 400, "the origin is the host that the proxy was asked for")


def changes_are_logged():
    with lib.directory() as d, lib.programs() as programs:
        tokens = write_tokens(d / "tokens", token_lines())
        reducer = lib.Reducer(d, ["--http-token-file", tokens], http_host="0.0.0.0")
        programs.append(reducer)
        for method, right in (("PUT", "upload"), ("DELETE", "admin"), ("PUT", "read")):
            ask(reducer, method, f"/api/v1/symbols?build-id={BUILD_ID}", bearer(TOKENS[right]))
        lines = [line for line in reducer.text().splitlines() if "symbols uploaded" in line or "symbols deleted" in line]
        lib.check(len(lines) == 2, f"one line for each change that was allowed: {lines}")
        for line, right in zip(lines, ("upload", "admin")):
            for part in ('result="', f"build_id={BUILD_ID}", "signed_in_by=token", f'name="Ann\'s {right} token"', "address=127.0.0.1:"):
                lib.check(part in line, f"{part} is not in: {line}")


def metrics_have_a_port_of_their_own():
    with lib.directory() as d, lib.programs() as programs:
        tokens = write_tokens(d / "tokens", token_lines())
        reducer = lib.Reducer(d, ["--http-token-file", tokens, "--metrics-listen", "127.0.0.1:0"], http_host="0.0.0.0")
        programs.append(reducer)
        port = json.loads((d / "reducer.ports").read_text())["metrics"]
        for path, expected in (("/metrics", 200), ("/healthz", 200), ("/readyz", 200), ("/", 404), ("/api/v1/status", 404),
                               ("/api/v1/whoami", 404)):
            status, _, body = ask(reducer, "GET", path, port=port)
            lib.check(status == expected, f"{path} on --metrics-listen: {status} {body}")
        lib.check(ask(reducer, "PUT", "/api/v1/symbols", port=port)[0] in (404, 405), "an upload to --metrics-listen")


def expect_refusal(d, *args, host="0.0.0.0", parts, exit_status=1):
    """Starts a reducer that must not start. Its error is one line with all of `parts`."""
    command = [lib.BIN / "reducer", "--data-dir", d / "refused", "--intake-listen", "127.0.0.1:0", "--http-listen", f"{host}:0", *args]
    result = subprocess.run([str(a) for a in command], capture_output=True, text=True, timeout=60, check=False)
    output = result.stdout + result.stderr
    lib.check(result.returncode == exit_status and len(output.splitlines()) == 1, f"{args}: {result.returncode} {output}")
    for part in parts:
        lib.check(part in output, f"{args}: no {part} in: {output}")
    return output


def what_cannot_be_safe_is_refused_at_start():
    with lib.directory() as d:
        options = ("--http-listen", "--http-token-file", "--http-tls-ca", "--http-proxy-from", "--allow-anonymous")
        expect_refusal(d, parts=options, exit_status=2)
        readable = write_tokens(d / "readable", token_lines(), mode=0o644)
        expect_refusal(d, "--http-token-file", readable, parts=("--http-token-file", str(readable), "chmod"))
        expect_refusal(d, "--http-token-file", readable, host="127.0.0.1", parts=("--http-token-file", "chmod"))
        for bad, part in ((b"a-token-with-a-\x01-in-it read\n", "tokens:1: a token must contain only printable"),
                          (b"a-token-with-a-\x00-in-it read\n", "printable"), (b"a-token-with-\xc3\xa9-in-it read\n", "printable"),
                          (b"short read\n", "16 to 4096"), (b"a-token-without-a-right\n", "TOKEN RIGHT"),
                          (b"a-token-with-a-wrong-right write\n", "tokens:1: a word is not a right"), (b"# only a comment\n", "no token")):
            output = expect_refusal(d, "--http-token-file", write_tokens(d / "tokens", bad), parts=("--http-token-file", part))
            lib.check(output.rstrip("\n").isprintable(), f"control bytes in the message: {output!r}")
        swapped = write_tokens(d / "tokens", b"name-of-16-letters " + TOKENS["read"].encode() + b"\n")
        output = expect_refusal(d, "--http-token-file", swapped, parts=("tokens:1: a word is not a right",))
        lib.check(TOKENS["read"] not in output, f"the token is in the message: {output}")
        expect_refusal(d, "--http-proxy-from", "192.0.2.1", "--http-proxy-user-header", USER_HEADER, host="127.0.0.1",
                       parts=("--http-proxy-from", "127.0.0.1"), exit_status=2)
        expect_refusal(d, "--http-token-file", d / "missing", parts=("--http-token-file", "missing"))


def bad_tls_clients():
    """An expired, a foreign and no certificate, and no TLS. Others are undisturbed."""
    with lib.directory() as d, lib.programs() as programs:
        tokens = write_tokens(d / "tokens", token_lines())
        options = tls_options(d)
        sign(d, "expired", "admin-cert", days=-1)
        sign(d, "foreign", "admin-cert", ca="foreign-ca")
        reducer = lib.Reducer(d, ["--http-token-file", tokens, *PROXY_OPTIONS, *options], http_host="0.0.0.0")
        programs.append(reducer)
        healthy = http.client.HTTPSConnection("127.0.0.1", reducer.http_port, timeout=60, context=client_tls(d, "admin"))

        def check_healthy():
            healthy.request("GET", "/api/v1/status")
            lib.check(healthy.getresponse().read().startswith(b"{"), "the open connection of another client")

        check_healthy()
        for name, alert in (("expired", "EXPIRED"), ("foreign", "UNKNOWN_CA")):
            try:
                ask(reducer, "GET", "/healthz", tls=client_tls(d, name))
                raise lib.Failure(f"the {name} certificate was accepted")
            except OSError as e:
                lib.check(alert in str(e), f"the {name} certificate: {e}")
            check_healthy()
        lib.check(re.search("HTTPS connection refused address=127.0.0.1 .*certificate has expired", reducer.text()), reducer.text())
        status, _, body = ask(reducer, "GET", "/api/v1/status", bearer(TOKENS["admin"]))
        lib.check(status == 400 and b"use https://" in body, f"plain HTTP: {status} {body}")
        check_healthy()
        lib.check(ask(reducer, "GET", "/app.js", tls=client_tls(d))[0] == 200, "the page")
        metrics = ask(reducer, "GET", "/metrics", tls=client_tls(d, "read"))[2].decode()
        lib.check('tributary_tls_certificate_expiry_seconds{port="http"} 1' in metrics, "the time at which the certificate expires")
        lib.check('tributary_web_refusals_total{reason="tls"} 3' in metrics, "the counter of refusals")
        check = [lib.BIN / "reducer", "--health-check", "--http-listen", f"0.0.0.0:{reducer.http_port}", "--allow-anonymous"]
        healthy_text = subprocess.run([*check, *options], capture_output=True, text=True, timeout=60, check=False).stdout
        lib.check(healthy_text == "reducer is healthy\n", f"--health-check over TLS: {healthy_text}")
        # A new certificate, and one that cannot be used.
        sign(d, "reducer", "reducer", ca="foreign-ca", alternatives="IP:127.0.0.1")
        reducer.signal(signal.SIGHUP)
        trusting = ssl.create_default_context(cafile=d / "foreign-ca.pem")
        lib.wait_for("the new certificate", lambda: accepts(reducer, trusting), 30)
        shell(d, "cp ca.key reducer.key")
        reducer.signal(signal.SIGHUP)
        lib.wait_for("the refusal", lambda: "reload failed" in reducer.text(), 30)
        lib.check(accepts(reducer, trusting), "the old certificate stays in use")
        # The certificates of its client were checked with the old files.
        try:
            check_healthy()
            raise lib.Failure("a connection is still open after a change of the TLS files")
        except (OSError, http.client.HTTPException):
            pass
        lib.check(reducer.stop() == 0, "the exit code")


def accepts(reducer, tls):
    with contextlib.suppress(OSError):
        return ask(reducer, "GET", "/healthz", tls=tls)[0] == 200
    return False


def tokens_change_while_the_reducer_runs():
    with lib.directory() as d, lib.programs() as programs:
        tokens = write_tokens(d / "tokens", token_lines(("read",)))
        reducer = lib.Reducer(d, ["--http-token-file", tokens], http_host="0.0.0.0")
        programs.append(reducer)

        def status(right):
            return ask(reducer, "GET", "/api/v1/whoami", bearer(TOKENS[right]))[0]

        lib.check((status("read"), status("admin")) == (200, 401), "before the change")
        # Files that cannot be used: the old tokens stay valid.
        for text, mode in ((token_lines(("admin",)), 0o644), (b"bad-\x02-token-of-16-bytes read\n", 0o600), ("", 0o600)):
            before = reducer.text().count("reload")
            write_tokens(tokens, text, mode)
            reducer.signal(signal.SIGHUP)
            lib.wait_for("the refusal in the log", lambda: reducer.text().count("reload") > before, 30)
            lib.check((status("read"), status("admin")) == (200, 401), f"after a file that cannot be used:\n{reducer.text()}")
        write_tokens(tokens, token_lines(("admin",)))
        reducer.signal(signal.SIGHUP)
        lib.wait_for("the new token", lambda: status("admin") == 200, 30)
        lib.check(status("read") == 401, "the old token is still valid")
        # Also without a signal.
        write_tokens(tokens, token_lines(("read",)))
        lib.wait_for("the newest token", lambda: status("read") == 200, 30)
        lib.check(reducer.stop() == 0, "the exit code")


if __name__ == "__main__":
    lib.main(the_table_has_every_route, every_route_and_every_caller, a_loopback_reducer_behind_a_proxy, changes_are_logged,
             metrics_have_a_port_of_their_own, what_cannot_be_safe_is_refused_at_start, bad_tls_clients, tokens_change_while_the_reducer_runs)
