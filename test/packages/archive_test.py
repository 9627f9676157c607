"""Tests that the archives run from any folder of a root file system that has only glibc."""

import pathlib
import subprocess
import tarfile
import tempfile

import bare_root
import made
import profiling
from made import check

FOLDER = "opt/a folder of somebody's"


def content(path, work):
    """Unpacks an archive into `work`. Returns name → bytes of every file."""
    subprocess.run(["tar", "-xaf", path, "-C", work], check=True)
    return {str(file.relative_to(work)): file.read_bytes() for file in work.rglob("*") if file.is_file()}


def runs_from_any_folder():
    with tempfile.TemporaryDirectory(prefix="tributary-archive-") as d, bare_root.bare_root() as root:
        work = pathlib.Path(d)
        gz, zst = made.script("archive.py", "--out", work)
        target = root / FOLDER
        target.mkdir(parents=True)
        (work / "zst").mkdir()
        check(content(gz, target) == content(zst, work / "zst"), "the two archives differ")
        with tarfile.open(gz) as archive:
            members = archive.getmembers()
        check(all((m.uid, m.gid, m.uname) == (0, 0, "root") for m in members), "not everything belongs to root")
        check(len({m.mtime for m in members}) == 1, "files have different times")
        check(not any(m.mode & 0o022 for m in members), "others may write files")
        home = next(target.iterdir())
        programs = f"/{home.relative_to(root)}/bin"
        for name in made.COMPONENTS:
            for library in bare_root.libraries(root, f"{programs}/{name}"):
                check(library.startswith("/lib") or "/bin/../lib/tributary/" in library, f"{name} loads {library}")
        profiling.profiles(root, programs)


if __name__ == "__main__":
    made.main(runs_from_any_folder)
