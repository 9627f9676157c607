"""Makes executables with wrong contents: patched copies of real ones. They run, but their ELF data are wrong."""

import random
import struct
import subprocess

import lib

MIB = 1 << 20
GIB = 1 << 30


class Elf:
    """A 64-bit ELF file to patch."""

    def __init__(self, path):
        self.data = bytearray(path.read_bytes())
        self.shoff, = struct.unpack_from("<Q", self.data, 40)
        self.shentsize, self.shnum, names = struct.unpack_from("<HHH", self.data, 58)
        self.sections = {}
        strings = self.header(names)[4]
        for i in range(1, self.shnum):
            name, _, _, _, offset, size = self.header(i)
            name = bytes(self.data[strings + name:]).split(b"\0", 1)[0].decode()
            self.sections[name] = (i, offset, size)

    def header(self, i):
        return struct.unpack_from("<IIQQQQ", self.data, self.shoff + i * self.shentsize)

    def section(self, name):
        return self.sections[name][1:]

    def identify(self, seed):
        """Sets another build-id. Otherwise the reducer would take the copy for the original program."""
        at = self.section(".note.gnu.build-id")[0] + 16
        self.data[at:at + 20] = random.Random(seed).randbytes(20)

    def entries(self):
        """Yields the file offset, length and id of each entry of .eh_frame."""
        at, size = self.section(".eh_frame")
        end = at + size
        while at < end:
            length, number = struct.unpack_from("<II", self.data, at)
            if length == 0:
                return
            yield at, length, number
            at += 4 + length

    def write(self, path, name_seed=None):
        self.identify(name_seed or path.name)
        path.write_bytes(self.data)
        path.chmod(0o755)
        return path


def random_bytes(elf):
    at, size = elf.section(".eh_frame")
    elf.data[at:at + size] = random.Random(1).randbytes(size)


def count_32(elf):
    struct.pack_into("<I", elf.data, elf.section(".eh_frame_hdr")[0] + 8, 0xFFFFFFFF)


def count_64(elf):
    at = elf.section(".eh_frame_hdr")[0]
    elf.data[at + 2] = 0x04  # the count is 8 bytes long
    struct.pack_into("<Q", elf.data, at + 8, 1 << 32)


def cyclic(elf):
    for at, _, _ in list(elf.entries()):
        struct.pack_into("<I", elf.data, at + 4, 4)  # each entry is its own CIE


def augmentation(elf):
    for at, _, number in list(elf.entries()):
        if number == 0:
            at = elf.data.index(b"\0", at + 9) + 4  # after the string, two factors and the return register
            elf.data[at:at + 5] = b"\xff\xff\xff\xff\x0f"


def lengths(elf):
    for at, length, _ in list(elf.entries()):
        struct.pack_into("<I", elf.data, at, 0xFFFFFFFF)
        if length >= 12:
            struct.pack_into("<Q", elf.data, at + 4, 1 << 62)


CORRUPTIONS = [random_bytes, count_32, count_64, cyclic, augmentation, lengths]


def sparse_text(path):
    """Writes an executable segment of 1.5 GB. It is a hole except for its last page, which has a copy of burn_here."""
    elf = Elf(lib.BIN / "hostile")
    phoff, = struct.unpack_from("<Q", elf.data, 32)
    phnum, = struct.unpack_from("<H", elf.data, 56)
    types = [struct.unpack_from("<I", elf.data, phoff + 56 * i)[0] for i in range(phnum)]
    at = phoff + 56 * types.index(0x6474E552)  # PT_GNU_RELRO, which comes after the last PT_LOAD
    size = 3 * GIB // 2
    struct.pack_into("<IIQQQQQQ", elf.data, at, 1, 5, MIB, 16 * MIB, 16 * MIB, size, size, 4096)
    start = elf.section(".text")[0]
    symbol = subprocess.run(["nm", "-S", lib.BIN / "hostile"], check=True, capture_output=True, text=True).stdout
    address, length = next((int(w[0], 16), int(w[1], 16)) for w in map(str.split, symbol.splitlines()) if w[-1] == "burn_here")
    base = elf.header(elf.sections[".text"][0])[3]
    code = elf.data[start + address - base:start + address - base + length]
    elf.write(path)
    with open(path, "r+b") as file:
        file.truncate(MIB + size)
        file.seek(MIB + size - 4096)
        file.write(code)
    return path


def sparse_file(path):
    """Writes a section of 1.5 GB that is never loaded, like debug information. The section headers lie after it."""
    elf = Elf(lib.BIN / "hostile")
    headers = elf.data[elf.shoff:]
    index = elf.sections[".debug_info"][0]
    size = 3 * GIB // 2
    struct.pack_into("<QQ", headers, index * elf.shentsize + 24, elf.shoff // 8 * 8, size)
    struct.pack_into("<Q", elf.data, 40, elf.shoff + size)
    elf.write(path)
    with open(path, "r+b") as file:
        file.truncate(elf.shoff + size)
        file.seek(elf.shoff + size)
        file.write(headers)
    return path
