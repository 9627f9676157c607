"""Debug information that is made to exhaust its reader.

The files are small. They expand to loops, to billions of rows, or to endless names.
"""

import random
import struct
import zlib

MIB = 1 << 20
TEXT, TEXT_SIZE = 0x1000, 64 * MIB
SHT_PROGBITS, SHT_NOTE, SHT_NOBITS, SHT_STRTAB = 1, 7, 8, 3
SHF_ALLOC_EXEC, SHF_COMPRESSED = 6, 0x800

DW_TAG_compile_unit, DW_TAG_subprogram, DW_TAG_inlined_subroutine = 0x11, 0x2E, 0x1D
DW_AT_name, DW_AT_stmt_list, DW_AT_low_pc, DW_AT_high_pc, DW_AT_abstract_origin, DW_AT_ranges = 0x03, 0x10, 0x11, 0x12, 0x31, 0x55
DW_FORM_addr, DW_FORM_data8, DW_FORM_strp, DW_FORM_ref4, DW_FORM_sec_offset = 0x01, 0x07, 0x0E, 0x13, 0x17


def uleb(value):
    out = bytearray()
    while True:
        out.append((value & 0x7F) | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(out)


def compressed(pieces):
    """Deflates a section's bytes piece by piece. The expanded section need not fit in memory."""
    deflate = zlib.compressobj(1)
    size, out = 0, bytearray()
    for piece in pieces:
        size += len(piece)
        out += deflate.compress(piece)
    out += deflate.flush()
    return struct.pack("<IIQQ", 1, 0, size, 1) + out


def elf(path, debug, seed):
    """Writes an executable without code bytes, with these debug sections: name → bytes or (compressed bytes,)."""
    note = struct.pack("<III4s", 4, 20, 3, b"GNU\0") + random.Random(seed).randbytes(20)
    sections = [(".note.gnu.build-id", SHT_NOTE, 2, 0, note, len(note)), (".text", SHT_NOBITS, SHF_ALLOC_EXEC, TEXT, b"", TEXT_SIZE)]
    for name, data in debug.items():
        flags, data = (SHF_COMPRESSED, data[0]) if isinstance(data, tuple) else (0, data)
        sections.append((name, SHT_PROGBITS, flags, 0, data, len(data)))
    names = b"\0" + b"".join(s[0].encode() + b"\0" for s in sections) + b".shstrtab\0"
    sections.append((".shstrtab", SHT_STRTAB, 0, 0, names, len(names)))
    with open(path, "wb") as file:
        file.write(b"\0" * 120)  # headers: one segment, the code
        headers = [b"\0" * 64]
        for name, kind, flags, address, data, size in sections:
            offset = file.tell()
            file.write(data + b"\0" * (-len(data) % 8))
            headers.append(struct.pack("<IIQQQQIIQQ", names.index(b"\0" + name.encode() + b"\0") + 1, kind, flags, address, offset, size,
                                       0, 0, 1, 0))
        table = file.tell()
        file.write(b"".join(headers))
        file.seek(0)
        file.write(struct.pack("<4sBBBBQHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 0, 3, 62, 1, TEXT, 64, table, 0, 64, 56, 1, 64, len(headers),
                               len(headers) - 1))
        file.write(struct.pack("<IIQQQQQQ", 1, 5, 0, TEXT, TEXT, 0, TEXT_SIZE, 0x1000))
    return path


def abbreviation(code, tag, children, *attributes):
    out = uleb(code) + uleb(tag) + bytes([children])
    for attribute, form in attributes:
        out += uleb(attribute) + uleb(form)
    return out + b"\0\0"


ABBREVIATIONS = (abbreviation(1, DW_TAG_compile_unit, 1, (DW_AT_stmt_list, DW_FORM_sec_offset)) +
                 abbreviation(2, DW_TAG_subprogram, 0, (DW_AT_abstract_origin, DW_FORM_ref4), (DW_AT_low_pc, DW_FORM_addr),
                              (DW_AT_high_pc, DW_FORM_data8)) +
                 abbreviation(3, DW_TAG_subprogram, 0, (DW_AT_name, DW_FORM_strp), (DW_AT_ranges, DW_FORM_sec_offset)) +
                 abbreviation(4, DW_TAG_inlined_subroutine, 1, (DW_AT_abstract_origin, DW_FORM_ref4), (DW_AT_low_pc, DW_FORM_addr),
                              (DW_AT_high_pc, DW_FORM_data8)) +
                 abbreviation(5, DW_TAG_subprogram, 0, (DW_AT_name, DW_FORM_strp), (DW_AT_low_pc, DW_FORM_addr), (DW_AT_high_pc, DW_FORM_data8)) +
                 b"\0")
UNIT_HEADER = 11  # bytes
FIRST_ENTRY = UNIT_HEADER + 5


def unit(entries):
    body = struct.pack("<HIB", 4, 0, 8) + uleb(1) + struct.pack("<I", 0) + entries + b"\0"
    return struct.pack("<I", len(body)) + body


def circle_of_origins(path):
    """Writes 100,000 functions. Each is the instance of the next one, and the last is the instance of the first."""
    size, count = 21, 100_000
    entries = b"".join(uleb(2) + struct.pack("<IQQ", FIRST_ENTRY + size * ((i + 1) % count), TEXT + i * 16, 16) for i in range(count))
    return elf(path, {".debug_abbrev": ABBREVIATIONS, ".debug_info": unit(entries)}, 1)


def calls_in_calls(path):
    """Writes two million calls, each inlined into the one before it."""
    count = 2_000_000
    entries = uleb(5) + struct.pack("<IQQ", 0, TEXT, 16) + b"".join(
        uleb(4) + struct.pack("<IQQ", FIRST_ENTRY, TEXT, TEXT_SIZE - i) for i in range(count))
    return elf(path, {".debug_abbrev": ABBREVIATIONS, ".debug_info": unit(entries), ".debug_str": b"f\0"}, 2)


def line_rows(path):
    """Writes a line program of 200 MiB of "copy": as many rows of 16 bytes each, from a file of 1 MB."""
    header = struct.pack("<BBBBBB", 1, 1, 1, 0xFB, 14, 13) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]) + b"\0a.c\0\0\0\0\0"
    start = b"\0\x09\x02" + struct.pack("<Q", TEXT)
    rows = 200 * MIB
    body = struct.pack("<HI", 4, len(header)) + header + start
    pieces = [struct.pack("<I", len(body) + rows), body] + [b"\x01" * MIB] * 200
    entries = uleb(5) + struct.pack("<IQQ", 0, TEXT, 16)
    return elf(path, {".debug_abbrev": ABBREVIATIONS, ".debug_info": unit(entries), ".debug_str": b"f\0",
                      ".debug_line": (compressed(pieces),)}, 3)


