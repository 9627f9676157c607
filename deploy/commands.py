"""Starts other programs. A program that is missing or fails is a Failure."""

import os
import subprocess
import sys

from failure import Failure


def run(*command, **options):
    """Runs a command and returns its output. Raises Failure."""
    command = [str(word) for word in command]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    except FileNotFoundError as error:
        raise Failure(f"{command[0]} is not installed; run dev/deps --packages") from error
    if result.returncode != 0:
        raise Failure(f"{command[0]} failed: {last_line(result)}; nothing was made; fix this, and start again")
    return result.stdout


def run_script(path, *arguments):
    """Runs a Python script of this project. If it fails, its last line says what to do and is the whole Failure."""
    result = subprocess.run([sys.executable, path, *map(str, arguments)], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Failure(last_line(result))


def last_line(result):
    return (result.stderr.strip() or result.stdout.strip() or f"exit status {result.returncode}").splitlines()[-1]


def reproducible_environment(epoch):
    """Returns an environment for programs whose output depends on the time, the language or the time zone."""
    return os.environ | {"SOURCE_DATE_EPOCH": str(epoch), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
