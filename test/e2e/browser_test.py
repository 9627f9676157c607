"""Tests the embedded page in a real browser with real data.

test/browser/live.mjs computes the place of each function from the API's shares and clicks there. A made-up node sends
samples of a second type, in another unit.
"""

import os
import pathlib
import re
import subprocess
import sys

import lib
import process_lives

sys.path.insert(0, str(lib.SOURCE / "test" / "k8s"))
import node  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCREENSHOTS = pathlib.Path(os.environ["TRIBUTARY_BUILD"]) / "screenshots"


def allocate(reducer, log):
    made_up = node.Node("allocating", reducer.intake_port, log)
    try:
        start = lib.now_ms() * 1_000_000
        for function, samples in (("grow(buffer)", 30), ("parse(line)", 10)):
            times = [start - i * 100_000_000 for i in range(samples)]
            made_up.sample(7, "/usr/bin/server", "/", "", times, type="alloc_space", unit="bytes", value=65_536, frame={"kind": "go", "name": function})
        lib.check(made_up.stop() == 0, "the samples of the second type were not taken")
    finally:
        made_up.kill()


def page():
    SCREENSHOTS.mkdir(exist_ok=True)
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d, args=["--source-dir", SOURCE])
        programs.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=499, args=["--batch-interval", "1s"])
        programs.append(collector)
        lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
        process_lives.run(1, 60)
        process_lives.run(2, 20, "--kinds", "signal")
        process_lives.run(3, 1, "--kinds", "oom")
        lib.run_truth(10)
        lib.check(collector.stop() == 0, "the collector's exit code")
        with open(d / "node.log", "w", encoding="utf-8") as log:
            allocate(reducer, log)
        result = subprocess.run(
            ["node", os.environ["BROWSER_TOOLS"] + "/live.mjs", "--url", reducer.url, "--from=-45s", "--executable", "truth", "--functions",
             "hash_blocks,sort_rows,parse_text", "--upload", lib.BIN / "truth", "--screenshot", SCREENSHOTS / "filtered.png", "--screenshot-all",
             SCREENSHOTS / "page.png", "--screenshot-lines", SCREENSHOTS / "lines.png", "--type",
             "alloc_space:bytes", "--screenshot-type", SCREENSHOTS / "type.png", "--events", "--screenshot-events", SCREENSHOTS / "events.png"],
            capture_output=True, text=True, timeout=240, check=False)
        print("  " + "\n  ".join((result.stdout + result.stderr).strip().splitlines()))
        lib.check(result.returncode == 0, "the page does not agree with the API")
        lib.check(re.search(r"process events: [1-9]\d* crashes, 1 OOM kills", result.stdout), "the page shows no crash or no OOM kill")
        with_text = [int(n) for n in re.findall(r"lines of hash_blocks: \d+, (\d+) with text", result.stdout)]
        lib.check(len(with_text) == 2 and with_text[0] == 0 < with_text[1], f"lines with text before and after the upload: {with_text}")
        lib.check((SCREENSHOTS / "page.png").stat().st_size > 20_000, "no screenshot")
        lib.check(reducer.stop() == 0, "the reducer's exit code")


if __name__ == "__main__":
    lib.main(page)
