"""The embedded page in a real browser, on real data: test/browser/live.mjs clicks where the API's shares say the functions are."""

import os
import pathlib
import subprocess

import lib

SCREENSHOTS = pathlib.Path(os.environ["TRIBUTARY_BUILD"]) / "screenshots"


def page():
    SCREENSHOTS.mkdir(exist_ok=True)
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=499, args=["--batch-interval", "1s"])
        programs.append(collector)
        lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
        lib.run_truth(10)
        lib.check(collector.stop() == 0, "the collector's exit code")
        result = subprocess.run(
            ["node", os.environ["BROWSER_TOOLS"] + "/live.mjs", "--url", reducer.url, "--from=-45s", "--executable", "truth", "--functions",
             "hash_blocks,sort_rows,parse_text", "--upload", lib.BIN / "truth", "--screenshot", SCREENSHOTS / "filtered.png", "--screenshot-all",
             SCREENSHOTS / "page.png"], capture_output=True, text=True, timeout=240, check=False)
        print("  " + "\n  ".join((result.stdout + result.stderr).strip().splitlines()))
        lib.check(result.returncode == 0, "the page does not agree with the API")
        lib.check((SCREENSHOTS / "page.png").stat().st_size > 20_000, "no screenshot")
        lib.check(reducer.stop() == 0, "the reducer's exit code")


if __name__ == "__main__":
    lib.main(page)
