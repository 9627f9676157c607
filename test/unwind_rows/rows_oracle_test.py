#!/usr/bin/env python3
"""Compares unwind rows with the rows that binutils reads from the same files, at every address of either table.

Draws executables and libraries in the order of a hash of their paths. So the draw is the same on every machine with the
same packages, and favours no kind of file. The largest files are always included. Differences are counted and listed.
The test fails if more than ALLOWED_SHARE of the addresses differ. `--all` takes every file below the roots.
"""

import argparse
import bisect
import collections
import concurrent.futures
import functools
import hashlib
import os
import re
import stat
import subprocess
import sys

ALLOWED_SHARE = 0.0005
FILE_BYTES_MAX = 12 << 20  # of drawn files; limits the time of the test
GAP_BYTES_MIN = 16

NONE, SP, FP, SECOND, DEREF_SP, DEREF_FP, PLT, SIGNAL, END, REGISTER, RETURN_REGISTER, BAD = range(12)
SAME, AT_CFA, AT_FP, LOST = range(4)

X86, ARM64 = 62, 183
# DWARF numbers by the names that readelf prints. Only registers that can be part of a CFA are listed.
X86_NUMBERS = {"rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6, "rsp": 7,
               **{f"r{i}": i for i in range(8, 16)}, "rip": 16}
ARM64_NUMBERS = {**{f"x{i}": i for i in range(31)}, "sp": 31}
MACHINES = {X86: dict(numbers=X86_NUMBERS, sp=7, fp=6, second=3, fp_name="rbp", second_name="rbx"),
            ARM64: dict(numbers=ARM64_NUMBERS, sp=31, fp=29, second=30, fp_name="x29", second_name="ra")}


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


def saved_matches(cell, saved, offset):
    """Returns whether readelf's cell for a register agrees with a rule. `offset` is in bytes."""
    if cell in (None, "s"):
        return saved == SAME
    if cell == "u":  # readelf's word for both "not mentioned" and "undefined"
        return saved in (SAME, LOST)
    if re.fullmatch(r"c[+-]\d+", cell):
        return saved == AT_CFA and offset == int(cell[1:])
    if cell == "exp":
        return saved in (AT_FP, LOST)
    return saved == LOST


@functools.lru_cache(maxsize=1 << 20)
def matches(machine_number, header, cells, rule):
    """Returns whether a rule agrees with a line of readelf's table, given as `header` and `cells`.

    header None: no unwind information; "S": a signal frame."""
    kind, cfa_offset = rule & 15, signed(rule >> 8 & 0xffffff, 24)
    fp, fp_offset = rule >> 4 & 3, 8 * signed(rule >> 32 & 0xffff, 16)
    second, last = rule >> 6 & 3, signed(rule >> 48, 16)
    if header is None:
        return kind == NONE
    if header == "S":
        return kind == SIGNAL
    machine = MACHINES[machine_number]
    row = dict(zip(header.split(), re.sub(r"\(\w+\)", "", cells).split()))
    cfa, ra = row["CFA"], row.get("ra")
    if ra == "u" and (machine_number == X86 or "ra" in row):
        # On arm64 the return address is in its register by default. readelf prints "u" for this case, too.
        if machine_number == X86 or kind == END:
            return kind == END
        ra = None
    if machine_number == X86 and ra != "c-8":
        register = re.fullmatch(r"r(\d+)", ra)
        return bool(register) and kind == RETURN_REGISTER and last == int(register.group(1))
    if machine_number == ARM64 and ra and re.fullmatch(r"r\d+", ra):
        return kind == RETURN_REGISTER and last == int(ra[1:])
    if kind in (SP, FP, SECOND) and not saved_matches(row.get(machine["second_name"]), second, 8 * last):
        return False
    if kind not in (PLT, BAD) and not saved_matches(row.get(machine["fp_name"]), fp, fp_offset):
        return False
    if cfa == "exp":
        return kind in (PLT, DEREF_SP, DEREF_FP) or (kind == SP and cfa_offset in (8, 16))
    name, offset = re.fullmatch(r"(\w+)([+-]\d+)", cfa).groups()
    number = machine["numbers"].get(name)
    wanted = {machine["sp"]: SP, machine["fp"]: FP, machine["second"]: SECOND}.get(number, REGISTER)
    return kind == wanted and cfa_offset == int(offset) and (kind != REGISTER or last == number)


def read_rows(tool, path):
    """Returns our rows as two lists (addresses, rules), and the tool's last comment line about the file."""
    out = subprocess.run([tool, "--raw", path], capture_output=True, text=True, errors="replace").stdout
    addresses, rules, about = [], [], ""
    for line in out.splitlines():
        if line.startswith("#"):
            about = line
            continue
        address, rule = line.split()
        addresses.append(int(address, 16))
        rules.append(int(rule, 16))
    return addresses, rules, about


ENTRY = re.compile(r"^[0-9a-f]{8,16} [0-9a-f]{8,16} [0-9a-f]{8,16} "
                   r"(?:(CIE) \"([^\"]*)\"|FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+))")


