"""Handles failures of the scripts in this folder.

A script that fails prints one sentence that says what to do. Its exit status is not 0, and it leaves no file under a
final name.
"""

import argparse
import difflib
import pathlib
import sys


class Failure(Exception):
    """Its text is the whole message."""


class Parser(argparse.ArgumentParser):
    """Reports a wrong command line in one sentence. Exit status 2."""

    def error(self, message):
        wrong = message.removeprefix("unrecognized arguments: ").split()[0] if message.startswith("unrecognized") else ""
        known = [name for action in self._actions for name in action.option_strings]
        near = difflib.get_close_matches(wrong, known, 1)
        self.exit(2, f"{self.prog}: {message}; " + (f"did you mean {near[0]}?" if near else f"{self.prog} --help lists the options") + "\n")


def run_main(main, name=None):
    """Runs main(). Prints a failure as one sentence that begins with the script's name."""
    name = name or pathlib.Path(sys.argv[0]).name
    try:
        main()
    except Failure as failure:
        sys.exit(f"{name}: {failure}")
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.exit(f"{name}: {where}{error.strerror}; nothing was made; fix this, and run {name} again")
