"""Reads and checks the Prometheus text format 0.0.4: its specification, and the rules of `promtool check metrics`."""

import re

import lib

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:{LABEL})(?:,{LABEL})*)\}})? (\S+)")
# Units that are not base units: https://prometheus.io/docs/practices/naming/
BAD_UNIT = re.compile(r"_(ms|us|ns|milliseconds|microseconds|nanoseconds|minutes|hours|kilobytes|megabytes)(_total)?$")


def parse(text):
    """Returns {name: {labels: value}}. Raises a Failure that names the wrong line."""
    lib.check(text.endswith("\n"), "the last line has no end")
    families, described, typed, current = {}, {}, {}, None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            current, _, help_text = line[7:].partition(" ")
            lib.check(current not in described, f"two HELP lines, or a family in two pieces: {line}")
            lib.check(help_text and re.fullmatch(NAME, current), f"HELP without a name or a text: {line}")
            described[current] = help_text
        elif line.startswith("# TYPE "):
            name, _, kind = line[7:].partition(" ")
            lib.check(name == current and name not in typed, f"TYPE does not follow its HELP: {line}")
            lib.check(kind in ("counter", "gauge"), f"unknown type: {line}")
            typed[name] = kind
            families[name] = {}
        else:
            match = SAMPLE.fullmatch(line)
            lib.check(match, f"not a sample: {line}")
            name, labels, value = match.groups()
            lib.check(name == current and name in typed, f"a sample outside of its family: {line}")
            lib.check(labels not in families[name], f"a series twice: {line}")
            float(value)
            families[name][labels] = float(value)
    for name, kind in typed.items():
        lib.check((kind == "counter") == name.endswith("_total"), f"{name} is a {kind}")
        lib.check(not BAD_UNIT.search(name), f"{name} has a unit that Prometheus does not use")
        lib.check(families[name], f"{name} has no samples")
        if kind == "counter":
            lib.check(all(value >= 0 for value in families[name].values()), f"{name} is negative")
    return families
