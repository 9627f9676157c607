"""Names, inlined calls and lines of debug information, compared with llvm-symbolizer: one program for each way in which compilers, linkers and
packagers write it.

    symbol_oracle_test.py [--keep DIR] [--addresses N] [NAME…]

Addresses are drawn from functions' code by a fixed seed. An address counts as equal
- as a leaf function when the innermost linkage names are equal,
- as a line when file and line of the innermost frame are,
- as a chain when all frames are, in names, files and lines.
One normalisation: the outermost function may be called what .symtab calls it or what DWARF does, and a part that a compiler split off
(.cold, .part.0, .constprop.0, .isra.0, .llvm.N, .lto_priv.N) what the whole is called.
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
    """Makes a program in a folder of its own, and what stands beside it."""

    def __init__(self, home):
        self.home = home

    def folder(self, name):
        path = self.home / name
        path.mkdir(parents=True)
        return path

    def compiled(self, name, compiler, source, *flags, link=()):
        """Compiled and linked in two steps: split DWARF stays beside the object."""
        out = self.folder(name)
        source_file = shutil.copy(MIXED / source, out)
        run(tool(compiler), *flags, "-c", source_file, "-o", out / "program.o", cwd=out)
        run(tool(compiler), *flags, *link, out / "program.o", "-o", out / "program", cwd=out)
        return out / "program"

    def changed(self, name, program, *command):
        """A copy of a program after a command in which {} is its path."""
        out = self.folder(name)
        for each in program.parent.iterdir():
            shutil.copy(each, out)
        run(*[str(part).replace("{}", str(out / "program")) for part in command], cwd=out)
        return out / "program"

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
    """(name, path, path of the program to ask llvm-symbolizer about), one after the other, so that a failure is seen early."""
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
        # llvm-symbolizer has forgotten this way: it is asked about the program that this one was.
        yield from program("objcopy-zlib-gnu", lambda: builder.changed("objcopy-zlib-gnu", origin, tool("objcopy"), "--compress-debug-sections=zlib-gnu", "{}"),
                           origin)
        # What dwz moves elsewhere llvm-symbolizer does not follow.
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


def functions_of(program):
    """(address, size) of functions in code, and their names by address."""
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
    """Addresses, all code as likely, as samples come."""
    generator = random.Random(1)
    weights = [size for _, size in ranges]
    chosen = generator.choices(ranges, weights, k=count)
    return sorted({address + generator.randrange(size) for address, size in chosen})


def path_of(name):
    return os.path.normpath(name) if name else ""


def ours(program, addresses):
    out = run(BIN / "tributary", "symbols", "resolve", "--json", program, input="".join(f"{a:x}\n" for a in addresses))
    *answers, left_out = [json.loads(line) for line in out.splitlines()]
    # Nothing that is made here is damaged; what split units lack stands beside them.
    if any(left_out[key] for key in ("left_out", "malformed_units", "missing_split_units")):
        print(f"    {program}: {left_out}")
    return [[(f["function"], path_of(f["file"]), f["line"]) for f in answer["frames"]] for answer in answers]


def theirs(program, addresses):
    out = run(tool("llvm-symbolizer-19"), f"--obj={program}", "--functions=linkage", "--inlines", "--output-style=JSON", "--no-demangle",
              input="".join(f"0x{a:x}\n" for a in addresses))
    return [[(s["FunctionName"], path_of(s["FileName"]), s["Line"]) for s in json.loads(line)["Symbol"]] for line in out.splitlines()]


def plain(name):
    return SPLIT_OFF.sub("", name)


def dwarf_names(program, address):
    """What DWARF calls the function at an address."""
    out = run(tool("llvm-dwarfdump-19"), f"--lookup={address:#x}", program)
    return set(re.findall(r'DW_AT_(?:linkage_name|name|abstract_origin|specification)\s*\((?:0x[0-9a-f]+ )?"([^"]+)"', out))


def compare(program, oracle, count):
    """(addresses, equal leaf functions, lines, chains, differences)."""
    ranges, names = functions_of(program)
    addresses = draw(ranges, count)
    mine, others = ours(program, addresses), theirs(oracle, addresses)
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
            # A line of 0 is none, in whichever file.
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
    parser.add_argument("--keep", type=pathlib.Path, help="leave the programs there")
    parser.add_argument("--show", type=int, default=3, help="differences to print of each program")
    options = parser.parse_args()
    failed, count, totals = [], 0, [0, 0, 0, 0]
    with tempfile.TemporaryDirectory() as temporary:
        home = options.keep or pathlib.Path(temporary)
        for name, program, oracle in programs(Builder(home), options.names):
            n, leaf, line, chain, differences = compare(program, oracle, options.addresses)
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