def overlapping_ranges(path):
    """Writes 2,000 functions that share a list of 500,000 overlapping ranges: a billion claims on code."""
    ranges = b"".join(struct.pack("<QQ", TEXT + i, TEXT + TEXT_SIZE - i) for i in range(500_000)) + b"\0" * 16
    entries = b"".join(uleb(3) + struct.pack("<II", 0, 0) for _ in range(2_000))
    return elf(path, {".debug_abbrev": ABBREVIATIONS, ".debug_info": unit(entries), ".debug_str": b"f\0",
                      ".debug_ranges": (compressed([ranges]),)}, 4)


def endless_name(path):
    """Writes a name of 100 MB that a thousand functions use, each from another offset."""
    entries = b"".join(uleb(5) + struct.pack("<IQQ", i, TEXT + i * 16, 16) for i in range(1_000))
    return elf(path, {".debug_abbrev": ABBREVIATIONS, ".debug_info": unit(entries),
                      ".debug_str": (compressed([b"A" * MIB] * 100 + [b"\0"]),)}, 5)


def promise_of_4_gib(path):
    """Writes a compressed section with a declared size of 2^32 bytes, and one with an impossible declared size."""
    lie = struct.pack("<IIQQ", 1, 0, 1 << 32, 1) + zlib.compress(b"\x01" * MIB)
    worse = struct.pack("<IIQQ", 1, 0, (1 << 64) - 1, 1) + zlib.compress(b"A")
    entries = uleb(5) + struct.pack("<IQQ", 0, TEXT, 16)
    return elf(path, {".debug_abbrev": ABBREVIATIONS, ".debug_info": unit(entries), ".debug_line": (lie,), ".debug_str": (worse,)}, 6)


BOMBS = [circle_of_origins, calls_in_calls, line_rows, overlapping_ranges, endless_name, promise_of_4_gib]
