"""Tests the security of the intake with the real programs.

The setup uses the commands of docs/security.md. Every wrong credential is refused with a counted reason and a log line
that names it. Thousands of idle and slow connections do not disturb other clients.
"""

import contextlib
import http.server
import os
import re
import resource
import socket
import ssl
import struct
import subprocess
import threading

import lib

NODE = "node-1"
IDLE, SLOW = 10_000, 100
FLAGS = ["--batch-interval", "1s", "--node-id"]


def refusals(reducer, reason):
    pattern = rf'^tributary_intake_refusals_total{{reason="{reason}"}} (\d+)'
    return int(re.search(pattern, reducer.get("/metrics").decode(), re.M).group(1))


def shell(directory, command):
    subprocess.run(["bash", "-ec", command], cwd=directory, check=True, capture_output=True, text=True)


def sign(directory, name, subject, days=365, ca="ca"):
    """Makes a certificate and a key for `name`, signed by an authority in `directory`."""
    shell(directory, f"""
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key -out {name}.csr -subj /CN={subject}
        openssl x509 -req -in {name}.csr -CA {ca}.pem -CAkey {ca}.key -CAcreateserial -days {days} -out {name}.pem""")


def documented_commands():
    page = (lib.SOURCE / "docs/security.md").read_text()
    commands = re.search(r"```\n(.*?)```", page, re.S).group(1).strip().splitlines()
    lib.check(len(commands) == 5 and commands[4].startswith("reducer "), f"docs/security.md has other commands now: {commands}")
    return commands


@contextlib.contextmanager
def busy_machine():
    """Runs a load to sample, at the lowest priority.

    An idle machine gives only a few samples a second, from the test itself.
    """
    with lib.directory() as d:
        load = lib.Program("load", ["nice", "-n", "19", lib.BIN / "truth", 3600], d)
        try:
            yield
        finally:
            load.kill()


@contextlib.contextmanager
def fleet():
    """Yields a directory with the files of docs/security.md and a node's certificate, and a reducer that needs them."""
    with busy_machine(), lib.directory() as d, lib.programs() as programs:
        for command in documented_commands()[:4]:
            shell(d, command)
        sign(d, "node", NODE)
        reducer = lib.Reducer(d, ["--tls-cert", d / "reducer.pem", "--tls-key", d / "reducer.key", "--tls-ca", d / "ca.pem",
                                  "--intake-token-file", d / "token"])
        programs.append(reducer)
        yield d, programs, reducer


def collector(d, programs, reducer, name="collector", node=NODE, cert="node", token="token", ca="ca", server="reducer.example"):
    args = [*FLAGS, node, "--tls-ca", d / f"{ca}.pem", "--tls-server-name", server]
    args += ["--tls-cert", d / f"{cert}.pem", "--tls-key", d / f"{cert}.key"] if cert else []
    args += ["--intake-token-file", d / token] if token else []
    program = lib.Collector(d, reducer.intake_port, rate=199, args=args, name=name)
    programs.append(program)
    return program


def stored(reducer):
    return reducer.status()["total"]["stored"]


def wait_for_samples(reducer, more=100):
    before = stored(reducer)
    lib.wait_for("samples of the healthy node", lambda: stored(reducer) >= before + more, 60)


def certificates_and_tokens():
    with fleet() as (d, programs, reducer):
        healthy = collector(d, programs, reducer)
        wait_for_samples(reducer)
        lib.check([n["id"] for n in reducer.status()["nodes"]] == [NODE], "the node's id")
        # Make a new token for later connections.
        (d / "token").rename(d / "old-token")
        shell(d, "umask 077; openssl rand -hex 32 > token")
        wait_for_samples(reducer)
        lib.check(healthy.stop() == 0, "the collector's exit code")
        lib.check_law(reducer.status(), lost=0)
        token = (d / "token").read_text().strip()
        lib.check(token not in reducer.text() and token not in healthy.text(), "a token was logged")
        lib.check(reducer.stop() == 0, "the reducer's exit code")


def bad_credentials_are_refused():
    with fleet() as (d, programs, reducer):
        shell(d, "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout other.key -out other.pem -subj /CN=other")
        shell(d, "umask 077; openssl rand -hex 32 > wrong-token")
        sign(d, "foreign", NODE, ca="other")
        sign(d, "expired", NODE, days=-1)
        healthy = collector(d, programs, reducer)
        wait_for_samples(reducer)
        cases = [
            ("bad_certificate", dict(cert="expired"), "certificate has expired"),
            ("bad_certificate", dict(cert="foreign"), "unable to get local issuer certificate"),
            ("bad_certificate", dict(cert=None), "sent no certificate"),
            ("forged_identity", dict(node="node-2"), f"the certificate is for {NODE}"),
            ("bad_token", dict(token="wrong-token"), "the token is not known"),
            ("bad_token", dict(token=None), "no token was sent"),
            ("tls_failed", dict(ca="other"), "unknown ca"),
            ("tls_failed", dict(server="another.example"), "bad certificate"),
        ]
        for number, (reason, how, message) in enumerate(cases):
            before = refusals(reducer, reason)
            refused = collector(d, programs, reducer, name=f"refused-{number}", **how)
            lib.wait_for(f"{reason} {how}", lambda: refusals(reducer, reason) > before, 30)
            lib.check(refused.running(), f"a refused collector goes on: {refused.text()}")
            refused.kill()
            if number == 0 or cases[number - 1][0] != reason:  # the reducer logs one line per reason in 10 s
                lib.check(re.search(rf"intake refused .*reason={reason} .*{message}", reducer.text()),
                          f"no log line for {reason} {how}:\n{reducer.text()}")
            print(f"  {reason}: {how}")
        before = refusals(reducer, "tls_mismatch")
        plain = lib.Collector(d, reducer.intake_port, rate=199, args=[*FLAGS, NODE], name="plain")
        programs.append(plain)
        lib.wait_for("tls_mismatch", lambda: refusals(reducer, "tls_mismatch") > before, 30)
        lib.wait_for("the collector to say why", lambda: "start the collector with --tls" in plain.text(), 30)
        plain.kill()
        wait_for_samples(reducer)
        lib.check(healthy.stop() == 0, "the collector's exit code")
        status = reducer.status()
        lib.check([n["id"] for n in status["nodes"]] == [NODE], f"somebody got in: {status['nodes']}")
        lib.check_law(status, lost=0)


