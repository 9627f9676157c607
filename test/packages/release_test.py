"""Tests errors of dev/release and of the scripts that make packages.

They must refuse bad input in one sentence and must leave no unfinished files.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import made
from made import check

ROOT = [] if os.geteuid() == 0 else ["sudo", "-n"]


def git(folder, *words):
    subprocess.run(["git", "-C", folder, "-c", "user.name=test", "-c", "user.email=test@localhost", *words], check=True, capture_output=True)


def source_tree(folder):
    """Makes a git repository with the files that dev/release reads before it builds."""
    for name in ("dev", "deploy", "build-env"):
        shutil.copytree(made.SOURCE / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("CMakeLists.txt", "CHANGELOG.md", "LICENSE"):
        shutil.copy(made.SOURCE / name, folder / name)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "all")
    # dev/deps does nothing here: its packages are already installed.
    (folder / "dev/deps").write_text("#!/bin/sh\n")
    git(folder, "commit", "--quiet", "-am", "no packages")


def refused(folder, *words, **environment):
    """Checks that dev/release fails and leaves no files. Returns the last line that it prints to standard error."""
    before = sorted(path for path in folder.rglob("*") if ".git" not in path.parts)
    result = subprocess.run([sys.executable, folder / "dev/release", *map(str, words)], capture_output=True, text=True, check=False,
                            env=os.environ | environment)
    check(result.returncode != 0, f"dev/release {words} was not refused")
    lines = result.stderr.strip().splitlines()
    check(lines and lines[-1].startswith("dev/release: "), f"dev/release {words}: {result.stderr}")
    check("Traceback" not in result.stderr, result.stderr)
    after = sorted(path for path in folder.rglob("*") if ".git" not in path.parts)
    check([path for path in after if path not in before and path != folder / "build"] == [], f"dev/release {words} left files")
    return lines[-1]


def bad_input_of_a_release():
    with tempfile.TemporaryDirectory(prefix="tributary-release-") as d:
        folder = pathlib.Path(d) / "source"
        folder.mkdir()
        source_tree(folder)
        check("did you mean --arch" in refused(folder, "--arhc", "amd64"), "an unknown option's nearest is not named")
        check("did you mean arm64" in refused(folder, "--arch", "arm46"), "an unknown architecture's nearest is not named")
        check("no commit v9" in refused(folder, "--commit", "v9"), "an unknown commit is not named")
        busy = pathlib.Path(d) / "busy"
        busy.mkdir()
        (busy / "thesis").write_text("important")
        check("not from a release" in refused(folder, "--out", busy), "a folder with other files is not refused")
        check((busy / "thesis").exists(), "a file of somebody's is gone")
        (pathlib.Path(d) / "file").write_text("")
        check("file" in refused(folder, "--out", pathlib.Path(d) / "file/dist"), "an output folder that cannot be made is not named")
        # A build that fails: the first cmake on PATH is a script that fails.
        tools = pathlib.Path(d) / "bin"
        tools.mkdir()
        (tools / "cmake").write_text("#!/bin/sh\necho broken compiler\nexit 1\n")
        (tools / "cmake").chmod(0o755)
        check("building package failed" in refused(folder, PATH=f"{tools}:{os.environ['PATH']}"), "a failed build is not named")
        (folder / "LICENSE").write_text("changed")
        check("--allow-modified" in refused(folder), "changes that are not committed are not refused")
        git(folder, "checkout", "--quiet", "LICENSE")
        (folder / "CHANGELOG.md").write_text("# Changelog\n")
        git(folder, "commit", "--quiet", "-am", "no changes")
        check("CHANGELOG.md has no section" in refused(folder), "a missing section of the changelog is not named")
        shutil.rmtree(folder / ".git")
        check("clone the repository" in refused(folder), "a tree without history is not named")


def packed(script, *words):
    return subprocess.run([sys.executable, made.SOURCE / "deploy/packages" / script, *map(str, words)], capture_output=True, text=True, check=False)


def bad_input_of_a_package():
    with tempfile.TemporaryDirectory(prefix="tributary-release-") as d:
        out = pathlib.Path(d) / "out"
        for script in ("deb.py", "rpm.py"):
            for words, expected in ((["--build", d, "--component", "reducer", "--out", out], "is missing: build it first"),
                                    (["--build", made.build_folder(), "--component", "reduce", "--out", out], "the components are")):
                result = packed(script, *words)
                check(result.returncode == 1 and expected in result.stderr and len(result.stderr.splitlines()) == 1,
                      f"{script} {words}: {result.stderr}")
        check(not out.exists() or not any(out.iterdir()), "a package was begun")


def full_disk():
    with tempfile.TemporaryDirectory(prefix="tributary-release-") as d:
        small = pathlib.Path(d) / "small"
        small.mkdir()
        subprocess.run([*ROOT, "mount", "-t", "tmpfs", "-o", f"size=4k,uid={os.geteuid()}", "tmpfs", small], check=True)
        try:
            for script, words in (("deb.py", ["--component", "reducer"]), ("rpm.py", ["--component", "reducer"]), ("archive.py", [])):
                result = packed(script, "--build", made.build_folder(), "--out", small, *words)
                check(result.returncode == 1 and len(result.stderr.splitlines()) == 1, f"{script}: {result.stderr}")
                check("No space left" in result.stderr, f"{script} does not say that the disk is full: {result.stderr}")
                check(not any(small.iterdir()), f"{script} left {list(small.iterdir())}")
        finally:
            subprocess.run([*ROOT, "umount", "-l", small], check=True)


if __name__ == "__main__":
    made.main(bad_input_of_a_release, bad_input_of_a_package, full_disk)
