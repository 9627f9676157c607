"""Receives OTLP profiles and returns each sample's process, its time, and all attributes of its resource.

The field numbers are those of schemas/otlp/*.proto.
"""

import functools
import gzip
import pathlib
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import h2  # noqa: E402
from otlp_sink import fields  # noqa: E402


def _ints(value):
    """Returns the numbers of a packed field of varints."""
    out, number, shift = [], 0, 0
    for byte in value:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            out.append(number)
            number = shift = 0
    return out


def _value(data, strings):
    """Returns an AnyValue as str, bool, int, float or list."""
    for number, content in fields(data):
        if number == 1:
            return content.decode()
        if number == 2:
            return bool(content)
        if number == 3:
            return content - (1 << 64) if content >> 63 else content
        if number == 4:
            return struct.unpack("<d", content)[0]
        if number == 5:
            return [_value(each, strings) for n, each in fields(content) if n == 1]
        if number == 8:
            return strings[content]
    return None


def _key_value(data, strings):
    """Returns (key, value) of a KeyValue. The key may be an index into the string table."""
    parts = dict(fields(data))
    return strings[parts[3]] if 3 in parts else parts[1].decode(), _value(parts.get(2, b""), strings)


def _table_attribute(data, strings):
    """Returns (key, value) of a KeyValueAndUnit. The first element of the table is empty."""
    parts = dict(fields(data))
    return strings[parts.get(1, 0)], _value(parts.get(2, b""), strings)


def samples(message):
    """Yields (pid, unix ns, resource's attributes) of each sample of an ExportProfilesServiceRequest."""
    dictionary = next((list(fields(v)) for n, v in fields(message) if n == 2), [])
    strings = [v.decode() for n, v in dictionary if n == 5]
    attributes = [_table_attribute(v, strings) for n, v in dictionary if n == 6]
    pids = {}  # by the encoded attributes of a sample
    # Resources have many attributes in common, so cache them.
    key_value = functools.lru_cache(maxsize=None)(lambda data: _key_value(data, strings))
    for profiles in (dict_of(v) for n, v in fields(message) if n == 1):
        resource = dict(key_value(v) for n, v in fields(profiles[1][0]) if n == 1)
        for sample in (s for scope in profiles.get(2, []) for p in dict_of(scope).get(2, []) for s in dict_of(p).get(2, [])):
            parts = dict_of(sample)
            written = tuple(parts.get(2, []))
            if written not in pids:
                indices = [i for v in written for i in ([v] if isinstance(v, int) else _ints(v))]
                pids[written] = next(value for key, value in (attributes[i] for i in indices) if key == "process.pid")
            for times in parts.get(5, []):
                for time in struct.unpack(f"<{len(times) // 8}Q", times):
                    yield pids[written], time, resource


def dict_of(data):
    out = {}
    for number, value in fields(data):
        out.setdefault(number, []).append(value)
    return out


class Sink:
    """with Sink() as sink: …export to otlp://{sink.address}…; afterwards samples() decodes the received requests."""

    def __enter__(self):
        self._lock, self._messages = threading.Lock(), []
        self._sink = h2.GrpcSink(self._take)
        self.address = self._sink.address
        return self

    def __exit__(self, *_):
        self._sink.close()

    def _take(self, compressed, message):
        with self._lock:
            self._messages.append(gzip.decompress(message) if compressed else message)

    def samples(self):
        with self._lock:
            messages = list(self._messages)
        return [sample for message in messages for sample in samples(message)]
