"""How the scripts of this folder fail: one sentence that says what to do, exit status 1, nothing under a final name."""

import pathlib
import subprocess
import sys


class Failure(Exception):
    """Its text is the whole message."""


def run_main(main):
    """Runs main() and turns failures into their one sentence."""
    name = pathlib.Path(sys.argv[0]).name
    try:
        main()
    except Failure as failure:
        sys.exit(f"{name}: {failure}")
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(f"{name}: {where}{error.strerror}; nothing was made, mend this and run {name} again")
    except subprocess.CalledProcessError as error:
        said = (error.stderr or "").strip().splitlines()
        sys.exit(f"{name}: {error.cmd[0]} failed{': ' + said[-1] if said else ''}; nothing was made, mend this and run {name} again")
