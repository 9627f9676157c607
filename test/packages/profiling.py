"""Checks that programs in a root file system profile this machine. Starts a reducer and a kernel-collector there."""

import contextlib
import json
import pathlib
import subprocess
import sys
import time
import urllib.request

import bare_root
from made import check

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
WAIT_S = 120


@contextlib.contextmanager
def started(root, log, *words):
    """Runs a program of the root in the background. At the end the program gets SIGTERM and must exit with 0."""
    with open(log, "wb") as out:
        process = subprocess.Popen(bare_root.command(root, *words), stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        yield process
        subprocess.run([*bare_root.ROOT, "kill", str(process.pid)], check=True)
        check(process.wait(30) == 0, f"{words[0]}:\n{log.read_text()}")
    finally:
        if process.poll() is None:
            subprocess.run([*bare_root.ROOT, "kill", "-9", str(process.pid)], check=False)
            process.wait()


def wait_for(description, condition, log):
    deadline = time.monotonic() + WAIT_S
    while not (value := condition()):
        check(time.monotonic() < deadline, f"{WAIT_S} s in vain for {description}:\n{log.read_text()}")
        time.sleep(0.2)
    return value


def status(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/status", timeout=30) as answer:
        return json.load(answer)


def profiles(root, folder):
    """Checks that the programs in `folder` of the root receive, store and show samples of this machine."""
    import lib  # needs TRIBUTARY_BIN

    lib.mount_bpffs()
    lib.forget_collectors()
    ports = root / "data/ports"
    with started(root, root / "data/reducer.log", f"{folder}/reducer", "--data-dir", "/data", "--intake-listen", "127.0.0.1:0",
                 "--http-listen", "127.0.0.1:0", "--ports-file", "/data/ports"):
        wait_for("the reducer's ports", ports.exists, root / "data/reducer.log")
        found = json.loads(ports.read_text())
        log = root / "data/collector.log"
        with started(root, log, f"{folder}/kernel-collector", "--intake-port", found["intake"], "--sample-rate", 99, "--batch-interval", "1s"):
            wait_for("samples", lambda: status(found["http"])["total"]["stored"] > 100, log)
        shown = subprocess.run(bare_root.command(root, f"{folder}/tributary", "top", "--server", f"http://127.0.0.1:{found['http']}"),
                               capture_output=True, text=True, check=False)
        check(shown.returncode == 0 and len(shown.stdout.splitlines()) > 3, f"tributary top: {shown.stdout}{shown.stderr}")
        lib.check_law(status(found["http"]))
