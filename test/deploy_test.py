"""Tests the scripts of deploy/, with made-up root file systems and ELF files.

The scripts must follow libraries to the end, refuse files without a licence, and make the same image bytes each time.
Every failure must be one sentence and must leave nothing behind.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock

SOURCE = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(SOURCE / "deploy/packages"), str(SOURCE / "deploy")]

import bundle  # noqa: E402
import deb  # noqa: E402
import debian  # noqa: E402
import elf  # noqa: E402
import image_archive  # noqa: E402
import image_root  # noqa: E402
import payload  # noqa: E402
import rpm  # noqa: E402
import shlibs  # noqa: E402
import stage  # noqa: E402
from components import COMPONENTS  # noqa: E402
from failure import Failure  # noqa: E402
from source_tree import Version  # noqa: E402
from tree import Tree  # noqa: E402

EPOCH = 1_700_000_000
LIBRARIES = "usr/lib/aarch64-linux-gnu"
VERSION = Version("1.2.3", "c0ffee", EPOCH)


def make_elf(needed=(), rpath="", interpreter="", machine=183):
    """Returns the bytes of an ELF file that has only program headers and a dynamic section, like a linker's output."""
    strings, entries = b"\0", []
    for tag, text in [(elf.DT_NEEDED, name) for name in needed] + [(elf.DT_RPATH, rpath)] * bool(rpath):
        entries.append((tag, len(strings)))
        strings += text.encode() + b"\0"
    base, count = 0x10000, 3
    at_strings = 64 + 56 * count
    at_interpreter = at_strings + len(strings)
    at_dynamic = (at_interpreter + len(interpreter) + 1 + 7) // 8 * 8
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in [*entries, (elf.DT_STRTAB, base + at_strings), (elf.DT_NULL, 0)])
    end = at_dynamic + len(dynamic)

    def header(kind, at, size):
        return struct.pack("<IIQQQQQQ", kind, 4, at, base + at, base + at, size, size, 8)

    headers = header(elf.PT_LOAD, 0, end) + header(elf.PT_DYNAMIC, at_dynamic, len(dynamic))
    headers += header(elf.PT_INTERP if interpreter else 0, at_interpreter, len(interpreter) + 1)
    out = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, count, 64, 0, 0)
    out += headers + strings + interpreter.encode() + b"\0"
    return out.ljust(at_dynamic, b"\0") + dynamic


