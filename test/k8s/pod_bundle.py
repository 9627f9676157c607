"""Converts the pod of a DaemonSet into the config.json of a container (OCI runtime specification 1.0), as a kubelet with containerd does."""

import base64
import pathlib
import re
import socket

# containerd's capabilities of a container whose manifest adds and drops none.
DEFAULT_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP", "NET_BIND_SERVICE",
                        "SYS_CHROOT", "KILL", "AUDIT_WRITE")
MASKED = ["/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
          "/proc/sched_debug", "/sys/firmware", "/proc/scsi"]
READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
SYSTEM_MOUNTS = [
    ("/proc", "proc", ["nosuid", "noexec", "nodev"]),
    ("/dev", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
    ("/dev/pts", "devpts", ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]),
    ("/dev/shm", "tmpfs", ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]),
    ("/dev/mqueue", "mqueue", ["nosuid", "noexec", "nodev"]),
    ("/sys", "sysfs", ["nosuid", "noexec", "nodev", "ro"]),
    ("/sys/fs/cgroup", "cgroup", ["nosuid", "noexec", "nodev", "relatime", "ro"]),
]
UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


class PodError(Exception):
    """The manifest cannot be run. Its text is the whole message."""


def quantity(text):
    """Returns the bytes of a quantity, such as 512Mi."""
    match = re.fullmatch(r"(\d+)(k|M|G|Ki|Mi|Gi)?", str(text))
    if not match:
        raise PodError(f"memory limit {text}: give bytes, or a number with Ki, Mi or Gi")
    return int(match[1]) * UNITS[match[2] or ""]


def port_number(container, port):
    """Returns the number of a port that a probe gives by name or number."""
    if isinstance(port, int):
        return port
    return next(each["containerPort"] for each in container.get("ports", []) if each.get("name") == port)


