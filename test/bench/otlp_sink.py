"""An OTLP endpoint for profiles. It keeps only each sample's time, whether its stack was cut, and whether names are missing.

The field numbers are those of schemas/otlp/profiles.proto. A stack is cut if one of its frames marks an aborted walk: a
location with the attribute profile.frame.type "abort-marker". Names are missing if a frame of Python has none, or if a
stack with code of Python's interpreter has no frame of Python.
"""

import dataclasses
import gzip
import re
import struct
import threading
import time

import h2


def fields(data):
    """Yields (number, value) of each field of a message. The value is an int for varints, bytes for other types."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        elif kind == 2:
            size, at = _varint(data, at)
            value, at = data[at:at + size], at + size
        elif kind == 5:
            value, at = data[at:at + 4], at + 4
        else:
            raise ValueError(f"wire type {kind}")
        yield key >> 3, value


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _ints(value):
    """Returns the numbers in one part of a repeated int field: packed, or a single number."""
    if isinstance(value, int):
        return [value]
    out, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        out.append(number)
    return out


def _only(data, number, default=0):
    for n, value in fields(data):
        if n == number:
            default = value
    return default


class _Dictionary:
    """Records which stacks of one request were cut and which have no user frame."""

    def __init__(self, data):
        mappings, strings, attributes, locations, functions, stacks = [], [], [], [], [], []
        for number, value in fields(data):
            table = {1: mappings, 2: locations, 3: functions, 5: strings, 6: attributes, 7: stacks}.get(number)
            if table is not None:
                table.append(value)
        types = []
        for attribute in attributes:
            key, value = strings[_only(attribute, 1)], _only(attribute, 2, b"")
            types.append(self._text(value, strings) if key == b"profile.frame.type" else None)
        self.location_types = []
        for location in locations:
            mine = [i for n, v in fields(location) if n == 4 for i in _ints(v)]
            self.location_types.append(next((types[i] for i in mine if types[i] is not None), None))
        self.is_interpreter = [self._has_interpreter(location, mappings, strings) for location in locations]
        self.has_name = [self._has_name(location, functions, strings) for location in locations]
        self.stacks = []
        for stack in stacks:
            indices = [i for n, v in fields(stack) if n == 1 for i in _ints(v)]
            frames = [self.location_types[i] for i in indices]
            cut = b"abort-marker" in frames
            python = [i for i in indices if self.location_types[i] == b"cpython"]
            unnamed = not all(self.has_name[i] for i in python) if python else any(self.is_interpreter[i] for i in indices)
            self.stacks.append((cut, not cut and all(f == b"kernel" for f in frames), len(frames), unnamed))

    @staticmethod
    def _has_interpreter(location, mappings, strings):
        mapping = _only(location, 1)
        name = strings[_only(mappings[mapping], 4)] if mapping < len(mappings) else b""
        return re.match(rb"(lib)?python\d", name.rsplit(b"/", 1)[-1]) is not None

    @staticmethod
    def _has_name(location, functions, strings):
        return any(strings[_only(functions[_only(line, 1)], 1)] not in (b"", b"<unknown>") for n, line in fields(location) if n == 3)

    @staticmethod
    def _text(value, strings):
        """Returns the text of an AnyValue. Field 1 is string_value. An index into the string table is a varint."""
        for number, content in fields(value):
            if number == 1 and isinstance(content, bytes):
                return content
            if isinstance(content, int) and content < len(strings):
                return strings[content]
        return None


@dataclasses.dataclass
class Samples:
    times: list  # ns since 1970
    cut: int = 0
    kernel_only: int = 0
    frames: int = 0
    cut_or_unnamed: int = 0
    first_complete: int = 0  # ns since 1970; 0: none


def read_request(message):
    """Reads an ExportProfilesServiceRequest and returns its Samples."""
    dictionary = _Dictionary(_only(message, 2, b""))
    out = Samples([])
    samples = (sample
               for n, resource in fields(message) if n == 1
               for n2, scope in fields(resource) if n2 == 2
               for n3, profile in fields(scope) if n3 == 2
               for n4, sample in fields(profile) if n4 == 2)
    for sample in samples:
        stack, times = 0, []
        for number, value in fields(sample):
            if number == 1:
                stack = value
            elif number == 5:
                times += struct.unpack(f"<{len(value) // 8}Q", value)
        cut, kernel_only, frames, unnamed = dictionary.stacks[stack]
        out.times += times
        out.cut += len(times) * cut
        out.kernel_only += len(times) * kernel_only
        out.frames += len(times) * frames
        out.cut_or_unnamed += len(times) * (cut or unnamed)
        if not cut and not kernel_only and times:
            out.first_complete = min(times + [out.first_complete or times[0]])
    return out


class OtlpSink:
    """with OtlpSink() as sink: …send to sink.address…; sink.samples, sink.requests (arrival time in ns, raw bytes so far)."""

    def __init__(self):
        self.lock = threading.Lock()
        self.samples = Samples([])
        self.arrivals = []  # (monotonic ns, bytes received so far, samples so far)
        self.unreadable = 0

    def __enter__(self):
        self._sink = h2.GrpcSink(self._take)
        self.address = self._sink.address
        return self

    def __exit__(self, *_):
        self._sink.close()

    def _take(self, compressed, message):
        try:
            read = read_request(gzip.decompress(message) if compressed else message)
        except (ValueError, IndexError, OSError, EOFError, struct.error):
            with self.lock:
                self.unreadable += 1
            return
        with self.lock:
            mine = self.samples
            mine.times += read.times
            mine.cut += read.cut
            mine.kernel_only += read.kernel_only
            mine.frames += read.frames
            mine.cut_or_unnamed += read.cut_or_unnamed
            if read.first_complete:
                mine.first_complete = min(read.first_complete, mine.first_complete or read.first_complete)
            self.arrivals.append((time.monotonic_ns(), self._sink.bytes_received, len(mine.times)))

    def count_between(self, begin_ns, end_ns):
        """Counts the samples taken between two times, in ns since 1970."""
        with self.lock:
            return sum(begin_ns <= t < end_ns for t in self.samples.times)
