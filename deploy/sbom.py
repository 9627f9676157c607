"""The bill of materials of an image, as SPDX 2.3: the program, the Debian packages and the page's npm packages in it."""

import hashlib
import json
import re

from source_tree import SOURCE

# The packages that ui/tools/build.mjs puts into app.js. Their licences are at the top of app.js.
PAGE_PACKAGES = ("preact", "@preact/signals", "@preact/signals-core", "uplot")
UNKNOWN = "NOASSERTION"


def _id(text):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", text)


def _package(name, version, purl, **more):
    return {"SPDXID": _id(f"Package-{name}"), "name": name, "versionInfo": version, "downloadLocation": UNKNOWN,
            "filesAnalyzed": False, "licenseConcluded": UNKNOWN, "licenseDeclared": UNKNOWN, "copyrightText": UNKNOWN,
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}], **more}


def _debian(package):
    version = package.version.replace("+", "%2B").replace(":", "%3A")
    return _package(package.name, package.version, f"pkg:deb/debian/{package.name.replace('+', '%2B')}@{version}?arch={package.arch}",
                    sourceInfo=f"built from Debian's source package {package.source}",
                    licenseComments=f"the text is in /usr/share/doc/tributary/copyright/{package.name}")


def _page_packages():
    lock = json.loads((SOURCE / "ui/package-lock.json").read_text(encoding="utf-8"))["packages"]
    for name in PAGE_PACKAGES:
        entry = lock[f"node_modules/{name}"]
        yield _package(name, entry["version"], f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}",
                       licenseDeclared=entry["license"], licenseComments="the text is at the top of the page's app.js")


def _digest_of_files(folder):
    """Returns a hash of all paths and bytes below a folder. The document is named after it, so two documents with the
    same content have the same name."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(str(path.relative_to(folder)).encode() + b"\0")
        if path.is_file() and not path.is_symlink():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


class Sbom:
    """The bill of materials of one image. `program`: the Debian package of a program that is not ours."""

    def __init__(self, component, root, shipped, version, program=None):
        self._component = component
        self._program = program
        self._version = version
        self._arch = root.arch
        packages = {package.name: package for package in shipped}
        packages.update({name: root.package(name) for name in component.linked_in})
        self._packages = [_debian(packages[name]) for name in sorted(packages)]
        if component.has_page:
            self._packages += _page_packages()

    def to_json(self, folder):
        """Returns the document as bytes, for the files that are below a folder now."""
        name, version = self._component.name, self._version.number
        program = _debian(self._program) if self._program else _package(
            name, version, f"pkg:generic/{name}@{version}?arch={self._arch}", licenseDeclared=self._component.licenses,
            sourceInfo=f"built from commit {self._version.commit}", licenseComments="the text is in /usr/share/doc/tributary/LICENSE")
        related = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": program["SPDXID"]}]
        related += [{"spdxElementId": program["SPDXID"], "relationshipType": "DEPENDS_ON", "relatedSpdxElement": package["SPDXID"]}
                    for package in self._packages]
        document = {
            "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"{name}-{version}-{self._arch}",
            "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{version}-{self._arch}-{_digest_of_files(folder)}",
            "creationInfo": {"created": self._version.created, "creators": ["Tool: tributary-deploy"]},
            "packages": [program, *self._packages], "relationships": related}
        return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()
