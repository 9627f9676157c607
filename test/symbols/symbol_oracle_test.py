"""Compares the names, inlined calls and lines from debug information with llvm-symbolizer.

There is one program for each way in which compilers, linkers and packagers write debug information.

    symbol_oracle_test.py [--keep DIR] [--addresses N] [NAME…]

Addresses are drawn from functions' code with a fixed seed. An address counts as equal
- as a leaf function if the innermost linkage names are equal,
- as a line if file and line of the innermost frame are equal,
- as a chain if the names, files and lines of all frames are equal.
Programs named mini-… are stripped as distributions strip programs: their symbols are in .gnu_debugdata. They are
compared with their twins that are not stripped.
Programs named kernel-… and module-… can be loaded at any address. Their addresses count from _stext, and code outside
of [_stext, _etext) has no name. A module's twin is linked with the kernel's layout of modules.
Programs named bounds-… are stripped of all symbols. The addresses where their functions begin are compared with
llvm-dwarfdump's FDEs, and with the twin's .symtab.
Names are normalised in one way. The outermost function may have its name from .symtab or its name from DWARF. A part
that a compiler split off (.cold, .part.0, .constprop.0, .isra.0, .llvm.N, .lto_priv.N) may have the name of the whole
function.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MIXED = HERE.parent / "bench" / "mixed"
BIN = pathlib.Path(os.environ["TRIBUTARY_BIN"])
# Functions in .symtab without unwind information, and so without bounds. They are in the C library's start files.
NO_FDE = {"_init", "_fini", "deregister_tm_clones", "register_tm_clones", "__do_global_dtors_aux", "frame_dummy", "_dl_relocate_static_pie", "_start"}
LEAF_LEAST, LINE_LEAST, CHAIN_LEAST = 0.999, 0.995, 0.99
SPLIT_OFF = re.compile(r"(\.(cold|part|constprop|isra|llvm|lto_priv|localalias|warm|exit)(\.\d+)*)+$")


def tool(name):
    path = shutil.which(name)
    if path is None:
        sys.exit(f"FAILED: {name} is not installed: run dev/deps")
    return path


def run(*command, **kwargs):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **kwargs)
    if done.returncode != 0:
        sys.exit(f"FAILED: {' '.join(map(str, command))}: {done.stderr.strip()[-2000:]}")
    return done.stdout


class Builder:
    """Makes programs. Each program has its own folder, which also contains the files that belong to the program."""

    def __init__(self, home):
        self.home = home

    def folder(self, name):
        path = self.home / name
        path.mkdir(parents=True)
        return path

    def compiled(self, name, compiler, source, *flags, link=()):
        """Compiles and links a program in two steps, so that split DWARF stays next to the object."""
        out = self.folder(name)
        source_file = shutil.copy(MIXED / source, out)
        run(tool(compiler), *flags, "-c", source_file, "-o", out / "program.o", cwd=out)
        run(tool(compiler), *flags, *link, out / "program.o", "-o", out / "program", cwd=out)
        return out / "program"

    def changed(self, name, program, *command):
        """Copies a program and runs a command on the copy. In the command, {} stands for the path of the copy."""
        out = self.folder(name)
        for each in program.parent.iterdir():
            shutil.copy(each, out)
        run(*[str(part).replace("{}", str(out / "program")) for part in command], cwd=out)
        return out / "program"

    def copied(self, name, program):
        return pathlib.Path(shutil.copy(program, self.folder(name) / "program"))

    def stripped(self, name, program, *extra):
        return self.changed(name, program, tool("strip"), "--strip-all", *extra, "{}")

    def mini(self, name, program):
        """Strips a program like rpm's find-debuginfo. The function symbols that .dynsym lacks are written to a separate
        file. The compressed file becomes a section of the stripped program."""
        return self.changed(name, program, "sh", "-ec", """
            nm -D {} --format=posix --defined-only | awk '{ print $1 }' | sort > dynamic
            nm {} --format=sysv --defined-only | awk -F '|' '$4 ~ "FUNC" { print $1 }' | sed 's/ *$//' | sort > functions
            comm -13 dynamic functions > keep
            objcopy --only-keep-debug {} debug
            objcopy -S --remove-section .comment --keep-symbols=keep debug mini
            strip --strip-all -R .comment {}
            xz mini
            objcopy --add-section .gnu_debugdata=mini.xz {}""")

    def linked_by(self, script, objects, program, linker="ld"):
        path = program.parent / "script"
        path.write_text(f"SECTIONS {{ {script} }}")
        run(tool(linker), "-e", "0", "--build-id", "-T", path, *objects, "-o", program)
        return program

    def kernel(self, name, compiler):
        """Makes a program like vmlinux. It is linked to high addresses and has labels around the code that stays after
        the start."""
        out = self.folder(name)
        run(tool(compiler), "-g", "-O2", "-ffreestanding", "-fno-pic", "-mcmodel=kernel", "-c", HERE / "kernel.c", "-o", out / "kernel.o")
        return self.linked_by(". = 0xffffffff81000000; .head.text : { *(.exit.text) } .text : { _stext = .; *(.text .text.*) *(.noinstr.text) _etext = .; } "
                              ".init.text : { *(.init.text) } __ksymtab : { *(__ksymtab) }", [out / "kernel.o"], out / "program")

    def module(self, name, compiler, *flags, linker="ld"):
        out = self.folder(name)
        run(tool(compiler), "-g", "-O2", "-ffreestanding", *flags, "-c", HERE / "kernel.c", "-o", out / "kernel.o")
        run(tool(linker), "-r", "--build-id", out / "kernel.o", "-o", out / "program")
        return out / "program"

    def loaded_module(self, name, module, linker="ld"):
        """Links a module with the kernel's layout of sections. The code is in the file's order, from .text on. The code
        that is freed after the start is apart from it."""
        code = [line[1].split()[0] for line in (line.split("]", 1) for line in run("readelf", "-WS", module).splitlines())
                if len(line) == 2 and " AX " in line[1]]
        stays = [section for section in code if not section.startswith(".init")]
        apart = " ".join(f"{section} : {{ {'_stext = .;' if section == '.text' else ''} *({section}) {'_etext = .;' if section == stays[-1] else ''} }}"
                         for section in stays)
        program = self.folder(name) / "program"
        return self.linked_by(f". = 0x10000; {apart} . = 0x100000; .init.text : {{ *(.init.text) }}", [module], program, linker)

    def rust(self, name, *flags):
        out = self.folder(name)
        run(tool("rustc"), "--edition", "2021", *flags, HERE / "work.rs", "-o", out / "program", cwd=out)
        return out / "program"

    def go(self, name, *flags, **environment):
        out = self.folder(name)
        shutil.copy(MIXED / "work.go", out / "main.go")
        (out / "go.mod").write_text("module example.com/work\n\ngo 1.19\n")
        run(tool("go"), "build", "-buildvcs=false", *flags, "-o", out / "program", ".", cwd=out, env=os.environ | environment)
        return out / "program"


def programs(builder, wanted):
    """Yields (name, path, path of the program that llvm-symbolizer reads). Makes one program after the other, so that a
    failure is seen early."""
    made = {}

    def program(name, make, same=None):
        if not wanted or any(name.startswith(w) for w in wanted):
            made[name] = make()
            yield name, made[name], same or made[name]

    for compiler, short in (("g++", "gcc"), ("clang++-19", "clang")):
        for source in ("containers.cc", "patterns.cc"):
            stem = source.split(".")[0]
            for level in ("-O0", "-O2", "-O3"):
                yield from program(f"{short}-{stem}{level}", lambda: builder.compiled(f"{short}-{stem}{level}", compiler, source, "-g", level))
        for version in (2, 3, 4, 5):
            name = f"{short}-dwarf{version}"
            yield from program(name, lambda: builder.compiled(name, compiler, "containers.cc", f"-gdwarf-{version}", "-O2"))
        yield from program(f"{short}-dwarf64", lambda: builder.compiled(f"{short}-dwarf64", compiler, "containers.cc", "-gdwarf-5", "-gdwarf64", "-O2"))
        for version in (4, 5):
            name = f"{short}-split{version}"
            yield from program(name, lambda: builder.compiled(name, compiler, "containers.cc", f"-gdwarf-{version}", "-gsplit-dwarf", "-O2"))
            if name in made:
                package = f"{short}-package{version}"
                yield from program(package, lambda: builder.changed(package, made[name], "sh", "-c",
                                                                    f"{tool('llvm-dwp-19')} -e {{}} -o {{}}.dwp && rm -f *.dwo"))
        yield from program(f"{short}-sections", lambda: builder.compiled(f"{short}-sections", compiler, "patterns.cc", "-g", "-O2", "-ffunction-sections",
                                                                         link=("-Wl,--gc-sections",)))
        yield from program(f"{short}-zlib", lambda: builder.compiled(f"{short}-zlib", compiler, "containers.cc", "-g", "-gz=zlib", "-O2"))
        yield from program(f"{short}-static", lambda: builder.compiled(f"{short}-static", compiler, "patterns.cc", "-g", "-O2", link=("-static",)))
        yield from program(f"{short}-no-pie", lambda: builder.compiled(f"{short}-no-pie", compiler, "tables.c" if short == "none" else "patterns.cc", "-g",
                                                                       "-O2", "-fno-pie", link=("-no-pie",)))
    for level in ("-O0", "-O2"):
        yield from program(f"gcc-c{level}", lambda: builder.compiled(f"gcc-c{level}", "gcc", "tables.c", "-g", level))
        yield from program(f"clang-c{level}", lambda: builder.compiled(f"clang-c{level}", "clang-19", "tables.c", "-g", level))
    yield from program("gcc-lto", lambda: builder.compiled("gcc-lto", "g++", "containers.cc", "-g", "-O3", "-flto", link=("-flto",)))
    yield from program("clang-lto", lambda: builder.compiled("clang-lto", "clang++-19", "containers.cc", "-g", "-O3", "-flto", link=("-flto", "-fuse-ld=lld-19")))
    yield from program("musl-static", lambda: builder.compiled("musl-static", "musl-gcc", "tables.c", "-g", "-O2", link=("-static",)))
    if "gcc-containers-O2" in made:
        origin = made["gcc-containers-O2"]
        objcopy = tool("llvm-objcopy-19")
        for codec in ("zlib", "zstd"):
            yield from program(f"objcopy-{codec}", lambda: builder.changed(f"objcopy-{codec}", origin, objcopy, f"--compress-debug-sections={codec}", "{}"))
        # llvm-symbolizer no longer supports this compression. It reads the original program.
        yield from program("objcopy-zlib-gnu", lambda: builder.changed("objcopy-zlib-gnu", origin, tool("objcopy"), "--compress-debug-sections=zlib-gnu", "{}"),
                           origin)
        # llvm-symbolizer does not find the entries that dwz moves. It reads the original program.
        yield from program("dwz", lambda: builder.changed("dwz", origin, tool("dwz"), "{}"), origin)
        yield from program("dwz-shared", lambda: builder.changed("dwz-shared", origin, "sh", "-c",
                                                                 f"cp {{}} other && {tool('dwz')} -m shared.debug {{}} other && rm other"), origin)
        yield from program("debug-file", lambda: builder.changed("debug-file", origin, tool("objcopy"), "--only-keep-debug", "{}"))
    for level in (1, 2):
        for optimized in (0, 3):
            name = f"rust-debug{level}-O{optimized}"
            yield from program(name, lambda: builder.rust(name, "-C", f"debuginfo={level}", "-C", f"opt-level={optimized}"))
    yield from program("rust-v0", lambda: builder.rust("rust-v0", "-C", "debuginfo=2", "-C", "opt-level=3", "-C", "symbol-mangling-version=v0"))
    yield from program("go", lambda: builder.go("go", CGO_ENABLED="0"))
    yield from program("go-plain", lambda: builder.go("go-plain", "-ldflags=-compressdwarf=false", CGO_ENABLED="0"))
    for own in ("tributary", "reducer"):
        yield from program(f"own-{own}", lambda: BIN / own)
    yield from kernel_programs(builder, program)
    yield from stripped_programs(builder, program)


def kernel_programs(builder, program):
    for compiler, short in (("gcc", "gcc"), ("clang-19", "clang")):
        yield from program(f"kernel-{short}", lambda: builder.kernel(f"kernel-{short}", compiler))
    ways = {"gcc": ("gcc", (), "ld"), "gcc-dwarf4": ("gcc", ("-gdwarf-4",), "ld"), "clang": ("clang-19", (), "ld.lld-19"),
            "clang-arm64": ("clang-19", ("--target=aarch64-linux-gnu",), "ld.lld-19")}
    # Modules as distributions ship them, and modules without code, as in their debug packages.
    changes = {"": None, "-zlib": ("--compress-debug-sections=zlib",), "-debug-file": ("--only-keep-debug",)}
    for way, (compiler, flags, linker) in ways.items():
        for suffix, change in changes.items():
            twin = None

            def made():
                nonlocal twin
                module = builder.module(f"plain-module-{way}{suffix}", compiler, *flags, linker=linker)
                twin = builder.loaded_module(f"twin-module-{way}{suffix}", module, linker)
                return builder.changed(f"module-{way}{suffix}", module, tool("llvm-objcopy-19"), *change, "{}") if change else module

            for each, path, _ in program(f"module-{way}{suffix}", made):
                yield each, path, twin


def stripped_programs(builder, program):
    twins = {"gcc-c": lambda to: builder.compiled(to, "gcc", "tables.c", "-O2"),
             "gcc": lambda to: builder.compiled(to, "g++", "containers.cc", "-O2"),
             "clang": lambda to: builder.compiled(to, "clang++-19", "containers.cc", "-O2"),
             # Without a search table, .eh_frame itself is read.
             "no-table": lambda to: builder.compiled(to, "g++", "patterns.cc", "-O2", link=("-Wl,--no-eh-frame-hdr",)),
             # Rust's own library comes with debug information.
             "rust": lambda to: builder.rust(to, "-C", "opt-level=3", "-C", "strip=debuginfo")}
    for name, make in twins.items():
        for way in ("mini", "bounds"):
            twin = None

            def made():
                nonlocal twin
                twin = make(f"twin-{way}-{name}")
                return (builder.mini if way == "mini" else builder.stripped)(f"{way}-{name}", twin)

            for each, path, _ in program(f"{way}-{name}", made):
                yield each, path, twin
    # A program can run without section headers.
    twin = BIN / "tributary"
    yield from program("bounds-no-sections", lambda: builder.changed("bounds-no-sections", builder.copied("twin-no-sections", twin), tool("llvm-objcopy-19"),
                                                                     "--strip-sections", "{}"), twin)


def functions_of(program):
    """Returns (address, size) of the functions, and the names of symbols by address."""
    ranges, names = [], {}
    for line in run("readelf", "-Ws", "--syms", program).splitlines():
        parts = line.split()
        if len(parts) < 8 or parts[3] not in ("FUNC", "IFUNC") or parts[6] in ("UND", "ABS"):
            continue
        address, size = int(parts[1], 16), int(parts[2], 0)
        names.setdefault(address, set()).add(parts[7].split("@")[0])
        if size > 0:
            ranges.append((address, size))
    return sorted(set(ranges)), names


def draw(ranges, count):
    """Draws addresses. Each byte of code has the same probability, as in samples."""
    generator = random.Random(1)
    weights = [size for _, size in ranges]
    chosen = generator.choices(ranges, weights, k=count)
    return sorted({address + generator.randrange(size) for address, size in chosen})


def path_of(name):
    return os.path.normpath(name) if name else ""


def resolve(program, addresses):
    """Returns the frames of each address."""
    out = run(BIN / "tributary", "symbols", "resolve", "--json", program, input="".join(f"{a:x}\n" for a in addresses))
    *answers, left_out = [json.loads(line) for line in out.splitlines()]
    # No program of this test is damaged, and the files that belong to split units are next to the program.
    if any(left_out[key] for key in ("left_out", "malformed_units", "missing_split_units")):
        print(f"    {program}: {left_out}")
    return [answer["frames"] for answer in answers]


def ours(program, addresses):
    return [[(f["function"], path_of(f["file"]), f["line"]) for f in frames] for frames in resolve(program, addresses)]


def theirs(program, addresses):
    out = run(tool("llvm-symbolizer-19"), f"--obj={program}", "--functions=linkage", "--inlines", "--output-style=JSON", "--no-demangle",
              input="".join(f"0x{a:x}\n" for a in addresses))
    return [[(s["FunctionName"], path_of(s["FileName"]), s["Line"]) for s in json.loads(line)["Symbol"]] for line in out.splitlines()]


def plain(name):
    return SPLIT_OFF.sub("", name)


def frame_entries(program):
    """Returns the sorted (begin, end) of the functions in .eh_frame."""
    eh_frame = run(tool("llvm-dwarfdump-19"), "--eh-frame", program)
    found = re.findall(r" FDE cie=\w+ pc=(\w+)\.\.\.(\w+)", eh_frame)
    return sorted((int(begin, 16), int(end, 16)) for begin, end in found if begin != end)


def compare_bounds(program, twin, count):
    """Compares only where functions start. Returns the same tuple as compare: (addresses, equal starts, equal starts,
    equal starts, differences)."""
    ranges, names = functions_of(twin)
    entries = frame_entries(twin)
    low, high = entries[0][0], max(end for _, end in entries)
    generator = random.Random(2)
    anywhere = [generator.randrange(low, high + 64) for _ in range(count // 4)]
    addresses = sorted({*draw(ranges, count), *anywhere, *(begin for begin, _ in ranges)})
    answers = resolve(program, addresses)
    exported = {address for address, _ in functions_of(program)[0]}
    equal, differences, open_entries, rest = 0, [], [], entries[::-1]
    for address, answer in zip(addresses, answers):
        while rest and rest[-1][0] <= address:
            open_entries.append(rest.pop())
        around = [begin for begin, end in open_entries[-64:] if begin <= address < end]
        expected = around[-1] if around else None
        found = int(answer[-1]["start"], 16) if answer else None
        # A symbol of .dynsym takes precedence over bounds, and this test is about bounds.
        by_symbol = found in exported and answer[-1]["function"] in names[found]
        symbol_missed = address in names and found != address and not names[address] & NO_FDE
        good = by_symbol or (found == expected and not symbol_missed and (not answer or answer[-1]["function"] == ""))
        equal += good
        if not good:
            differences.append((address, answer, (expected, names.get(address))))
    return len(addresses), equal, equal, equal, differences


def dwarf_names(program, address):
    """Returns the names that DWARF has for the function at an address."""
    out = run(tool("llvm-dwarfdump-19"), f"--lookup={address:#x}", program)
    return set(re.findall(r'DW_AT_(?:linkage_name|name|abstract_origin|specification)\s*\((?:0x[0-9a-f]+ )?"([^"]+)"', out))


def compare_loaded(program, oracle, count):
    """Does the same as compare for code whose addresses count from _stext. Functions outside must have no name."""
    labels = {parts[2]: int(parts[0], 16) for parts in map(str.split, run("nm", oracle).splitlines())}
    begin, end = labels["_stext"], labels["_etext"]
    ranges, _ = functions_of(oracle)
    outside = [address for address, _ in ranges if not begin <= address < end]
    assert outside and len(outside) < len(ranges), (outside, ranges)
    named = [frames for frames in resolve(program, [(address - begin) % 2**64 for address in outside]) if frames]
    assert not named, named
    return compare(program, oracle, count, range(begin, end))


def compare(program, oracle, count, window=None):
    """Returns (addresses, equal leaf functions, equal lines, equal chains, differences)."""
    ranges, names = functions_of(oracle)
    if window:
        ranges = [(address, size) for address, size in ranges if address in window]
    addresses = draw(ranges, count)
    base = window.start if window else 0
    mine, others = ours(program, [address - base for address in addresses]), theirs(oracle, addresses)
    assert len(mine) == len(others) == len(addresses), (len(mine), len(others), len(addresses))
    leaf = line = chain = 0
    differences = []
    starts = sorted(ranges)
    for address, a, b in zip(addresses, mine, others):
        own = {n for start, size in starts if start <= address < start + size for n in names[start]}

        def same_name(x, y, outermost):
            if plain(x) == plain(y):
                return True
            return outermost and y in own and (x in own or x in dwarf_names(oracle, address))

        def same_line(x, y):
            # Line 0 means that no line is known. The files need not be equal then.
            return x[1:] == y[1:] or x[2] == y[2] == 0

        if not a or not b:
            differences.append((address, a, b))
            continue
        is_leaf = same_name(a[0][0], b[0][0], len(b) == 1)
        is_line = same_line(a[0], b[0])
        is_chain = len(a) == len(b) and all(same_name(x[0], y[0], i == len(b) - 1) and same_line(x, y) for i, (x, y) in enumerate(zip(a, b)))
        leaf, line, chain = leaf + is_leaf, line + is_line, chain + is_chain
        if not (is_leaf and is_line and is_chain):
            differences.append((address, a, b))
    return len(addresses), leaf, line, chain, differences


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--addresses", type=int, default=1000)
    parser.add_argument("--keep", type=pathlib.Path, help="keep the programs in this folder")
    parser.add_argument("--show", type=int, default=3, help="differences to print for each program")
    options = parser.parse_args()
    failed, count, totals = [], 0, [0, 0, 0, 0]
    with tempfile.TemporaryDirectory() as temporary:
        home = options.keep or pathlib.Path(temporary)
        for name, program, oracle in programs(Builder(home), options.names):
            of = {"bounds": compare_bounds, "kernel": compare_loaded, "module": compare_loaded}.get(name.split("-")[0], compare)
            n, leaf, line, chain, differences = of(program, oracle, options.addresses)
            count += 1
            totals = [a + b for a, b in zip(totals, (n, leaf, line, chain))]
            good = leaf >= LEAF_LEAST * n and line >= LINE_LEAST * n and chain >= CHAIN_LEAST * n
            print(f"{name:24} {n:6} addresses  leaf {leaf / n:8.3%}  line {line / n:8.3%}  chain {chain / n:8.3%}{'' if good else '  FAILS'}", flush=True)
            for address, a, b in differences[: options.show if not good else 0]:
                print(f"    {address:x}\n      ours   {a}\n      theirs {b}")
            if not good:
                failed.append(name)
    n = max(1, totals[0])
    print(f"{count} programs, {totals[0]} addresses: leaf {totals[1] / n:.3%}, line {totals[2] / n:.3%}, chain {totals[3] / n:.3%}")
    if failed or count == 0:
        sys.exit(f"FAILED: {', '.join(failed) or 'no program'}")


if __name__ == "__main__":
    main()
