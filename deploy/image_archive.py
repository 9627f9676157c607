"""Writes a root file system as an image that `docker load` reads: one layer, its configuration, and the names of both."""

import hashlib
import io
import json
import os
import pathlib
import tarfile

from components import DATA

SECOND = 1_000_000_000


def _entry(path, name, epoch, owner):
    info = tarfile.TarInfo(name)
    info.mtime, info.uid, info.gid, info.uname, info.gname = epoch, owner, owner, "", ""
    info.mode = path.lstat().st_mode & 0o7777
    if path.is_symlink():
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, os.readlink(path), 0o777
    elif path.is_dir():
        info.type = tarfile.DIRTYPE
    else:
        info.size = path.stat().st_size
    return info


def write_layer(root, out, epoch, component):
    """Writes a folder's files, sorted and owned by root, to a binary file.

    The data folder belongs to the program's user. A volume that Docker makes there starts with the same owner."""
    root = pathlib.Path(root)
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            info = _entry(path, name, epoch, component.image_user if "/" + name == DATA else 0)
            if info.isreg():
                with open(path, "rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)


def configuration(component, arch, version, layer_sha256):
    """Returns the image's configuration, as a value for JSON."""
    binary = f"/usr/bin/{component.name}"
    config = {
        "User": f"{component.image_user}:{component.image_user}" if component.image_user else "",
        "Env": ["PATH=/usr/bin", *component.environment],
        "Entrypoint": [binary],
        "WorkingDir": "/",
        "StopSignal": "SIGTERM",
        "Labels": {
            "org.opencontainers.image.title": component.name,
            "org.opencontainers.image.description": component.title,
            "org.opencontainers.image.version": version.number,
            "org.opencontainers.image.revision": version.commit,
            "org.opencontainers.image.created": version.created,
            "org.opencontainers.image.licenses": component.licenses,
        },
    }
    if component.ports:
        config["ExposedPorts"] = {f"{port}/tcp": {} for port in component.ports}
    if component.has_volume:
        config["Volumes"] = {DATA: {}}
    if component.arguments:
        config["Cmd"] = list(component.arguments)
    if component.service:
        config["Healthcheck"] = {"Test": ["CMD", *component.health_command], "Interval": 30 * SECOND, "Timeout": 5 * SECOND,
                                 "StartPeriod": 10 * SECOND, "Retries": 3}
    return {"architecture": arch, "os": "linux", "created": version.created, "config": config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_sha256}"]},
            "history": [{"created": version.created, "created_by": "deploy/image.py", "comment": f"{component.name} {version.number}"}]}


def _add(tar, name, data, epoch):
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = len(data), epoch, 0o644
    tar.addfile(info, io.BytesIO(data))


def write_archive(root, component, arch, tags, version, out):
    """Writes the image of a root folder to a path."""
    layer_path = pathlib.Path(f"{out}.layer")
    try:
        with open(layer_path, "wb") as layer:
            write_layer(root, layer, version.epoch, component)
        with open(layer_path, "rb") as layer:
            sha256 = hashlib.file_digest(layer, "sha256").hexdigest()
        config = json.dumps(configuration(component, arch, version, sha256), sort_keys=True).encode()
        config_name = hashlib.sha256(config).hexdigest() + ".json"
        manifest = [{"Config": config_name, "RepoTags": list(tags), "Layers": [f"{sha256}/layer.tar"]}]
        with open(out, "wb") as file, tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            _add(tar, config_name, config, version.epoch)
            info = tarfile.TarInfo(f"{sha256}/layer.tar")
            info.size, info.mtime, info.mode = layer_path.stat().st_size, version.epoch, 0o644
            with open(layer_path, "rb") as layer:
                tar.addfile(info, layer)
            _add(tar, "manifest.json", json.dumps(manifest, sort_keys=True).encode(), version.epoch)
    finally:
        layer_path.unlink(missing_ok=True)
