"""The receiving half of HTTP/2 without TLS, as far as gRPC's unary calls need it.

It does not read header fields: it accepts every call.
"""

import socket
import struct
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED = 0x1, 0x1, 0x4, 0x8
FRAME_BYTES_MAX = 1 << 20
MESSAGE_BYTES_MAX = 64 << 20


def _field(name, value):
    """Encodes a header field without indexing (RFC 7541, 6.2.2)."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


ANSWER_HEADERS = b"\x88" + _field(b"content-type", b"application/grpc")  # 0x88: ":status 200" of the static table
ANSWER_TRAILERS = _field(b"grpc-status", b"0")
EMPTY_MESSAGE = b"\x00" + struct.pack(">I", 0)


class GrpcSink:
    """Accepts connections on a port of 127.0.0.1 and answers each call with an empty message.

    Passes each request to `take(compressed: bool, message: bytes)` on the connection's thread. `bytes_received` counts
    all bytes that the sockets received.
    """

    def __init__(self, take):
        self._take = take
        self.bytes_received = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection:
            try:
                _Connection(self, connection).run(self._take)
            except (ConnectionError, EOFError):
                pass  # the other end closed the connection

    def read(self, connection, size):
        parts = []
        while size > 0:
            part = connection.recv(min(size, 1 << 16))
            if not part:
                raise EOFError
            self.bytes_received += len(part)
            size -= len(part)
            parts.append(part)
        return b"".join(parts)


class _Connection:
    def __init__(self, sink, connection):
        self.sink, self.socket = sink, connection
        self.requests = {}  # stream -> bytes so far

    def send(self, kind, flags, stream, payload=b""):
        self.socket.sendall(struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload)

    def run(self, take):
        if self.sink.read(self.socket, len(PREFACE)) != PREFACE:
            return
        # Setting 4: a stream's window; 5: a frame's size. Only WINDOW_UPDATE can change the connection's own window.
        self.send(SETTINGS, 0, 0, struct.pack(">HIHI", 4, 0x7FFFFFFF, 5, FRAME_BYTES_MAX))
        self.send(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0x7FFFFFFF - 65535))
        while True:
            head = self.sink.read(self.socket, 9)
            size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
            if size > FRAME_BYTES_MAX:
                return
            payload = self.sink.read(self.socket, size)
            if kind == SETTINGS and not flags & ACK:
                self.send(SETTINGS, ACK, 0)
            elif kind == PING and not flags & ACK:
                self.send(PING, ACK, 0, payload)
            elif kind == GOAWAY:
                return
            elif kind == RST_STREAM:
                self.requests.pop(stream, None)
            elif kind == DATA:
                self._data(stream, flags, payload, take)

    def _data(self, stream, flags, payload, take):
        if payload:
            self.send(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload)))
        if flags & PADDED:
            payload = payload[1:len(payload) - payload[0]]
        request = self.requests.setdefault(stream, bytearray())
        request += payload
        if len(request) > MESSAGE_BYTES_MAX:
            raise ConnectionError("a request over the limit")
        if flags & END_STREAM:
            del self.requests[stream]
            if len(request) >= 5:
                take(request[0] == 1, bytes(request[5:]))
            self.send(HEADERS, END_HEADERS, stream, ANSWER_HEADERS)
            self.send(DATA, 0, stream, EMPTY_MESSAGE)
            self.send(HEADERS, END_HEADERS | END_STREAM, stream, ANSWER_TRAILERS)
