"""Converts a process's addresses to (executable id, ELF address). Finds whether a file has unwind information there.

Reads /proc/PID/maps and the files' program headers. It shares no code with the tested programs.
"""

import bisect
import hashlib
import pathlib
import struct

PT_LOAD, PT_NOTE, SHT_NOTE = 1, 4, 7
NT_GNU_BUILD_ID, NT_GO_BUILD_ID = 3, 4


class ElfFile:
    def __init__(self, data):
        self.data = data
        self.segments = []  # (offset, file size, address) of loaded segments
        self.sections = {}
        self.id = ""  # in the form of profile/executable_id.h
        self._functions = None
        notes = []
        if data[:5] != b"\x7fELF\x02":
            return
        phoff, shoff = struct.unpack_from("<QQ", data, 32)
        phentsize, phnum, shentsize, shnum, shstrndx = struct.unpack_from("<HHHHH", data, 54)
        for i in range(phnum):
            type_, _, offset, address, _, size, _, align = struct.unpack_from("<IIQQQQQQ", data, phoff + i * phentsize)
            if type_ == PT_LOAD:
                self.segments.append((offset, size, address))
            if type_ == PT_NOTE:
                notes += self._read_notes(offset, size, align)
        if shoff + shnum * shentsize <= len(data):
            notes += self._read_sections(shoff, shentsize, shnum, shstrndx)
        self.id = self._identify(dict(notes))

    def _read_sections(self, shoff, shentsize, shnum, shstrndx):
        headers = [struct.unpack_from("<IIQQQQ", self.data, shoff + i * shentsize) for i in range(shnum)]
        names = headers[shstrndx][4] if shnum else 0
        for name, type_, _, address, offset, size in headers:
            end = self.data.index(b"\0", names + name)
            self.sections[bytes(self.data[names + name:end]).decode(errors="replace")] = (address, offset, size)
            if type_ == SHT_NOTE:  # some linkers leave notes that no segment covers
                yield from self._read_notes(offset, size, 4)

    def _read_notes(self, at, size, align):
        end = at + size
        align = max(align, 4)
        while at + 12 <= end:
            name_size, size, type_ = struct.unpack_from("<III", self.data, at)
            name = bytes(self.data[at + 12:at + 12 + name_size])
            at += -(-(12 + name_size) // align) * align
            yield (name, type_), bytes(self.data[at:at + size])
            at += -(-size // align) * align

    def _identify(self, notes):
        if (b"GNU\0", NT_GNU_BUILD_ID) in notes:
            return notes[b"GNU\0", NT_GNU_BUILD_ID].hex()
        if (b"Go\0\0", NT_GO_BUILD_ID) in notes:
            return "go:" + hashlib.sha256(notes[b"Go\0\0", NT_GO_BUILD_ID]).digest()[:16].hex()
        ends = self.data[:4096] + self.data[-4096:] + struct.pack(">Q", len(self.data))
        return "htl:" + hashlib.sha256(ends).digest()[:16].hex()

    def address_of(self, offset):
        for segment_offset, size, address in self.segments:
            if segment_offset <= offset < segment_offset + size:
                return offset - segment_offset + address
        return None

    def has_unwind_information(self, address):
        """Returns whether .eh_frame covers `address`. A file with only .debug_frame counts as covered everywhere."""
        if self._functions is None:
            self._functions = sorted(self._read_eh_frame()) if ".eh_frame" in self.sections else []
        if not self._functions:
            return ".debug_frame" in self.sections or ".zdebug_frame" in self.sections
        i = bisect.bisect_right(self._functions, (address, 1 << 64)) - 1
        return i >= 0 and address < self._functions[i][1]

    def _read_eh_frame(self):
        """Yields (begin, end) of every function.

        All compilers of this test write a pointer as 4 bytes, relative to the pointer's own address."""
        address, offset, size = self.sections[".eh_frame"]
        at, end = offset, offset + size
        encodings = {}
        while at + 4 <= end:
            length, = struct.unpack_from("<I", self.data, at)
            if length == 0:
                at += 4
                continue
            id_, = struct.unpack_from("<I", self.data, at + 4)
            if id_ == 0:
                encodings[at] = self._pointer_encoding(at + 8)
            elif encodings.get(at + 4 - id_, 0x1b) & 0x7f == 0x1b:
                begin, count = struct.unpack_from("<iI", self.data, at + 8)
                begin += address + (at + 8 - offset)
                yield begin, begin + count
            at += 4 + length

    def _pointer_encoding(self, at):
        """Returns the pointer encoding ("R") of a CIE. `at` is the offset of the CIE's version."""
        end = self.data.index(b"\0", at + 1)
        augmentation = bytes(self.data[at + 1:end])
        at = end + 1
        for _ in range(4):  # code alignment, data alignment, return register, length of the augmentation's data
            while self.data[at] & 0x80:
                at += 1
            at += 1
        for letter in augmentation[1:]:
            if letter == ord("R"):
                return self.data[at]
            at += 1 if letter == ord("L") else 5 if letter == ord("P") else 0
        return 0x1b


class CodeAddresses:
    """The addresses of one process, with its mappings at the last call of `refresh`."""

    _files = {}  # by path: shared by all processes

    def __init__(self, pid):
        self.pid = pid
        self.mappings = []  # (start, end, offset, path) of executable mappings

    def refresh(self):
        self.mappings = []
        for line in pathlib.Path(f"/proc/{self.pid}/maps").read_text().splitlines():
            fields = line.split(maxsplit=5)
            if "x" not in fields[1]:
                continue
            start, end = (int(x, 16) for x in fields[0].split("-"))
            self.mappings.append((start, end, int(fields[2], 16), fields[5] if len(fields) > 5 else ""))

    def mapping_of(self, pc):
        i = bisect.bisect_right(self.mappings, (pc, 1 << 64)) - 1
        return self.mappings[i] if i >= 0 and pc < self.mappings[i][1] else None

    def locate(self, pc):
        """Returns (executable id, ELF address, path). If no file is mapped at `pc`, the id is empty and the address is
        `pc`."""
        mapping = self.mapping_of(pc)
        if mapping is None or not mapping[3].startswith("/") and mapping[3] != "[vdso]":
            return "", pc, ""
        file = self.file_of(mapping)
        address = file.address_of(pc - mapping[0] + mapping[2])
        return (file.id, address, mapping[3]) if address is not None else ("", pc, mapping[3])

    def has_unwind_information(self, pc):
        mapping = self.mapping_of(pc)
        id_, address, _ = self.locate(pc)
        return id_ != "" and self.file_of(mapping).has_unwind_information(address)

    def file_of(self, mapping):
        path = mapping[3]
        if path not in self._files:
            if path == "[vdso]":
                with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
                    memory.seek(mapping[0])
                    self._files[path] = ElfFile(memory.read(mapping[1] - mapping[0]))
            else:
                self._files[path] = ElfFile(pathlib.Path(f"/proc/{self.pid}/map_files/{mapping[0]:x}-{mapping[1]:x}").read_bytes())
        return self._files[path]
