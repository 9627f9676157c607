"""Tests that two builds make the same release: every file has the same bytes.

The builds use two clones in two folders. The second build uses no ccache.
"""

import os
import pathlib
import subprocess
import tempfile

import made
from made import check

SCRATCH = pathlib.Path(os.environ.get("TRIBUTARY_SCRATCH") or "/var/tmp")


def release(folder, **environment):
    """Clones the project into `folder` and makes a release there. Returns the bytes of its files by name."""
    subprocess.run(["git", "clone", "--quiet", made.SOURCE, folder], check=True)
    result = subprocess.run([folder / "dev/release", "--arch", "amd64", "--out", folder / "build/dist"], check=False, capture_output=True,
                            text=True, env=os.environ | environment)
    check(result.returncode == 0, f"dev/release: {result.stderr}")
    return {path.name: path.read_bytes() for path in (folder / "build/dist").iterdir()}


def two_builds_are_identical():
    with tempfile.TemporaryDirectory(prefix="tributary-same-", dir=SCRATCH) as d:
        one = release(pathlib.Path(d) / "one")
        other = release(pathlib.Path(d) / "another folder/with a longer name", CCACHE_DISABLE="1", TZ="Asia/Kathmandu", LANG="C")
        check(len(one) > 12, f"the release has {sorted(one)}")
        check(one.keys() == other.keys(), f"one build has {sorted(one.keys() ^ other.keys())} and the other has not")
        differing = [name for name in one if one[name] != other[name]]
        check(not differing, f"these differ: {differing}")
        print(f"{len(one)} files, {sum(map(len, one.values())) >> 20} MiB, all the same")


if __name__ == "__main__":
    made.main(two_builds_are_identical)