class Deploy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.host = self.folder / "host"
        self.write("host/var/lib/dpkg/status", "")
        self.package("libc6", "2.36-9", {"libc.so.6": [], "ld-linux-aarch64.so.1": []})
        self.package("libouter1", "1:1.0+dfsg-1", {"libouter.so.1": ["libinner.so.2", "libc.so.6"]})
        self.package("libinner2", "2.0-1", {"libinner.so.2": ["libc.so.6"]})
        self.package("llvm-19-dev", "1:19.1-1", {})  # linked into kernel-collector
        self.package("libcli11-dev", "2.1-1", {})  # linked into tributary
        # As on a machine that cross-compiles: only its own root has the files that are the same for every architecture.
        self.write("native/var/lib/dpkg/status", "Package: ca-certificates\nStatus: install ok installed\nArchitecture: all\nVersion: 2023\n\n")
        for name in ("b", "a"):
            self.write(f"native/usr/share/ca-certificates/mozilla/{name}.crt", f"certificate {name}\n")
        self.root, self.native = debian.Root(self.host, "arm64"), debian.Root(self.folder / "native", "amd64")
        self.binary = self.write("build/bin/k8s-collector",
                                 make_elf(["libouter.so.1", "libc.so.6"], stage.RPATH, "/lib/ld-linux-aarch64.so.1"))

    def write(self, name, data):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def package(self, name, version, libraries):
        with open(self.host / "var/lib/dpkg/status", "a", encoding="utf-8") as status:
            status.write(f"Package: {name}\nStatus: install ok installed\nArchitecture: arm64\nVersion: {version}\n\n")
        for library, needed in libraries.items():
            self.write(f"host/{LIBRARIES}/{library}", make_elf(needed))
        self.write(f"host/usr/share/doc/{name}/copyright", f"copyright of {name}\n")
        # Paths without /usr, as in the file list of glibc's package.
        self.write(f"host/var/lib/dpkg/info/{name}:arm64.list", "".join(f"/lib/aarch64-linux-gnu/{name}\n" for name in libraries))

    def patch(self, module, name, value):
        patch = unittest.mock.patch.object(module, name, value)
        patch.start()
        self.addCleanup(patch.stop)

    def leave_binaries_unstripped(self):
        """Skips strip: the binaries have nothing to strip, and this machine may have no strip for arm64."""
        self.patch(stage, "_strip", lambda binary, arch, target: target.write_bytes(binary.read_bytes()))

    def make_image(self, out):
        """Makes an image's root and archive. Returns the root."""
        self.leave_binaries_unstripped()
        component = COMPONENTS["k8s-collector"]
        with Tree(self.folder / out, EPOCH) as tree:
            image_root.make_root(tree, component, self.binary, self.root, VERSION, native=self.native)
        image_archive.write_archive(self.folder / out, component, "arm64", ["a/b:1", "a/b:2"], VERSION, self.folder / f"{out}.tar")
        return self.folder / out

    def make_deb(self, name, out):
        """Makes the deb of a program that needs libouter.so.1 and prints documents of one line. Returns its path."""
        self.leave_binaries_unstripped()
        self.write(f"build/bin/{name}", self.binary.read_bytes())
        self.write("info/libouter1:amd64.shlibs", "libouter 1 libouter1 (>= 1.0)\n")
        self.write("info/libc6.shlibs", "libc 6 libc6 (>= 2.36)\nudeb: libc 6 libc6-udeb (>= 2.36)\n")
        self.patch(debian, "NATIVE", "amd64")
        self.patch(debian, "root_of", lambda arch: self.root)
        self.patch(shlibs, "INFO", self.folder / "info")
        self.patch(payload, "documents", lambda build, component, kind, *command: f".TH {component.name} {component.man_section} {kind}\n")
        build = payload.Build(self.folder / "build", "arm64", self.folder / "build", "1.2.3+mine", EPOCH)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            deb.make(argparse.Namespace(component=name, out=self.folder / out), build)
        return pathlib.Path(printed.getvalue().strip())

    def files_of(self, package):
        """Returns name → (tarfile's member, bytes) for each file and folder of a deb."""
        data = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            return {member.name: (member, tar.extractfile(member).read() if member.isreg() else b"") for member in tar}

    def script(self, name, *arguments, **environment):
        return subprocess.run([sys.executable, SOURCE / "deploy" / name, *map(str, arguments)], capture_output=True, text=True, check=False,
                              env={**os.environ, **environment})

    def expect_failure(self, result, *words):
        self.assertEqual(result.returncode, 1, result)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_libraries_are_followed_all_the_way(self):
        found = bundle.libraries_of(self.root, self.binary)
        self.assertEqual([(library.name, library.package.name) for library in found],
                         [("libc.so.6", "libc6"), ("libinner.so.2", "libinner2"), ("libouter.so.1", "libouter1")])

    def test_missing_or_damaged_libraries_are_refused(self):
        (self.host / LIBRARIES / "libinner.so.2").unlink()
        with self.assertRaisesRegex(Failure, "libinner.so.2, which .*k8s-collector needs"):
            bundle.libraries_of(self.root, self.binary)
        self.write(f"host/{LIBRARIES}/libinner.so.2", make_elf())
        (self.host / "var/lib/dpkg/info/libinner2:arm64.list").unlink()
        with self.assertRaisesRegex(Failure, "belongs to no Debian package"):
            bundle.libraries_of(debian.Root(self.host, "arm64"), self.binary)
        self.write(f"host/{LIBRARIES}/libouter.so.1", b"damaged")
        with self.assertRaisesRegex(Failure, "libouter.so.1: not a 64-bit .* install its package again"):
            bundle.libraries_of(self.root, self.binary)
        for machine, arch, words in ((62, "arm64", "is for amd64, not for arm64"), (183, "amd64", "is for arm64, not for amd64")):
            self.binary.write_bytes(make_elf(machine=machine))
            with self.assertRaisesRegex(Failure, words):
                stage.built(self.folder / "build", COMPONENTS["k8s-collector"], arch)

    def test_damaged_elf_files_are_refused(self):
        good = make_elf(["liba.so"], "$ORIGIN")
        self.assertEqual(elf.parse(good), elf.Elf("arm64", rpath="$ORIGIN", needed=["liba.so"]))
        for bad in (b"", b"\x7fELF", good[:40], good[:100], good[:18] + b"\xff\xff" + good[20:], b"\x7fELF\x01" + good[5:]):
            with self.assertRaises(elf.NotElf):
                elf.parse(bad)

    def test_an_image_has_exactly_the_needed_files(self):
        root = self.make_image("image")
        files = {path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir() or path.is_symlink()}
        documents = {f"usr/share/doc/tributary/copyright/{name}" for name in ("libc6", "libinner2", "libouter1")}
        self.assertEqual(files, documents | {
            "bin", "sbin", "lib", "lib64", "etc/passwd", "etc/group", "etc/nsswitch.conf", "etc/ssl/certs/ca-certificates.crt",
            "usr/bin/k8s-collector", "usr/lib/tributary/libinner.so.2", "usr/lib/tributary/libouter.so.1", f"{LIBRARIES}/libc.so.6",
            "usr/lib/ld-linux-aarch64.so.1", "usr/share/doc/tributary/LICENSE", "usr/share/sbom/k8s-collector.spdx.json"})
        self.assertEqual((root / "etc/ssl/certs/ca-certificates.crt").read_text(), "certificate a\ncertificate b\n")
        sbom = json.loads((root / "usr/share/sbom/k8s-collector.spdx.json").read_text())
        versions = {package["name"]: package["versionInfo"] for package in sbom["packages"]}
        self.assertEqual(versions, {"k8s-collector": "1.2.3", "libc6": "2.36-9", "libinner2": "2.0-1", "libouter1": "1:1.0+dfsg-1",
                                    "ca-certificates": "2023"})

    def test_an_archive_has_the_format_of_docker(self):
        self.make_image("image")
        with tarfile.open(self.folder / "image.tar") as tar:
            manifest = json.load(tar.extractfile("manifest.json"))[0]
            config = json.load(tar.extractfile(manifest["Config"]))
            layer = tar.extractfile(manifest["Layers"][0]).read()
        self.assertEqual(manifest["RepoTags"], ["a/b:1", "a/b:2"])
        self.assertEqual(config["rootfs"]["diff_ids"], [f"sha256:{hashlib.sha256(layer).hexdigest()}"])
        self.assertEqual((config["architecture"], config["created"]), ("arm64", "2023-11-14T22:13:20Z"))
        self.assertEqual(config["config"]["User"], "65532:65532")
        self.assertEqual(config["config"]["Entrypoint"], ["/usr/bin/k8s-collector"])
        self.assertEqual(config["config"]["Healthcheck"]["Test"], ["CMD", "/usr/bin/k8s-collector", "--health-check"])
        self.assertEqual(config["config"]["Labels"]["org.opencontainers.image.revision"], "c0ffee")
        with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
            for entry in tar:
                owner = 65532 if entry.name == "var/lib/tributary" else 0
                self.assertEqual((entry.mtime, entry.uid, entry.gid, entry.uname), (EPOCH, owner, owner, ""), entry.name)
            self.assertEqual(tar.getmember("tmp").mode, 0o1777)

    def test_the_same_input_gives_the_same_bytes(self):
        self.make_image("image")
        old = os.umask(0o077)
        self.addCleanup(os.umask, old)
        self.make_image("again")
        self.assertEqual((self.folder / "image.tar").read_bytes(), (self.folder / "again.tar").read_bytes())

    def test_a_deb_installs_the_program_and_its_documents(self):
        package = self.make_deb("k8s-collector", "out")
        self.assertEqual([path.name for path in (self.folder / "out").iterdir()], ["tributary-k8s-collector_1.2.3+mine_arm64.deb"])
        depends = subprocess.run(["dpkg-deb", "--field", package, "Depends"], check=True, capture_output=True, text=True).stdout
        self.assertEqual(depends, "libc6 (>= 2.36), libouter1 (>= 1.0)\n")
        files = self.files_of(package)
        self.assertEqual({name for name, (member, _) in files.items() if member.isreg()}, {
            "./etc/tributary/k8s-collector.yaml", "./lib/systemd/system/tributary-k8s-collector.service", "./usr/bin/k8s-collector",
            "./usr/share/bash-completion/completions/k8s-collector", "./usr/share/doc/tributary-k8s-collector/changelog.gz",
            "./usr/share/doc/tributary-k8s-collector/copyright", "./usr/share/fish/vendor_completions.d/k8s-collector.fish",
            "./usr/share/man/man8/k8s-collector.8.gz", "./usr/share/zsh/vendor-completions/_k8s-collector"})
        for member, _ in files.values():
            mode = 0o755 if member.isdir() or "/bin/" in member.name else 0o644
            self.assertEqual((member.mtime, member.uid, member.gid, member.mode), (EPOCH, 0, 0, mode), member.name)
        old = os.umask(0o077)
        self.addCleanup(os.umask, old)
        self.assertEqual(package.read_bytes(), self.make_deb("k8s-collector", "again").read_bytes())

    def test_the_package_of_the_command_line_has_the_files_of_a_fleet(self):
        files = self.files_of(self.make_deb("tributary", "out"))
        self.assertEqual(files["./usr/share/tributary/certs"][0].mode, 0o755)
        self.assertEqual(files["./usr/share/tributary/certs"][1], (SOURCE / "dev/certs").read_bytes())
        for name in ("compose/compose.yaml", "compose/compose.tls.yaml", "compose/grafana/dashboards.yaml", "lima/tributary.yaml",
                     "grafana/tributary-rules.yml", "grafana/tributary-dashboard.json", "kubernetes/overlays/simple/kustomization.yaml",
                     "helm/tributary/Chart.yaml", "helm/tributary/templates/_helpers.tpl", "helm/tributary/templates/NOTES.txt"):
            member, data = files[f"./usr/share/tributary/{name}"]
            self.assertEqual((member.mode, data), (0o644, (SOURCE / "deploy" / name).read_bytes()), name)

    def test_only_the_package_with_bpf_programs_names_the_gpl(self):
        for name in ("k8s-collector", "kernel-collector"):
            note = self.files_of(self.make_deb(name, "out"))[f"./usr/share/doc/tributary-{name}/copyright"][1].decode()
            rpm.write_spec(COMPONENTS[name], "1.2.3", [], self.folder)
            tag = next(line for line in (self.folder / "package.spec").read_text().splitlines() if line.startswith("License:"))
            for text in (note, tag):
                self.assertIn("Apache-2.0", text)
                self.assertEqual(name == "kernel-collector", bool(re.search("GPL|GNU", text)), text)

    def test_failures_are_one_sentence_and_leave_nothing(self):
        common = ["--component", "k8s-collector", "--arch", "arm64"]
        build = ["--build", self.folder / "build"]
        cache = {"TRIBUTARY_CACHE": str(self.folder / "cache")}
        out = self.folder / "out"
        self.expect_failure(self.script("stage.py", "--build", self.folder, *common, "--out", out), "is missing: build it first")
        self.expect_failure(self.script("stage.py", *build, *common, "--out", out, **cache), "run dev/deps --arm64")
        self.expect_failure(self.script("image.py", *build, *common, "--tag", "A b", "--out", out), "is not an image name")
        self.expect_failure(self.script("image.py", *build, *common, "--tag", "a:1", "--out", out, **cache), "run dev/deps --arm64")
        self.expect_failure(self.script("image.py", *build, *common, "--tag", "a:1", "--out", "/proc/out.tar"), "/proc/")
        self.expect_failure(self.script("image.py", *build, *common, "--tag", "a:1", "--out", out, SOURCE_DATE_EPOCH="now"),
                            "SOURCE_DATE_EPOCH is now: set it to Unix seconds")
        self.expect_failure(self.script("packages/deb.py", *build, *common, "--out", out, "--revision", "/../x"),
                            "cannot be part of a version: use letters")
        self.binary.write_bytes(make_elf(["libc.so.6"]))
        self.expect_failure(self.script("stage.py", *build, *common, "--out", out), "build it with the preset package")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["build", "host", "native"])

    def test_a_tree_refuses_a_folder_in_use(self):
        self.write("full/file", "x")
        with self.assertRaisesRegex(Failure, "already exists"), Tree(self.folder / "full", EPOCH):
            pass
        with self.assertRaises(ZeroDivisionError), Tree(self.folder / "new", EPOCH) as tree:
            tree.write("a/b", b"c")
            _ = 1 / 0
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["build", "full", "host", "native"])

    def test_a_source_archive_knows_its_commit(self):
        for name in ("CMakeLists.txt", "deploy/version.sh"):
            self.write(f"source/{name}", (SOURCE / name).read_bytes())
        version = ["bash", self.folder / "source/deploy/version.sh"]
        environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}

        def run(**more):
            return subprocess.run(version, check=True, capture_output=True, text=True, env={**environment, **more}).stdout.split()

        self.assertEqual(run()[1:], ["unknown", "315532800"])
        self.write("source/.version", "1.2.3 c0ffee 1700000000\n")
        self.assertEqual(run(), ["1.2.3", "c0ffee", "1700000000"])
        self.assertEqual(run(SOURCE_DATE_EPOCH="5"), ["1.2.3", "c0ffee", "5"])


if __name__ == "__main__":
    unittest.main()
