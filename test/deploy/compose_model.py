"""Reads the files of deploy/compose with docker compose's own parser (tools/main.go)."""

import functools
import json
import os
import pathlib
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
COMPOSE = SOURCE / "deploy/compose"
BASE = "compose.yaml"
# What the page says about each other file, in the order of `docker compose -f`.
OVERRIDES = ("compose.tls.yaml", "compose.docker-names.yaml", "compose.old-docker.yaml", "compose.host-network.yaml")


class Refused(Exception):
    """Its text is the message of the parser."""


def build(name):
    """Returns the path of a program of build.sh."""
    result = subprocess.run([SOURCE / "test/deploy/build.sh", name], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise AssertionError(f"build.sh {name}:\n{result.stderr[-3000:]}")
    return pathlib.Path(result.stdout.splitlines()[-1])


@functools.cache
def tools():
    return build("tools")


def _read(*arguments, environment=()):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRIBUTARY_", "COMPOSE_", "DOCKER_"))}
    result = subprocess.run([tools(), *map(str, arguments)], capture_output=True, text=True, check=False, env=kept | dict(environment))
    if result.returncode != 0:
        raise Refused(result.stderr)
    return json.loads(result.stdout)


@functools.cache
def model(*files, environment=()):
    """Returns the model of files of deploy/compose, or of other paths. `environment`: (name, value) of variables. Raises Refused."""
    return _read("compose", *(COMPOSE / file for file in files), environment=environment)


def documents(path):
    """Returns the value of each document of a YAML file. Raises Refused."""
    return _read("yaml", path)
