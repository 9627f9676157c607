"""What the benches do with their figures and verdicts."""

import json
import pathlib
import subprocess
import sys

import measure  # first: it finds lib
import lib

HISTORY = pathlib.Path(__file__).resolve().parent / "history.jsonl"


def commit_name():
    command = ["git", "-c", "safe.directory=*", "-C", lib.SOURCE, "describe", "--always", "--dirty"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def append_history(figures, commit, reference=None):
    """Appends the figures, (name, value, unit), with the current speed of this machine (measure.reference_ns)."""
    reference = measure.reference_ns() if reference is None else reference
    with open(HISTORY, "a", encoding="utf-8") as history:
        for figure, value, unit in figures:
            history.write(json.dumps({"commit": commit, "figure": figure, "value": round(value, 4), "unit": unit,
                                      "reference": round(reference, 2)}) + "\n")


def print_verdicts(verdicts):
    for statement, holds in verdicts:
        print(f"{'holds' if holds else 'FAILS'}  {statement}")


def exit_with(verdicts):
    """Ends the process. Each verdict is (statement, holds)."""
    sys.exit(0 if all(holds for _, holds in verdicts) else 1)
