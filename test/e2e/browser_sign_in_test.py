"""Signs in to a real reducer with the embedded page in a real browser (test/browser/sign_in.mjs)."""

import os
import pathlib
import subprocess
import sys
import tempfile

import lib

sys.path.insert(0, str(lib.SOURCE / "test" / "k8s"))
import node  # noqa: E402

SCREENSHOTS = pathlib.Path(os.environ["TRIBUTARY_BUILD"]) / "screenshots"
RIGHTS = {"ann": "admin", "ben": "read", "cleo": "send"}


def send_samples(reducer, log):
    made_up = node.Node("worker", reducer.intake_port, log)
    try:
        start = lib.now_ms() * 1_000_000
        made_up.sample(7, "/usr/bin/server", "/", "", [start - i * 100_000_000 for i in range(40)])
        lib.check(made_up.stop() == 0, "the samples were not taken")
    finally:
        made_up.kill()


def browser_signs_in():
    SCREENSHOTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tributary-e2e-") as path, lib.programs() as programs:
        d = pathlib.Path(path)
        tokens = d / "tokens"
        tokens.touch(mode=0o600)
        tokens.write_text("".join(f"{os.urandom(16).hex()} {rights} {name}\n" for name, rights in RIGHTS.items()))
        # Only a reducer that listens on loopback alone needs no sign-in.
        reducer = lib.Reducer(d, http_host="0.0.0.0", args=["--http-token-file", tokens])
        programs.append(reducer)
        with open(d / "node.log", "w", encoding="utf-8") as log:
            send_samples(reducer, log)
        result = subprocess.run(
            ["node", os.environ["BROWSER_TOOLS"] + "/sign_in.mjs", "--url", f"http://127.0.0.1:{reducer.http_port}", "--token-file", tokens,
             "--upload", lib.BIN / "truth", "--screenshot", SCREENSHOTS], capture_output=True, text=True, timeout=240, check=False)
        print("  " + "\n  ".join((result.stdout + result.stderr).strip().splitlines()))
        lib.check(result.returncode == 0, "the page does not sign in as it should")
        text = reducer.text()
        lib.check(not any(line.split()[0] in text for line in tokens.read_text().splitlines()), "the log contains a token")
        lib.check(reducer.stop() == 0, "the reducer's exit code")


if __name__ == "__main__":
    lib.main(browser_signs_in)
