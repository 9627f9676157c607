"""A receiver of OTLP over gRPC or HTTP that keeps each request as it came. It decodes nothing while others send."""

import dataclasses
import gzip
import http.server
import threading

import h2
import otlp_sink


@dataclasses.dataclass
class Request:
    compressed: bool
    body: bytes

    def message(self):
        return gzip.decompress(self.body) if self.compressed else self.body

    def samples(self):
        """Counts the samples of an ExportProfilesServiceRequest: their time stamps, or else their values."""
        only = otlp_sink.fields
        return sum(_count(sample)
                   for n, resource in only(self.message()) if n == 1
                   for n2, scope in only(resource) if n2 == 2
                   for n3, profile in only(scope) if n3 == 2
                   for n4, sample in only(profile) if n4 == 2)


def _count(sample):
    times = values = 0
    for number, value in otlp_sink.fields(sample):
        if number == 5:
            times += len(value) // 8
        elif number == 4:
            values += sum(otlp_sink._ints(value))
    return times or values


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            body = b"".join(parts)
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.take(self.headers.get("Content-Encoding") == "gzip", body)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class ExportSink:
    """with ExportSink("grpc") as sink: …send to sink.address…; sink.requests"""

    def __init__(self, way):
        self.way = way
        self.requests = []
        self.arrived = threading.Condition()

    def _take(self, compressed, body):
        with self.arrived:
            self.requests.append(Request(compressed, body))
            self.arrived.notify_all()

    def wait_for(self, count, timeout_s=60):
        """Waits until this many requests have come. Returns whether they have."""
        with self.arrived:
            return self.arrived.wait_for(lambda: len(self.requests) >= count, timeout_s)

    def __enter__(self):
        if self.way == "grpc":
            self._server = h2.GrpcSink(self._take)
            self.address = self._server.address
        else:
            self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
            self._server.daemon_threads = True
            self._server.take = self._take
            self.address = "127.0.0.1:%d" % self._server.server_address[1]
            threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        if self.way == "grpc":
            self._server.close()
        else:
            self._server.shutdown()
            self._server.server_close()
