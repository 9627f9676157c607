"""The embedded page in a real browser, on real data: test/browser/live.mjs clicks where the API's shares say the functions are."""

import os
import pathlib
import re
import subprocess

import lib

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCREENSHOTS = pathlib.Path(os.environ["TRIBUTARY_BUILD"]) / "screenshots"


def page():
    SCREENSHOTS.mkdir(exist_ok=True)
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d, args=["--source-dir", SOURCE])
        programs.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=499, args=["--batch-interval", "1s"])
        programs.append(collector)
        lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
        lib.run_truth(10)
        lib.check(collector.stop() == 0, "the collector's exit code")
        result = subprocess.run(
            ["node", os.environ["BROWSER_TOOLS"] + "/live.mjs", "--url", reducer.url, "--from=-45s", "--executable", "truth", "--functions",
             "hash_blocks,sort_rows,parse_text", "--upload", lib.BIN / "truth", "--screenshot", SCREENSHOTS / "filtered.png", "--screenshot-all",
             SCREENSHOTS / "page.png", "--screenshot-lines", SCREENSHOTS / "lines.png"], capture_output=True, text=True, timeout=240, check=False)
        print("  " + "\n  ".join((result.stdout + result.stderr).strip().splitlines()))
        lib.check(result.returncode == 0, "the page does not agree with the API")
        with_text = [int(n) for n in re.findall(r"lines of hash_blocks: \d+, (\d+) with text", result.stdout)]
        lib.check(len(with_text) == 2 and with_text[0] == 0 < with_text[1], f"lines with text before and after the upload: {with_text}")
        lib.check((SCREENSHOTS / "page.png").stat().st_size > 20_000, "no screenshot")
        lib.check(reducer.stop() == 0, "the reducer's exit code")


if __name__ == "__main__":
    lib.main(page)
