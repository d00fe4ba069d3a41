# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is shipped has one licence, a bill of materials, and a signature that Ansible verifies."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile

import archive
import pytest
import sbom
import sign
from ansible.galaxy.collection import verify_file_signatures
from support.paths import ROOT

OURS = f"{archive.HEADER}https://www.gnu.org/licenses/gpl-3.0.txt)\n"
LICENCE = (ROOT / "LICENSE").read_text()
FILES = {
    "LICENSE": LICENCE,
    "README.md": "# A collection\n",
    "meta/runtime.yml": 'requires_ansible: ">=2.16.0"\n',
    "requirements.txt": "# What the controller needs.\nnetaddr>=1.0\n",
    "plugins/filter/plan.py": OURS,
}
INFO = {
    "namespace": "onprem",
    "name": "lb",
    "version": "1.2.3",
    "description": "A balancer.",
    "dependencies": {"ansible.posix": ">=1.5.0"},
}


def packed(path, files):
    """Return an archive as `ansible-galaxy` builds it: the manifest has the checksum of the list of files."""
    listed = [
        {"name": name, "ftype": "file", "chksum_sha256": hashlib.sha256(text.encode()).hexdigest()}
        for name, text in files.items()
    ]
    list_of_files = json.dumps({"files": [{"name": ".", "ftype": "dir"}, *listed]})
    checksum = hashlib.sha256(list_of_files.encode()).hexdigest()
    manifest = json.dumps({"collection_info": INFO, "file_manifest_file": {"chksum_sha256": checksum}})
    with tarfile.open(path, "w:gz") as made:
        for name, text in {"MANIFEST.json": manifest, "FILES.json": list_of_files, **files}.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            made.addfile(member, io.BytesIO(text.encode()))
    return path


def test_a_file_without_a_licence_or_with_anothers_is_refused():
    assert list(archive.unlicensed(FILES)) == []
    assert [*archive.unlicensed({"plugins/a.py": "pass\n"})] == [
        "LICENSE does not have the text of the licence: put it there.",
        f"plugins/a.py does not say its licence: begin it with '{archive.HEADER}...'.",
    ]


@pytest.mark.parametrize(
    "claim",
    ["Copyright (c) 2020 Somebody", "Copyright 2020 Somebody", "SPDX-License-Identifier: MIT", "Licensed under BSD"],
)
def test_whoever_elses_file_is_shipped_is_named(claim):
    (fault,) = archive.unlicensed({**FILES, "docs/picture.svg": f"<!-- {claim} -->"})
    assert fault.startswith("docs/picture.svg says ") and claim in fault
    assert list(archive.unlicensed({**FILES, "a.yml": "# Copyright (c) 2026 The onprem.lb authors\n"})) == []


def test_every_program_of_this_tree_says_its_licence():
    programs = [path for part in ("plugins", "playbooks", "roles") for path in (ROOT / part).rglob("*.py")]
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in programs}
    assert texts and list(archive.unlicensed({**texts, "LICENSE": LICENCE})) == []


def test_the_bill_has_each_file_and_what_a_controller_needs(tmp_path):
    path = packed(tmp_path / "onprem-lb-1.2.3.tar.gz", FILES)
    found = json.loads(sbom.written(path))
    assert json.loads(sbom.written(path.rename(tmp_path / "copy.tar.gz"))) == found
    whole = found["metadata"]["component"]
    assert (whole["name"], whole["version"]) == ("onprem.lb", "1.2.3")
    assert whole["licenses"] == [{"license": {"id": sbom.LICENCE}}]
    files, libraries = (
        [each["name"] for each in found["components"] if each["type"] == kind] for kind in ("file", "library")
    )
    assert (files, libraries) == (sorted(FILES), ["ansible-core", "ansible.posix", "netaddr"])
    needed = next(each for each in found["dependencies"] if each["ref"] == "onprem.lb")["dependsOn"]
    assert needed == ["generic:ansible.posix", "pypi:ansible-core", "pypi:netaddr"]


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Return two secret keys as text, and a keyring with the first one alone."""
    home = tmp_path_factory.mktemp("keys")
    home.chmod(0o700)

    def gpg(*words):
        command = ["gpg", "--homedir", home, "--batch", "--quiet", "--passphrase", "", *words]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout

    try:
        for name in ("ours", "another"):
            gpg("--quick-generate-key", name, "ed25519", "sign", "never")
        keyring = home / "ours.kbx"
        keyring.write_bytes(gpg("--export", "ours"))
        gpg("--check-trustdb")  # or the first verification does it, and says so where Ansible reads faults
        yield [gpg("--armor", "--export-secret-keys", name).decode() for name in ("ours", "another")], keyring
    finally:
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)


def test_ansible_verifies_the_signature(tmp_path, monkeypatch, keys):
    (own, other), keyring = keys
    monkeypatch.setenv("GNUPGHOME", str(keyring.parent))
    path = packed(tmp_path / "onprem-lb-1.2.3.tar.gz", FILES)
    changed = packed(tmp_path / "changed.tar.gz", {**FILES, "README.md": "# Changed\n"})

    def is_verified(signed, key, of):
        signature = sign.sign(signed, key).read_text()
        manifest = tmp_path / "MANIFEST.json"
        manifest.write_bytes(sign.manifest(of))
        return verify_file_signatures("onprem.lb", str(manifest), [signature], str(keyring), "all", [])

    assert is_verified(path, own, path)
    assert not is_verified(path, other, path) and not is_verified(path, own, changed)
