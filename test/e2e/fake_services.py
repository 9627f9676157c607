"""Fake services that a node queries about itself: a cloud's instance service and Docker's API, correct or hostile."""

import contextlib
import http.server
import json
import os
import socketserver
import threading
import time

INSTANCE = {
    "PUT /latest/api/token": "AQAEAtoken==",
    "GET /latest/dynamic/instance-identity/document": json.dumps({
        "accountId": "123456789012", "availabilityZone": "eu-west-1b", "imageId": "ami-5fb8c835", "instanceId": "i-1234567890abcdef0",
        "instanceType": "m5.large", "region": "eu-west-1"}),
    "GET /computeMetadata/v1/project/project-id": "shop-prod",
    "GET /computeMetadata/v1/instance/id": "4520031799277581759",
    "GET /computeMetadata/v1/instance/zone": "projects/123456/zones/europe-west1-b",
    "GET /computeMetadata/v1/instance/machine-type": "projects/123456/machineTypes/e2-standard-4",
    "GET /computeMetadata/v1/instance/image": "projects/cos-cloud/global/images/cos-113",
    "GET /computeMetadata/v1/instance/attributes/cluster-name": "shop",
    "GET /metadata/instance/compute?api-version=2020-09-01&format=json": json.dumps({
        "location": "westeurope", "subscriptionId": "8d10da13", "vmId": "02aab8a4", "vmSize": "Standard_D4s_v3", "zone": "2",
        "resourceId": "/subscriptions/8d10da13/vm", "storageProfile": {"imageReference": {"id": "", "publisher": "Debian",
                                                                                         "offer": "debian-12", "sku": "12", "version": "7"}}}),
}

# The header that each service requires. Without it the service refuses the request.
REQUIRED = {"/latest/api": ("x-aws-ec2-metadata-token-ttl-seconds", None), "/latest/dynamic": ("x-aws-ec2-metadata-token", "AQAEAtoken=="),
            "/computeMetadata": ("metadata-flavor", "Google"), "/metadata": ("metadata", "true")}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self):  # a Unix socket has no address
        return "peer"

    def log_message(self, *_):
        pass

    def answer(self, status, body, headers=(), chunked=False):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header(*(("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(body)))))
        self.end_headers()
        if chunked:
            for i in range(0, len(body), 100):
                piece = body[i:i + 100]
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            body = b"0\r\n\r\n"
        self.wfile.write(body)

    def handle_any(self):
        self.server.requests.append(f"{self.command} {self.path}")
        with contextlib.suppress(OSError):
            self.server.serve(self)
        self.close_connection = True

    do_GET = do_PUT = handle_any


class TcpServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    server_name, server_port = "docker", 0


@contextlib.contextmanager
def serving(serve, unix_path=None):
    """`serve(handler)` answers each request. The server has `requests`, and `url` unless it uses a Unix socket."""
    server = UnixServer(str(unix_path), Handler) if unix_path else TcpServer(("127.0.0.1", 0), Handler)
    server.serve, server.requests = serve, []
    if not unix_path:
        server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        if unix_path:
            os.unlink(unix_path)


def instance_service(handler):
    for prefix, (name, value) in REQUIRED.items():
        if handler.path.startswith(prefix):
            header = handler.headers.get(name)
            if header is None or (value is not None and header != value):
                return handler.answer(401, b"")
    body = INSTANCE.get(f"{handler.command} {handler.path}")
    if body is None:
        return handler.answer(404, b"not found")
    return handler.answer(200, body.encode(), [("Metadata-Flavor", "Google")])


def docker_api(containers, images):
    """`containers`: id → (name, image reference, image id, labels); `images`: id → repository digests."""

    def serve(handler):
        parts = handler.path.strip("/").split("/")
        if handler.path == "/containers/json":
            return handler.answer(200, json.dumps([{"Id": i} for i in containers]).encode(), chunked=True)
        if parts[0] == "containers" and parts[1] in containers:
            name, image, image_id, labels = containers[parts[1]]
            document = {"Id": parts[1], "Name": f"/{name}", "Image": image_id, "State": {"Running": True},
                        "Config": {"Image": image, "Labels": labels, "Env": ["SECRET=geheim"]}}
            return handler.answer(200, json.dumps(document).encode(), chunked=True)
        if parts[0] == "images" and parts[1] in images:
            return handler.answer(200, json.dumps({"Id": parts[1], "RepoTags": [], "RepoDigests": images[parts[1]]}).encode())
        return handler.answer(404, b'{"message":"No such thing"}')

    return serve


def hang(handler):
    time.sleep(300)


def drip(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        handler.wfile.write(b"x")
        handler.wfile.flush()
        time.sleep(0.05)


def html(handler):
    handler.answer(200, b"<html><body>Please log in</body></html>", [("Content-Type", "text/html")])


def not_found(handler):
    handler.answer(404, b"no")


def redirect(handler):
    handler.answer(302, b"", [("Location", f"http://127.0.0.1:9{handler.path}")])


def endless(handler):
    """Sends a gigabyte if the client reads it."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
    for _ in range(1024):
        handler.wfile.write(b"x" * (1 << 20))


def endless_without_length(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(1024):
        handler.wfile.write(b"x" * (1 << 20))


def closes_in_mid_body(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"Id\":\"")


def control_bytes(handler):
    body = json.dumps({"instanceId": "i-1\x1b[2J\n", "region": "eu\x00", "vmId": "\x07", "Id": "\x1b]0;x\x07"}).encode()
    handler.answer(200, body, [("Metadata-Flavor", "Google")])


HOSTILE = [hang, drip, html, not_found, redirect, endless, endless_without_length, closes_in_mid_body, control_bytes]
