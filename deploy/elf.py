"""Reads the machine, the interpreter, the RPATH and the names of needed libraries from an ELF file."""

import dataclasses
import mmap
import struct

from failure import Failure

MACHINES = {62: "amd64", 183: "arm64"}
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NULL, DT_NEEDED, DT_STRTAB, DT_RPATH = 0, 1, 5, 15


class NotElf(ValueError):
    """The file is not a 64-bit little-endian ELF file of a machine that we build for."""


@dataclasses.dataclass
class Elf:
    arch: str
    interpreter: str = ""
    rpath: str = ""
    needed: list = dataclasses.field(default_factory=list)


def _string(data, offset):
    return bytes(data[offset:data.find(b"\0", offset)]).decode()


def _segments(data):
    """Yields (type, file offset, address, size in the file) of each program header."""
    table, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, _, offset, address, _, file_bytes = struct.unpack_from("<IIQQQQ", data, table + i * size)
        yield kind, offset, address, file_bytes


def _read_dynamic(data, segments, out):
    loads = [segment for segment in segments if segment[0] == PT_LOAD]

    def at(address):
        return next(address - start + offset for _, offset, start, size in loads if start <= address < start + size)

    entries = []
    for _, offset, _, size in (segment for segment in segments if segment[0] == PT_DYNAMIC):
        for tag, value in struct.iter_unpack("<qQ", data[offset:offset + size // 16 * 16]):
            if tag == DT_NULL:
                break
            entries.append((tag, value))
    strings = next((at(value) for tag, value in entries if tag == DT_STRTAB), None)
    for tag, value in entries:
        if tag == DT_NEEDED:
            out.needed.append(_string(data, strings + value))
        elif tag == DT_RPATH:
            out.rpath = _string(data, strings + value)


def parse(data):
    """Returns the Elf of a file's bytes. Raises NotElf."""
    if len(data) < 64 or data[:6] != b"\x7fELF\x02\x01":
        raise NotElf("not a 64-bit little-endian ELF file")
    machine, = struct.unpack_from("<H", data, 18)
    if machine not in MACHINES:
        raise NotElf(f"machine {machine} is neither amd64 nor arm64")
    out = Elf(MACHINES[machine])
    try:
        segments = list(_segments(data))
        for kind, offset, _, _ in segments:
            if kind == PT_INTERP:
                out.interpreter = _string(data, offset)
        _read_dynamic(data, segments, out)
    except (struct.error, StopIteration, TypeError) as error:
        raise NotElf("its program headers or its dynamic section are damaged") from error
    return out


def read(path):
    """Returns the Elf of a file. Raises OSError and Failure."""
    with open(path, "rb") as file:
        try:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return parse(data)
        except ValueError as error:  # NotElf, or an empty file
            raise Failure(f"{path}: {error}: build it again, or install its package again") from error