def expanded(text, values):
    """Returns a text with the values of its variables, $(NAME). "$$" is a dollar sign, and the name of an unknown variable stays."""
    return re.sub(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", lambda found: values.get(found[1], found[0]) if found[1] else "$", text)


class Bundle:
    """The container of a manifest's only DaemonSet. `image` is the configuration of its image, `work` a folder for made-up volumes."""

    def __init__(self, documents, image, work):
        daemon_sets = [document for document in documents if document.get("kind") == "DaemonSet"]
        if len(daemon_sets) != 1:
            raise PodError(f"the manifest has {len(daemon_sets)} DaemonSets, not one")
        self._documents, self._image, self._work = documents, image, pathlib.Path(work)
        self._metadata = daemon_sets[0]["metadata"]
        self._pod = daemon_sets[0]["spec"]["template"]["spec"]
        if self._pod.get("initContainers") or len(self._pod["containers"]) != 1:
            raise PodError("the pod has more than one container")
        self.container = self._pod["containers"][0]
        self._security = {**self._pod.get("securityContext", {}), **self.container.get("securityContext", {})}
        if self._security.get("privileged"):
            raise PodError("the container is privileged")
        if self._pod.get("automountServiceAccountToken") is not False:
            raise PodError("the pod gets a token of its service account: set automountServiceAccountToken: false")

    def config(self, root):
        """Returns config.json. `root` is the folder with the image's files."""
        capabilities = self._capabilities()
        return {
            "ociVersion": "1.0.2",
            "process": {
                "args": self._arguments(), "env": [f"{name}={value}" for name, value in self._environment().items()], "cwd": "/",
                "user": self._user(), "noNewPrivileges": self._security.get("allowPrivilegeEscalation") is False,
                "capabilities": {kind: capabilities for kind in ("bounding", "effective", "permitted")},
            },
            "root": {"path": root, "readonly": bool(self._security.get("readOnlyRootFilesystem"))},
            "hostname": socket.gethostname() if self._pod.get("hostNetwork") else self._metadata["name"],
            "mounts": self._mounts(),
            "linux": {"namespaces": self._namespaces(), "maskedPaths": MASKED, "readonlyPaths": READ_ONLY, "resources": self._resources()},
        }

    def _capabilities(self):
        changes = self._security.get("capabilities", {})
        names = set() if "ALL" in changes.get("drop", []) else set(DEFAULT_CAPABILITIES) - set(changes.get("drop", []))
        return sorted(f"CAP_{name}" for name in names | set(changes.get("add", [])))

    def _user(self):
        image = [int(part) for part in (self._image.get("User") or "0").split(":")]
        uid = self._security.get("runAsUser", image[0])
        if self._security.get("runAsNonRoot") and uid == 0:
            raise PodError("runAsNonRoot is true and the user is root")
        return {"uid": uid, "gid": self._security.get("runAsGroup", image[-1] if len(image) > 1 else 0)}

    def _namespaces(self):
        kinds = ["mount", "uts", "ipc"] + [kind for kind, key in (("pid", "hostPID"), ("network", "hostNetwork")) if not self._pod.get(key)]
        return [{"type": kind} for kind in kinds]

    def _resources(self):
        limit = self.container.get("resources", {}).get("limits", {}).get("memory")
        return {"devices": [{"allow": False, "access": "rwm"}], **({"memory": {"limit": quantity(limit)}} if limit else {})}

    def _arguments(self):
        values = self._environment()
        command = self.container.get("command") or self._image.get("Entrypoint") or []
        arguments = self.container.get("args") or ([] if self.container.get("command") else self._image.get("Cmd") or [])
        return [expanded(word, values) for word in [*command, *arguments]]

    def _environment(self):
        values = dict(line.split("=", 1) for line in self._image.get("Env") or [])
        if self.container.get("envFrom"):
            raise PodError("envFrom is not supported")
        for entry in self.container.get("env", []):
            value = self._value_from(entry["valueFrom"]) if "valueFrom" in entry else expanded(entry.get("value", ""), values)
            if value is not None:
                values[entry["name"]] = value
        return values

    def _value_from(self, source):
        """Returns a value, or None for an optional one that does not exist."""
        if "fieldRef" in source:
            fields = {"spec.nodeName": socket.gethostname(), "metadata.name": f"{self._metadata['name']}-abcde",
                      "metadata.namespace": self._metadata.get("namespace", "default")}
            path = source["fieldRef"]["fieldPath"]
            if path not in fields:
                raise PodError(f"the field {path} exists only in a cluster")
            return fields[path]
        for key, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            if key in source:
                data = self._data(kind, source[key]["name"], source[key].get("optional"))
                return None if data is None else data[source[key]["key"]].decode()
        raise PodError(f"the value {sorted(source)} is not supported")

    def _data(self, kind, name, optional):
        """Returns the files of a ConfigMap or Secret of the manifest: name → bytes. None: it is optional and does not exist."""
        for document in self._documents:
            if document.get("kind") == kind and document["metadata"]["name"] == name:
                plain = {**document.get("data", {}), **document.get("stringData", {})} if kind == "ConfigMap" else document.get("stringData", {})
                coded = document.get("binaryData", {}) if kind == "ConfigMap" else document.get("data", {})
                return {**{key: value.encode() for key, value in plain.items()},
                        **{key: base64.b64decode(value) for key, value in coded.items()}}
        if optional:
            return None
        raise PodError(f"the manifest has no {kind} {name}")

    def _mounts(self):
        mounts = [{"destination": target, "type": kind, "source": kind, "options": options} for target, kind, options in SYSTEM_MOUNTS]
        volumes = {volume["name"]: volume for volume in self._pod.get("volumes", [])}
        # A mount below another one comes after it.
        for mount in sorted(self.container.get("volumeMounts", []), key=lambda mount: mount["mountPath"]):
            if mount["name"] not in volumes:
                raise PodError(f"there is no volume {mount['name']}")
            source = self._source(volumes[mount["name"]])
            if mount.get("subPath"):
                source = source / mount["subPath"]
            options = ["rbind", "rprivate", "ro" if mount.get("readOnly") else "rw"]
            if mount.get("mountPropagation") in ("HostToContainer", "Bidirectional"):
                options[1] = "rslave" if mount["mountPropagation"] == "HostToContainer" else "rshared"
            mounts.append({"destination": mount["mountPath"], "type": "bind", "source": str(source), "options": options})
        return mounts

    def _source(self, volume):
        """Returns the folder or file of the host that a volume stands for."""
        if "hostPath" in volume:
            return self._host_path(pathlib.Path(volume["hostPath"]["path"]), volume["hostPath"].get("type", ""))
        folder = self._work / "volumes" / volume["name"]
        folder.mkdir(parents=True, exist_ok=True)
        if "emptyDir" in volume:
            folder.chmod(0o777)
            return folder
        for key, kind, name in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
            if key in volume:
                data = self._data(kind, volume[key][name], volume[key].get("optional")) or {}
                names = {item["key"]: item["path"] for item in volume[key].get("items", [{"key": key, "path": key} for key in data])}
                for each, path in names.items():
                    (folder / path).write_bytes(data[each])
                    (folder / path).chmod(volume[key].get("defaultMode", 0o644))
                return folder
        raise PodError(f"the volume {volume['name']} exists only in a cluster")

    def _host_path(self, path, kind):
        if kind == "DirectoryOrCreate":
            path.mkdir(parents=True, exist_ok=True)
        checks = {"Directory": path.is_dir, "DirectoryOrCreate": path.is_dir, "File": path.is_file, "Socket": path.is_socket, "": lambda: True}
        if kind not in checks or not checks[kind]():
            raise PodError(f"the host has no {kind} {path}")
        if not path.exists():
            path.mkdir(parents=True)
        return path
