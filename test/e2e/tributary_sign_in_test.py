"""Tests how tributary signs in to a real reducer: by token and by certificate, over TLS. Needs only a reducer."""

import os
import pathlib
import subprocess
import tempfile

import lib
import sign_in_test as server

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("TRIBUTARY_")}


def tributary(*args, token=None):
    """Returns the exit code, and standard output and standard error together."""
    env = ENVIRONMENT if token is None else {**ENVIRONMENT, "TRIBUTARY_TOKEN": token}
    result = subprocess.run([lib.BIN / "tributary", *args], env=env, capture_output=True, text=True, timeout=60, check=False)
    return result.returncode, result.stdout + result.stderr


def callers(d, url):
    """Yields arguments of tributary, TRIBUTARY_TOKEN, the exit code, and words that the output must contain."""
    ca = ["--server", url, "--tls-ca", d / "ca.pem"]

    def certificate(name):
        return ["--tls-cert", d / f"{name}.pem", "--tls-key", d / f"{name}.key"]

    def file(name):
        return ["--token-file", d / f"{name}.token"]

    push = ["symbols", "push", lib.BIN / "truth"]
    yield ["status", *ca, *file("read")], None, 0, "reducer "
    yield ["status", *ca], server.TOKENS["read"], 0, "reducer "
    yield ["status", *ca, *certificate("read")], None, 0, "reducer "
    yield ["status", *ca, *certificate("expired"), *file("read")], None, 1, "the TLS connection failed ("
    yield ["status", *ca, *certificate("read"), *file("wrong")], None, 1, "HTTP 401: the token is not known"
    yield ["status", *ca], None, 1, "sign in with --token-file FILE or TRIBUTARY_TOKEN"
    yield ["status", "--server", url, *file("read")], None, 1, "the server's certificate is not trusted"
    yield ["status", "--server", url.replace("https:", "http:"), *file("read")], None, 2, "HTTP 400: "
    yield ["status", *ca, *file("send")], None, 1, "HTTP 403: this needs the right 'read'"
    yield [*push, *ca, *file("read")], None, 1, "HTTP 403: this needs the right 'upload'"
    yield [*push, *ca, *certificate("upload")], None, 0, "1 stored"
    yield ["symbols", "rm", "00aa11bb", *ca, *file("read")], None, 1, "no symbol table"
    yield ["status", *ca, *file("open")], None, 2, "chmod o-rwx"
    yield ["status", *ca, *file("control")], None, 2, "printable ASCII"
    yield ["status", *ca, *file("read")], server.TOKENS["read"], 2, "use only one of them"
    yield ["status", *ca], server.TOKENS["read"] + "\x07", 2, "TRIBUTARY_TOKEN: "


def tributary_signs_in():
    with tempfile.TemporaryDirectory(prefix="tributary-e2e-") as path, lib.programs() as programs:
        d = pathlib.Path(path)
        options = server.tls_options(d)
        server.sign(d, "expired", "read-cert", days=-1)
        for right, token in server.TOKENS.items():
            server.write_tokens(d / f"{right}.token", f"# {right}\n{token}\n")
        server.write_tokens(d / "wrong.token", server.WRONG)
        server.write_tokens(d / "open.token", server.TOKENS["read"], mode=0o644)
        server.write_tokens(d / "control.token", server.TOKENS["read"] + "\x07\n")
        tokens = server.write_tokens(d / "tokens", server.token_lines())
        reducer = lib.Reducer(d, http_host="0.0.0.0", args=["--http-token-file", tokens, *options, "--http-user-rights", "read-cert=read",
                                                            "--http-user-rights", "upload-cert=read,upload"])
        programs.append(reducer)
        for args, token, expected, words in callers(d, f"https://127.0.0.1:{reducer.http_port}"):
            code, output = tributary(*args, token=token)
            lib.check(code == expected and words in output, f"{args}: {code}: {output}")
            lib.check(not any(secret in output for secret in [*server.TOKENS.values(), server.WRONG]), f"{args} prints a token: {output}")
        lib.check(reducer.stop() == 0, "the reducer's exit code")


if __name__ == "__main__":
    lib.main(tributary_signs_in)
