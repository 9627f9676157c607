"""Tests the programs with the settings of overlays/reducer, without a cluster.

The variables are those of the rendered manifests. Only folders and ports differ. The Secrets are those of dev/certs.
"""

import base64
import json
import shutil
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

import manifest_rules
import manifests

sys.path.insert(0, str(manifests.HERE.parent / "e2e"))
import lib  # noqa: E402

NAME = "reducer-0.reducer-headless.tributary.svc"
OTHER_TOKEN, NEW_ADMIN = "b" * 32, "d" * 32


def put_secret(folder, files):
    """Writes the files of a Secret as the kubelet does: it replaces the link ..data, and files are links into it."""
    version = folder / f"..version-{len(list(folder.glob('..version-*'))) + 1}"
    version.mkdir(parents=True)
    for name, content in files.items():
        (version / name).write_text(content)
        (version / name).chmod(0o400)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    (folder / "..data_tmp").symlink_to(version.name)
    (folder / "..data_tmp").rename(folder / "..data")


def make_secrets(d):
    """Makes the Secrets of both namespaces with dev/certs, below d/etc/NAMESPACE/tls and …/tokens. Returns http-tokens."""
    command = [manifests.SOURCE / "dev/certs", "--out", d / "certs", "--kubernetes", "--namespace", "tributary", "--node-namespace", "tributary-nodes"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for secret in manifests.load(text):
        name, files = secret["metadata"]["name"], {key: base64.b64decode(data).decode() for key, data in secret["data"].items()}
        lib.check(files.keys() <= manifest_rules.SECRETS[name], f"{name} has {sorted(files)}")
        put_secret(d / "etc" / secret["metadata"]["namespace"] / name.split("-")[1], files)
    return (d / "certs/http-tokens").read_text()


def folder_of(d, pod):
    return d / "etc" / ("tributary-nodes" if pod == "kernel-collector" else "tributary")


def settings(d, pod, **changes):
    """Returns a pod's variables as NAME=VALUE. `changes`: other values, without EBPF_NET_."""
    documents = manifests.rendered()["reducer"]
    container = next(c for _, _, c, program in manifest_rules.containers(documents) if program == pod)
    values = {v["name"]: v.get("value", "node-1") for v in container["env"]}
    folders = {"/etc/tributary": folder_of(d, pod), "/var/lib/tributary-kernel-collector": d / "spool", "/var/lib/tributary": d / "data"}
    for name, value in values.items():
        for folder, other in folders.items():
            if value == folder or value.startswith(folder + "/"):
                values[name] = f"{other}{value[len(folder):]}"
                break
    values |= {f"EBPF_NET_{name.upper()}": str(value) for name, value in changes.items()}
    return [f"{name}={value.replace('$(KUBERNETES_NODE_NAME)', 'node-1')}" for name, value in values.items()]


def start(d, pod, *args, name=None, **changes):
    (d / "data").mkdir(exist_ok=True)
    command = ["env", "-i", *settings(d, pod, metrics_listen="127.0.0.1:0", **changes), lib.BIN / pod, *args]
    return lib.Program(name or pod, command, d, as_root=pod == "kernel-collector")


def start_reducer(d, *args, **changes):
    return start(d, "reducer", *args, intake_listen="127.0.0.1:0", http_listen="0.0.0.0:0", **changes)


def missing_secrets():
    """Without a Secret, the volume is empty. Each program ends with one error that names the file."""
    for pod in manifest_rules.PROGRAMS:
        for secret in ("tls", "tokens"):
            with lib.directory() as d, lib.programs() as programs:
                make_secrets(d)
                folder = folder_of(d, pod) / secret
                shutil.rmtree(folder)
                folder.mkdir()
                # k8s-collector reads its service account first. A kubeconfig replaces it here.
                program = start_reducer(d) if pod == "reducer" else start(
                    d, pod, *(["--api-server", "http://127.0.0.1:1"] if pod == "k8s-collector" else []))
                programs.append(program)
                lib.wait_for(f"the end of {pod}", lambda p=program: not p.running(), 20)
                errors = [line for line in program.text().splitlines() if " error " in line]
                lib.check(program.process.returncode in (1, 2) and len(errors) == 1 and f"{folder}/" in errors[0],
                          f"{pod} without {secret}: {program.process.returncode}\n{program.text()}")


def get(d, port, path, token=None):
    """Returns the status and the answer of the page's port."""
    context = ssl.create_default_context(cafile=d / "certs/ca.crt")
    context.check_hostname = False
    request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()


def whole_system():
    with lib.directory() as d, lib.programs() as programs:
        tokens = dict(reversed(line.split()[:2]) for line in make_secrets(d).splitlines() if line and not line.startswith("#"))
        admin, intake = tokens["admin"], (d / "certs/intake-token").read_text()
        reducer = start_reducer(d, "--ports-file", d / "ports")
        programs.append(reducer)
        lib.wait_for("the reducer's ports", lambda: (d / "ports").exists() or not reducer.running())
        lib.check(reducer.running(), reducer.text())
        ports = json.loads((d / "ports").read_text())
        # The name in the certificate is the one that the collector would connect to.
        to_reducer = {"intake_host": f"127.0.0.1:{ports['intake']}", "tls_server_name": NAME, "batch_interval": "1s"}
        collector = start(d, "kernel-collector", **to_reducer)
        programs.append(collector)

        def stored():
            return json.loads(get(d, ports["http"], "/api/v1/status", admin)[1])["total"]["stored"]
        lib.run_truth(1)
        lib.wait_for("samples", stored)
        lib.check(get(d, ports["http"], "/api/v1/status")[0] == 401, "the page needs a sign-in")
        lib.check(get(d, ports["http"], "/api/v1/status", intake.split()[-1])[0] == 401, "the intake's token is not a user's")
        lib.check(collector.stop() == 0, "the collector's exit code")

        put_secret(d / "etc/tributary/tokens", {"intake-token": intake, "http-tokens": f"{NEW_ADMIN} admin\n"})
        lib.wait_for("the new token", lambda: get(d, ports["http"], "/api/v1/status", NEW_ADMIN)[0] == 200)
        lib.check(get(d, ports["http"], "/api/v1/status", admin)[0] == 401, "the old token is not valid any more")

        other = d / "other-token"
        other.write_text(f"{OTHER_TOKEN}\n")
        other.chmod(0o400)
        wrong = start(d, "kernel-collector", name="wrong", intake_token_file=other, **to_reducer)
        programs.append(wrong)
        lib.wait_for("the refusal", lambda: "reason=bad_token" in reducer.text())
        lib.wait_for("the collector's message", lambda: "the token is not known" in wrong.text())
        wrong.stop()
        lib.check(reducer.stop() == 0, "the reducer's exit code")


if __name__ == "__main__":
    lib.main(missing_secrets, whole_system)
