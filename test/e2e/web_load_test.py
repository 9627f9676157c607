"""Tests the reducer's HTTP server with clients that send half a request, read slowly, or ask again for the same file.

Needs only a reducer. It fails on reducers whose HTTP connections need a thread each.
"""

import gzip
import socket
import urllib.error
import urllib.request

import lib

HALF_SENT = 300
SLOW_READERS = 32


def connect(reducer, first_bytes):
    client = socket.socket()
    # A small receive buffer: the reducer cannot pass a whole file to the kernel.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", reducer.http_port))
    client.sendall(first_bytes)
    return client


def request(reducer, path, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(reducer.url + path, headers=headers), timeout=10) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.headers, e.read()


def half_sent_requests_and_slow_readers():
    with lib.directory() as d:
        reducer = lib.Reducer(d)
        clients = [connect(reducer, b"GET /healthz HT") for _ in range(HALF_SENT)]
        slow = [connect(reducer, b"GET /app.js HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(SLOW_READERS)]
        for client in slow:
            lib.check(client.recv(1) == b"H", "a slow reader got no answer")
        for path in ("/healthz", "/readyz", "/metrics", "/api/v1/top"):
            status = request(reducer, path)[0]
            lib.check(status == 200, f"{path} answers {status} beside {HALF_SENT} half-sent requests")
        lib.check(reducer.stop() == 0, "the reducer's exit code")
        for client in clients + slow:
            client.close()


def compression_and_tags():
    with lib.directory() as d:
        reducer = lib.Reducer(d)
        try:
            status, headers, plain = request(reducer, "/app.js")
            lib.check(status == 200 and headers["ETag"], f"app.js has no ETag: {status} {headers}")
            lib.check(request(reducer, "/app.js", If_None_Match=headers["ETag"])[0] == 304, "the same ETag is not answered with 304")
            _, headers, packed = request(reducer, "/app.js", Accept_Encoding="gzip")
            lib.check(headers["Content-Encoding"] == "gzip" and gzip.decompress(packed) == plain, "app.js is not compressed")
            _, headers, packed = request(reducer, "/metrics", Accept_Encoding="gzip")
            lib.check(headers["Content-Encoding"] == "gzip" and b"tributary_" in gzip.decompress(packed), "/metrics is not compressed")
        finally:
            reducer.stop()


if __name__ == "__main__":
    lib.main(half_sent_requests_and_slow_readers, compression_and_tags)
