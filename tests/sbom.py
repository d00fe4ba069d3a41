# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the bill of materials (SBOM) of the collection's archive: its files, and what a controller needs beside it.

    make sbom

The format is CycloneDX, as JSON. It has no time and no random number: one archive has one bill.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import tarfile
import uuid
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

import yaml
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

VERSION = SchemaVersion.V1_6
REQUIREMENT = re.compile(r"^([A-Za-z0-9_.-]+)(.*)$")
LICENCE = "GPL-3.0-or-later"


def bill(path: Path) -> Bom:
    """Return the bill of an archive, whose files are those of its own manifest."""
    with tarfile.open(path) as archive:
        found = {name: _read(archive, name) for name in ("MANIFEST.json", "FILES.json", "meta/runtime.yml")}
        requirements = _read(archive, "requirements.txt")
    info = json.loads(found["MANIFEST.json"])["collection_info"]
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    whole = _whole(info, checksum)
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_OID, checksum), metadata=BomMetaData(component=whole))
    bom.metadata.timestamp = None  # type: ignore[assignment]
    bom.components.update(_files(json.loads(found["FILES.json"])["files"]))
    needed = [_needed(*each) for each in _requirements(info, yaml.safe_load(found["meta/runtime.yml"]), requirements)]
    bom.components.update(needed)
    bom.register_dependency(whole, needed)
    return bom


def _read(archive: tarfile.TarFile, name: str) -> str:
    file = archive.extractfile(name)
    assert file is not None
    return file.read().decode()


def _whole(info: Dict[str, Any], checksum: str) -> Component:
    name = f"{info['namespace']}.{info['name']}"
    return Component(
        name=name,
        version=info["version"],
        type=ComponentType.APPLICATION,
        bom_ref=name,
        description=info["description"],
        licenses=[DisjunctiveLicense(id=LICENCE)],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=checksum)],
        purl=PackageURL("generic", name=name, version=info["version"]),
    )


def _files(listed: Any) -> Iterator[Component]:
    for file in listed:
        if file["ftype"] == "file":
            hashes = [HashType(alg=HashAlgorithm.SHA_256, content=file["chksum_sha256"])]
            licences = [DisjunctiveLicense(id=LICENCE)]
            yield Component(
                name=file["name"], type=ComponentType.FILE, bom_ref=file["name"], hashes=hashes, licenses=licences
            )


def _requirements(info: Dict[str, Any], runtime: Dict[str, Any], python: str) -> Iterator[Tuple[str, str, str]]:
    """Yield what a controller needs: the kind of package, its name, and its versions."""
    yield "pypi", "ansible-core", runtime["requires_ansible"]
    for line in python.splitlines():
        stated = REQUIREMENT.match(line)
        if stated:
            yield "pypi", stated[1], stated[2]
    for name, versions in info["dependencies"].items():
        yield "generic", name, versions


def _needed(kind: str, name: str, versions: str) -> Component:
    return Component(
        name=name,
        type=ComponentType.LIBRARY,
        bom_ref=f"{kind}:{name}",
        purl=PackageURL(kind, name=name),
        properties=[Property(name="onprem.lb:versions", value=versions)],
    )


def written(path: Path) -> str:
    """Return the bill of an archive as text, which the format's own schema has judged."""
    text = make_outputter(bill(path), OutputFormat.JSON, VERSION).output_as_string(indent=2)
    wrong = JsonStrictValidator(VERSION).validate_str(text)
    if wrong:
        raise ValueError(f"sbom: {wrong}")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    chosen = parser.parse_args()
    chosen.output.write_text(written(chosen.archive))


if __name__ == "__main__":
    main()