def connections_allowed(wanted):
    """Raises this process's limit on descriptors, and the reducer's hard limit, which the reducer inherits.

    Returns how many connections of `wanted` the limit allows.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < wanted + 4096 and os.geteuid() == 0:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted + 4096, wanted + 4096))
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 2048)


def slow_connection(d, port, number):
    """Opens a connection and sends half a TLS hello, or, within TLS, the beginning of the largest possible Hello."""
    connection = socket.create_connection(("127.0.0.1", port))
    if number % 2:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        return connection
    context = ssl.create_default_context(cafile=d / "ca.pem")
    context.load_cert_chain(d / "node.pem", d / "node.key")
    tls = context.wrap_socket(connection, server_hostname="reducer.example")
    tls.sendall(struct.pack("<IBBBBQII", 0x59425254, 1, 1, 0, 0, 0, 65_536, 65_536) + b"\0" * 8)
    return tls


def idle_and_slow_connections():
    count = connections_allowed(IDLE + SLOW) - SLOW
    with fleet() as (d, programs, reducer), contextlib.ExitStack() as open_connections:
        def open_idle(number):
            for _ in range(number):
                open_connections.enter_context(socket.create_connection(("127.0.0.1", reducer.intake_port)))

        first = collector(d, programs, reducer, name="first")
        wait_for_samples(reducer)
        open_idle(count // 2)
        wait_for_samples(reducer)
        lib.check("disconnected" not in first.text(), f"it lost its connection:\n{first.text()}")
        lib.check(first.stop() == 0, "the first collector's exit code")
        # Start a collector after these connections, while more are being opened: its first attempt must succeed.
        healthy = collector(d, programs, reducer)
        open_idle(count - count // 2)
        slow = [open_connections.enter_context(slow_connection(d, reducer.intake_port, i)) for i in range(SLOW)]
        wait_for_samples(reducer, more=500)
        lib.check("intake connected" in healthy.text() and "intake not connected" not in healthy.text(),
                  f"it did not get in at once:\n{healthy.text()}")
        print(f"  {count} idle and {len(slow)} slow connections; resident: "
              f"{reducer.metric('tributary_reducer_resident_bytes') / 1e6:.0f} MB")

        # Send one more byte on each, again and again, until the reducer has closed all of them.
        def closed():
            for connection in slow:
                with contextlib.suppress(OSError, ssl.SSLError):
                    connection.send(b"\0")
            return refusals(reducer, "timeout") + refusals(reducer, "tls_failed") >= count + SLOW

        lib.wait_for("all of them to be closed", closed, 120, step_s=0.5)
        wait_for_samples(reducer)
        lib.check("disconnected" not in healthy.text(), f"it lost its connection:\n{healthy.text()}")
        lib.check(healthy.stop() == 0, "the collector's exit code")
        lib.check_law(reducer.status(), lost=0)
        print(f"  refused: timeout {refusals(reducer, 'timeout')}, tls_failed {refusals(reducer, 'tls_failed')}; "
              f"stored {stored(reducer)}")


def system_authorities():
    """Tests that clients trust the file in SSL_CERT_FILE: only this file has the authority of the HTTPS server."""
    class Refuses(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(418)

        def log_message(self, *_):
            pass

    with lib.directory() as d:
        shell(d, documented_commands()[0])
        shell(d, "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout web.key -out web.csr -subj /CN=localhost")
        shell(d, "openssl x509 -req -in web.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out web.pem -extfile <(echo subjectAltName=DNS:localhost)")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(d / "web.pem", d / "web.key")
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuses) as server:
            server.socket = context.wrap_socket(server.socket, server_side=True)
            threading.Thread(target=server.serve_forever, daemon=True).start()

            def status(**environment):
                command = [lib.BIN / "tributary", "status", "--server", f"https://localhost:{server.server_port}"]
                return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60,
                                      env={**os.environ, **environment}).stderr

            known, unknown = status(SSL_CERT_FILE=str(d / "ca.pem")), status()
            server.shutdown()
        lib.check("HTTP 418" in known, f"SSL_CERT_FILE is not used: {known}")
        lib.check("certificate" in unknown and "HTTP 418" not in unknown, f"any certificate will do: {unknown}")


if __name__ == "__main__":
    lib.main(certificates_and_tokens, bad_credentials_are_refused, system_authorities, idle_and_slow_connections)