def read_functions(path, section):
    """Returns readelf's functions, sorted by begin: (begin, end, [(address, header, cells)])."""
    out = subprocess.run(["readelf", "--debug-dump=frames-interp", "--debug-dump=no-follow-links", "-W", path],
                         capture_output=True, text=True, errors="replace").stdout
    functions, commons, header, in_section = [], {}, None, False
    rows, common, offset = None, None, None
    for line in out.splitlines():
        if line.startswith("Contents of the "):
            in_section = section in line
            continue
        if not in_section or not line:
            continue
        entry = ENTRY.match(line)
        if entry:
            rows = []
            if entry.group(1):
                commons[line.split()[0].lstrip("0")] = common = (rows, "S" in entry.group(2))
            else:
                common = commons.get(entry.group(3).lstrip("0"))
                functions.append((int(entry.group(4), 16), int(entry.group(5), 16), rows, common))
        elif line.startswith("   LOC"):
            header = line[6:].strip()
        elif rows is not None and re.match(r"[0-9a-f]{16} ", line):
            rows.append((int(line[:16], 16), header, line[17:].strip()))
    result = []
    for begin, end, rows, common in functions:
        if end <= begin or common is None:
            continue
        if common[1]:
            rows = [(begin, "S", "")]
        elif not rows:
            rows = [(begin, *row[1:]) for row in common[0][-1:]]
        result.append((begin, end, rows))
    result.sort(key=lambda f: f[0])
    return result


def expected_table(functions, text):
    """Returns readelf's table as (address, header, cells). Each entry holds until the address of the next entry.

    Gaps and overlaps are handled as in our rows."""
    table = []
    functions = [f for f in functions if text[0] <= f[0] < text[1]]
    for i, (begin, end, rows) in enumerate(functions):
        following = functions[i + 1][0] if i + 1 < len(functions) else text[1]
        if following == begin:
            continue
        at = {}
        for address, header, cells in rows:
            if begin <= address < min(end, following):
                at[address] = (header, cells)
        table += [(address, *at[address]) for address in sorted(at)]
        if following >= end + GAP_BYTES_MIN:
            table.append((end, None, ""))
    return table


def compare(tool, path):
    """Returns (path, addresses compared, [(address, readelf's header and cells, rule)], about)."""
    addresses, rules, about = read_rows(tool, path)
    found = re.search(r" text ([0-9a-f]+)-([0-9a-f]+) kind (\d)", about)
    if not found or found.group(3) == "0":
        return path, 0, [], about
    with open(path, "rb") as file:
        machine = int.from_bytes(file.read(20)[18:20], "little")
    text = int(found.group(1), 16), int(found.group(2), 16)
    table = expected_table(read_functions(path, ".eh_frame" if found.group(3) == "1" else "debug_frame"), text)
    if not table:
        return path, 0, [], about
    # Both tables are constant between their changes. If they are equal at every change of either table, they are equal
    # everywhere.
    changes = [row[0] for row in table]
    differences, compared = [], 0
    row_index = 0
    for i, (address, header, cells) in enumerate(table):
        following = changes[i + 1] if i + 1 < len(table) else text[1]
        row_index = max(row_index, bisect.bisect_right(addresses, address, row_index) - 1)
        while True:
            compared += 1
            at = max(address, addresses[row_index])
            if not matches(machine, header, cells, rules[row_index]):
                differences.append((at, header, cells, rules[row_index]))
            if row_index + 1 >= len(addresses) or addresses[row_index + 1] >= following:
                break
            row_index += 1
    return path, compared, differences, about


def is_elf(path):
    try:
        info = os.lstat(path)
        if not stat.S_ISREG(info.st_mode) or info.st_size < 4096:
            return None
        with open(path, "rb") as file:
            head = file.read(20)
    except OSError:
        return None
    kind, machine = int.from_bytes(head[16:18], "little"), int.from_bytes(head[18:20], "little")
    if head[:7] != b"\x7fELF\x02\x01\x01" or kind not in (2, 3) or machine not in MACHINES:
        return None
    return info.st_dev, info.st_ino, info.st_size


def draw(roots, count, largest, everything):
    seen, files = set(), []
    for root in roots:
        for folder, _, names in os.walk(root):
            for name in names:
                path = os.path.join(folder, name)
                about = is_elf(path)
                if about and about[:2] not in seen:
                    seen.add(about[:2])
                    files.append((hashlib.sha256(path.encode(errors="surrogateescape")).digest(), about[2], path))
    if everything:
        return [f[2] for f in sorted(files)]
    big = sorted(files, key=lambda f: -f[1])[:largest]
    small = [f for f in sorted(files) if f[1] <= FILE_BYTES_MAX][:count]
    return [f[2] for f in big + small]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", help="path of rows_dump")
    parser.add_argument("--root", action="append", default=None)
    parser.add_argument("--count", type=int, default=260)
    parser.add_argument("--largest", type=int, default=1)
    parser.add_argument("--files-min", type=int, default=200, help="fail if fewer files have unwind information")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", type=int, default=60, help="maximum number of differences to print")
    options = parser.parse_args()
    paths = draw(options.root or ["/usr"], options.count, options.largest, options.all)
    files = compared = left = 0
    by_file = collections.Counter()
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for path, addresses, differences, about in pool.map(functools.partial(compare, options.tool), paths):
            if " error " in about:
                print(about)
            if addresses == 0:
                continue
            files += 1
            compared += addresses
            by_file[path] += len(differences)
            for address, header, cells, rule in differences:
                if left < options.list:
                    print(f"{path}: {address:#x}: readelf [{header}] [{cells}], rule {rule:#x}")
                left += 1
    print(f"{files} files of {len(paths)}, {compared} addresses, {left} differ ({100 * left / max(compared, 1):.5f} %)")
    for path, count in by_file.most_common(15):
        if count:
            print(f"  {count} in {path}")
    if files < options.files_min and not options.all:
        print(f"too few files: {files}", file=sys.stderr)
        return 1
    return 1 if left > ALLOWED_SHARE * compared else 0


if __name__ == "__main__":
    sys.exit(main())
