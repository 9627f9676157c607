"""Talks to a Docker daemon over its socket: loads an image archive, names an image, pushes it to a registry.

Only the daemon's HTTP API is used, so the build image needs no docker command. Every failure is a DaemonError, whose text is one
sentence that says what to do.
"""

import base64
import http.client
import json
import os
import pathlib
import socket
import urllib.parse

DEFAULT_SOCKET = "/var/run/docker.sock"
# A push or a load is silent while the daemon unpacks a layer; an hour is far more than the largest image takes.
TIMEOUT_S = 3600
MOUNT = f"--mount type=bind,source={DEFAULT_SOCKET},destination={DEFAULT_SOCKET}"


class DaemonError(Exception):
    """One sentence for the user."""


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("docker", timeout=TIMEOUT_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def socket_path(environment=os.environ):
    """Returns the path of the daemon's socket. DOCKER_HOST, if set, must be a Unix socket here."""
    host = environment.get("DOCKER_HOST") or f"unix://{DEFAULT_SOCKET}"
    if not host.startswith("unix://"):
        raise DaemonError(f"DOCKER_HOST is {host}, but only a Unix socket can be used here; "
                          f"set it to unix://{DEFAULT_SOCKET} and mount that")
    return host.removeprefix("unix://")


class Daemon:
    def __init__(self, path=None):
        self.path = path or socket_path()

    def _request(self, method, url, body=None, headers=None, ok=(200, 201)):
        """Returns the whole answer. If the daemon refuses, raises DaemonError with the daemon's own message."""
        connection = UnixConnection(self.path)
        try:
            connection.request(method, url, body=body, headers=headers or {}, encode_chunked=False)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as e:
            reason = getattr(e, "strerror", None) or str(e) or type(e).__name__
            raise DaemonError(f"no Docker daemon answers at {self.path} ({reason}); start Docker and mount its socket ({MOUNT}), "
                              "or make image files only, with --no-docker") from e
        finally:
            connection.close()
        if answer.status not in ok:
            raise DaemonError(f"the Docker daemon refused {method} {urllib.parse.urlsplit(url).path}: {message_of(text)}")
        return text

    def ping(self):
        self._request("GET", "/_ping")

    def load(self, archive):
        """Loads a docker-archive; its images have the names that the archive gives them."""
        with open(archive, "rb") as body:
            headers = {"Content-Type": "application/x-tar", "Content-Length": str(os.fstat(body.fileno()).st_size)}
            failure = error_in(self._request("POST", "/images/load?quiet=1", body, headers))
        if failure:
            raise DaemonError(f"the Docker daemon could not load {archive}: {failure}; "
                              "check that its disk has free space, and run this again")

    def tag(self, image, name):
        """Gives `image` the further name `name` (REPOSITORY:TAG)."""
        repository, tag = split_name(name)
        query = urllib.parse.urlencode({"repo": repository, "tag": tag})
        self._request("POST", f"/images/{urllib.parse.quote(image)}/tag?{query}")

    def push(self, name, login=None):
        """Pushes the image `name`, which starts with its registry. Returns the digest that the registry gave it."""
        repository, tag = split_name(name)
        headers = {"X-Registry-Auth": base64.urlsafe_b64encode(json.dumps(login or {}).encode()).decode()}
        try:
            lines = self._request("POST", f"/images/{urllib.parse.quote(repository)}/push?tag={urllib.parse.quote(tag)}", b"", headers)
            failure = error_in(lines)
        except DaemonError as e:
            lines, failure = b"", str(e)
        if failure:
            registry = repository.split("/")[0]
            raise DaemonError(f"the registry {registry} did not accept {name} ({failure}); check that it runs and "
                              "that you may push there, or set another one in EBPF_NET_DOCKER_REGISTRY")
        return next((line["aux"]["Digest"] for line in stream(lines) if "Digest" in (line.get("aux") or {})), "")


def split_name(name):
    repository, _, tag = name.rpartition(":")
    return repository, tag


def stream(text):
    """Yields the JSON objects, one per line, of the daemon's answer to load and push."""
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def error_in(text):
    """Returns the error in the daemon's answer, or None. The daemon answers 200 before it starts, so a later error is
    only in the stream."""
    return next((one_line(line["error"]) for line in stream(text) if line.get("error")), None)


def message_of(text):
    try:
        return one_line(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return one_line(text.decode(errors="replace"))


def one_line(text):
    return " ".join(str(text).split())[:300]


def login_for(registry, home=None):
    """Returns the login that `docker login` stored for `registry` in ~/.docker/config.json, or None."""
    file = pathlib.Path(home or pathlib.Path.home()) / ".docker/config.json"
    try:
        entry = json.loads(file.read_text())["auths"][registry]
        user, _, password = base64.b64decode(entry["auth"]).decode().partition(":")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return {"username": user, "password": password, "serveraddress": registry}
