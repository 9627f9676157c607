"""Tests hostile neighbours: garbage on the intake port, names that break pages and terminals, a malformed executable.

Each is refused or escaped, and counted. The healthy node's data stay correct.
"""

import json
import os
import shutil
import socket
import struct
import subprocess
import time

import lib

HOSTILE_COMM = b'<b>"\x1b[2J\'\n;&'


def refused(reducer):
    return reducer.metric("tributary_intake_refusals_total")


def garbage_clients(port):
    header = struct.pack("<IBBBBQII", 0x59425254, 1, 1, 0, 0, 0, 100, 100)
    yield b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(200)
    yield os.urandom(4096)
    yield header + b"\0" * 8 + os.urandom(100)  # wrong checksum
    yield struct.pack("<IBBBBQII", 0x59425254, 1, 1, 0, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF) + b"\0" * 8  # 4 GiB
    yield struct.pack("<IBBBBQII", 0x59425254, 99, 1, 0, 0, 0, 10, 10) + b"\0" * 18  # another version
    yield header[:10]  # truncated, then closed


def garbage_on_the_intake_port():
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=199, args=["--batch-interval", "1s"])
        programs.append(collector)
        lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
        sent = 0
        silent = [socket.create_connection(("127.0.0.1", reducer.intake_port)) for _ in range(20)]
        for garbage in garbage_clients(reducer.intake_port):
            with socket.create_connection(("127.0.0.1", reducer.intake_port)) as s:
                s.sendall(garbage)
                s.shutdown(socket.SHUT_WR)
                s.settimeout(15)
                try:
                    while s.recv(4096):
                        pass
                except ConnectionResetError:
                    pass
                sent += 1
        count = lib.wait_for("refusals to be counted", lambda: refused(reducer) >= sent - 1 and refused(reducer), 20)
        print(f"  {sent} garbage clients, {count:.0f} refusals counted")
        stored = reducer.status()["total"]["stored"]
        lib.wait_for("the healthy node to go on", lambda: reducer.status()["total"]["stored"] > stored, 20)
        for s in silent:
            s.close()
        lib.check(collector.stop() == 0, "the collector's exit code")
        lib.check_law(reducer.status(), lost=0)
        lib.check(reducer.stop() == 0, "the reducer's exit code")


def spin(directory, executable, comm=None, seconds=4):
    """Runs a copy of the truth program under another name."""
    code = "import os,sys;os.execv(sys.argv[1],[sys.argv[1],sys.argv[2]])"
    if comm is None:
        return subprocess.Popen([executable, str(seconds)], stdout=subprocess.DEVNULL)
    # execve sets comm to the file's base name. So a hostile command name needs a hostile file name.
    path = os.path.join(os.fsencode(directory), comm.replace(b"/", b"_"))
    shutil.copy(executable, path)
    return subprocess.Popen([b"python3", b"-c", code.encode(), path, str(seconds).encode()], stdout=subprocess.DEVNULL)


def lying_copy(directory):
    """Copies the truth program and sets impossible sizes in its section headers.

    The copy runs, but its symbols cannot be read.
    """
    data = bytearray((lib.BIN / "truth").read_bytes())
    shoff, = struct.unpack_from("<Q", data, 40)
    shentsize, shnum = struct.unpack_from("<HH", data, 58)
    for i in range(1, shnum):
        struct.pack_into("<QQ", data, shoff + i * shentsize + 24, (1 << 62) + i, (1 << 63) + 12345)  # sh_offset, sh_size
    # Set another build-id. Otherwise the reducer would find the original program's names.
    marker = b"GNU\0"
    at = data.index(marker) if data.find(b"\x03\0\0\0" + marker) >= 0 else -1
    at = data.index(b"\x03\0\0\0" + marker) + 8 if at >= 0 else -1
    lib.check(at > 0, "no build-id in the truth program")
    data[at:at + 20] = bytes(range(20))
    path = directory / "liar"
    path.write_bytes(bytes(data))
    path.chmod(0o755)
    return path


def hostile_names_and_files():
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        start = lib.now_ms()
        collector = lib.Collector(d, reducer.intake_port, rate=199, args=["--batch-interval", "1s"])
        programs.append(collector)
        lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
        children = [spin(d, lib.BIN / "truth", HOSTILE_COMM), spin(d, lying_copy(d)), spin(d, lib.BIN / "truth")]
        for child in children:
            lib.check(child.wait() == 0, "a workload's exit code")
        time.sleep(0.5)
        lib.check(collector.stop() == 0, "the collector's exit code")
        end = lib.now_ms() + 1000

        # The names arrive as data: escaped in text, and never as raw control bytes.
        raw = reducer.get("/api/v1/series", **{"from": start, "to": end}).decode()
        lib.check("<b>" not in raw and "\x1b" not in raw, "raw markup or control bytes in JSON")
        commands = [p["command"] for p in json.loads(raw)["processes"]]
        lib.check(any(c.startswith("<b>") for c in commands), f"the hostile command name is missing: {commands[:20]}")
        table = subprocess.run([lib.BIN / "tributary", "top", "--server", reducer.url, "--from", str(start), "--to", str(end)],
                               check=True, capture_output=True).stdout
        lib.check(b"\x1b" not in table, "control bytes on the terminal")
        html = subprocess.run([lib.BIN / "tributary", "flamegraph", "--server", reducer.url, "--from", str(start), "--to", str(end),
                               "--format", "html", "--out", "-"], check=True, capture_output=True).stdout
        lib.check(b'<b>"' not in html, "raw markup in the HTML")
        lib.check(b"\x1b" not in collector.log_path.read_bytes() + reducer.log_path.read_bytes(), "control bytes in a log")

        # The malformed program's samples are stored without names. The original program's samples have names.
        liar = reducer.flamegraph('{process_executable_name="liar"}', start, end)
        lib.check(liar.total_count[0] > 100, "the liar's samples are missing")
        lib.check(liar.count_of("hash_blocks") == 0, "the liar's frames have names from somewhere")
        honest = lib.wait_for("names", lambda: named(reducer, start, end), 20)
        lib.check(honest.count_of("hash_blocks") > 100, "the honest program's frames have no names")
        lib.check_law(reducer.status())
        lib.check(reducer.stop() == 0, "the reducer's exit code")


def named(reducer, start, end):
    graph = reducer.flamegraph('{process_executable_name="truth"}', start, end)
    return graph if graph.count_of("hash_blocks") else None


if __name__ == "__main__":
    lib.main(garbage_on_the_intake_port, hostile_names_and_files)
