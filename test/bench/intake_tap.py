"""A relay between one collector and its reducer. It counts the traffic of the intake connection by message type."""

import collections
import socket
import struct
import threading

# docs/intake-protocol.md. The header's fields: magic, version, type, flags, channel, sequence, raw length, stored
# length, checksum.
HEADER = struct.Struct("<4sBBBBQIIQ")
NAMES = {1: "hello", 2: "welcome", 3: "definitions", 4: "batch", 5: "ack", 6: "need dictionary", 7: "need symbols", 8: "symbols",
         9: "heartbeat", 10: "goodbye"}


class Counts:
    """The number of frames in one direction and their bytes including headers, by type."""

    def __init__(self):
        self.frames, self.bytes, self.raw_bytes = collections.Counter(), collections.Counter(), collections.Counter()

    def copy(self):
        out = Counts()
        out.frames, out.bytes, out.raw_bytes = self.frames.copy(), self.bytes.copy(), self.raw_bytes.copy()
        return out


class _Cutter:
    """Follows one direction of one connection from frame to frame."""

    def __init__(self, counts):
        self._counts, self._head, self._left = counts, b"", 0

    def feed(self, data):
        """Returns the names of the messages that end in `data`."""
        ended, at = [], 0
        while at < len(data):
            if not self._left:
                part = data[at:at + HEADER.size - len(self._head)]
                self._head += part
                at += len(part)
                if len(self._head) < HEADER.size:
                    break
                magic, _, kind, _, _, _, raw, self._left, _ = HEADER.unpack(self._head)
                if magic != b"TRBY":
                    raise ValueError("not a frame")
                self._name, self._head = NAMES.get(kind, str(kind)), b""
                self._counts.frames[self._name] += 1
                self._counts.bytes[self._name] += HEADER.size
                self._counts.raw_bytes[self._name] += HEADER.size + raw
            part = min(self._left, len(data) - at)
            self._counts.bytes[self._name] += part
            self._left -= part
            at += part
            if not self._left:
                ended.append(self._name)
        return ended


class IntakeTap:
    """with IntakeTap(reducer_port, record=None) as tap: …the collector connects to tap.port…; tap.snapshot().

    The tap writes the bytes that the collector sends to the file `record`, connection after connection."""

    def __init__(self, reducer_port, record=None):
        self.lock = threading.Lock()
        self.sent, self.answered = Counts(), Counts()
        self.connections = self.acks = 0
        self.acknowledged_bytes = 0  # bytes sent up to the last stored batch, without symbol tables
        self._bytes_to_batch = 0
        self._reducer_port = reducer_port
        self._record = open(record, "wb") if record else None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()
        if self._record:
            self._record.flush()

    def snapshot(self):
        """Returns copies of (sent, answered)."""
        with self.lock:
            return self.sent.copy(), self.answered.copy()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            server = socket.create_connection(("127.0.0.1", self._reducer_port))
            with self.lock:
                self.connections += 1
            threading.Thread(target=self._pump, args=(client, server, self.sent, self._record), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, self.answered, None), daemon=True).start()

    def _note(self, ended, counts):
        if "batch" in ended:
            self._bytes_to_batch = sum(counts.bytes.values()) - counts.bytes["symbols"]
        if "ack" in ended:
            self.acks += 1
            self.acknowledged_bytes = self._bytes_to_batch

    def _pump(self, source, target, counts, record):
        cutter = _Cutter(counts)
        try:
            while data := source.recv(1 << 16):
                with self.lock:
                    self._note(cutter.feed(data), counts)
                    if record:
                        record.write(data)
                target.sendall(data)
        except ConnectionError:
            pass  # the other end closed the connection
        finally:
            for end in (source, target):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
