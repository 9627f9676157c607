"""The sending half of HTTP/2 without TLS, as far as gRPC's unary calls need it.

It does not read header fields. A call has succeeded if a message came back: the answer to a failed call has none.
"""

import collections
import socket
import struct

from h2 import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, FRAME_BYTES_MAX, GOAWAY, HEADERS, PING, PREFACE,
                RST_STREAM, SETTINGS, WINDOW_UPDATE)

INITIAL_WINDOW, FRAME_BYTES = 65535, 16384  # until the other end sets others


def _field(name, value):
    """Encodes a header field without indexing (RFC 7541, 6.2.2)."""
    def text(data):
        size = len(data)
        return (bytes([size]) if size < 127 else bytes([127, (size - 127) & 0x7F])) + data
    return b"\x00" + text(name) + text(value)


class GrpcClient:
    """One connection for unary calls of one method, one after the other."""

    def __init__(self, address, method):
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._fields = b"".join(_field(name, value) for name, value in (
            (b":method", b"POST"), (b":scheme", b"http"), (b":path", method.encode()), (b":authority", address.encode()),
            (b"content-type", b"application/grpc"), (b"te", b"trailers")))
        self._stream = -1
        self._window = INITIAL_WINDOW  # of the connection
        self._stream_window = self._new_window = INITIAL_WINDOW
        self._socket.sendall(PREFACE)
        self._send(SETTINGS, 0, 0)

    def close(self):
        self._socket.close()

    def call(self, compressed, message):
        """Sends a request and waits for the answer. Returns whether the call succeeded."""
        self._stream += 2
        self._stream_window = self._new_window
        more = _field(b"grpc-encoding", b"gzip") if compressed else b""
        self._send(HEADERS, END_HEADERS, self._stream, self._fields + more)
        left = memoryview(struct.pack(">?I", compressed, len(message)) + message)
        answered = collections.Counter()
        while left:
            size = min(len(left), FRAME_BYTES, self._window, self._stream_window)
            if size <= 0:
                if self._read(answered):
                    return False  # an answer before the end of the request
                continue
            self._window -= size
            self._stream_window -= size
            self._send(DATA, END_STREAM if size == len(left) else 0, self._stream, left[:size])
            left = left[size:]
        while not self._read(answered):
            pass
        return answered[DATA] >= 5

    def _send(self, kind, flags, stream, payload=b""):
        self._socket.sendall(struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream))
        if len(payload):
            self._socket.sendall(payload)

    def _take(self, size):
        parts = []
        while size > 0:
            part = self._socket.recv(size)
            if not part:
                raise ConnectionError("the connection was closed")
            size -= len(part)
            parts.append(part)
        return b"".join(parts)

    def _read(self, answered):
        """Reads a frame. Adds the bytes of the answer by the frames' kind. Returns whether the stream has ended."""
        head = self._take(9)
        size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
        if size > FRAME_BYTES_MAX:
            raise ConnectionError("a frame over the limit")
        payload = self._take(size)
        if kind == SETTINGS and not flags & ACK:
            for number, value in struct.iter_unpack(">HI", payload):
                if number == 4:
                    self._stream_window += value - self._new_window
                    self._new_window = value
            self._send(SETTINGS, ACK, 0)
        elif kind == PING and not flags & ACK:
            self._send(PING, ACK, 0, payload)
        elif kind == WINDOW_UPDATE:
            more = int.from_bytes(payload, "big") & 0x7FFFFFFF
            if stream == 0:
                self._window += more
            elif stream == self._stream:
                self._stream_window += more
        elif kind == GOAWAY:
            raise ConnectionError("the other end ends the connection")
        elif stream == self._stream and kind in (HEADERS, DATA, CONTINUATION):
            answered[kind] += size
            return bool(flags & END_STREAM)
        return kind == RST_STREAM and stream == self._stream
