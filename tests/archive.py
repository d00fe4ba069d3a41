# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verifies that the collection's archive has what a user needs, nothing that only developers need, and one licence."""

from __future__ import annotations

import re
import sys
import tarfile
from typing import Dict, Iterator

NEEDED = {
    "README.md",
    "LICENSE",
    "docs/pictures/pair.svg",
    "docs/monitoring/dashboard.json",
    "docs/monitoring/rules.yml",
    "examples/kubeadm-external.yml",
    "meta/execution-environment.yml",
    "meta/runtime.yml",
    "playbooks/callback_plugins/onprem_lb_failures.py",
    "playbooks/site.yml",
    "plugins/filter/plan.py",
    "requirements.txt",
    "roles/pair/README.md",
}
FORBIDDEN = ("tests", "lab", "bench", "molecule", ".", "Makefile", "ansible.cfg", "pyproject.toml")
# A program says its licence itself, as it may be copied out of the archive. LICENSE covers every other file.
PROGRAM, HEADER = ".py", "# GNU General Public License v3.0+ (see LICENSE or "
OWN = re.compile(r"The onprem\.lb authors|GPL-3\.0-or-later")
# How a file names whose it is, or another licence.
CLAIM = re.compile(
    r"(?:\bCopyright (?:\(c\)|©|[0-9])|\bSPDX-(?:License-Identifier|FileCopyrightText): ?|\bLicensed under ).*"
)


def unlicensed(texts: Dict[str, str]) -> Iterator[str]:
    """Yield a sentence for each file that has no licence, or somebody else's.

    :param texts: by the files' names
    """
    if not texts.get("LICENSE", "").lstrip().startswith("GNU GENERAL PUBLIC LICENSE"):
        yield "LICENSE does not have the text of the licence: put it there."
    for name, text in texts.items():
        if name.endswith(PROGRAM) and HEADER not in text:
            yield f"{name} does not say its licence: begin it with '{HEADER}...'."
        for claim in CLAIM.findall(text) if name != "LICENSE" else ():
            if not OWN.search(claim):
                yield f"{name} says {claim.strip()!r}: leave it out, or ship its licence and name it here."


def main(path: str) -> None:
    texts = {}
    with tarfile.open(path) as archive:
        names = {name.removeprefix("./") for name in archive.getnames()} - {"", "."}
        for member in archive:
            file = archive.extractfile(member)
            texts.update({member.name.removeprefix("./"): file.read().decode()} if file else {})
    surplus = sorted(name for name in names if name.startswith(FORBIDDEN))
    missing = sorted(NEEDED - names)
    if surplus or missing:
        sys.exit(f"{path}: too much: {surplus}, missing: {missing}")
    faults = list(unlicensed(texts))
    if faults:
        sys.exit("\n".join(f"{path}: {fault}" for fault in faults))
    print(f"{path}: {len(names)} files and folders, none of tests, lab or bench, all under the GPL")


if __name__ == "__main__":
    main(sys.argv[1])
