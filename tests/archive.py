"""Verifies that the collection's archive has what a user needs, and nothing that only developers need."""

from __future__ import annotations

import sys
import tarfile

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


def main(path: str) -> None:
    with tarfile.open(path) as archive:
        names = {name.removeprefix("./") for name in archive.getnames()} - {"", "."}
    surplus = sorted(name for name in names if name.startswith(FORBIDDEN))
    missing = sorted(NEEDED - names)
    if surplus or missing:
        sys.exit(f"{path}: too much: {surplus}, missing: {missing}")
    print(f"{path}: {len(names)} files and folders, none of tests, lab or bench")


if __name__ == "__main__":
    main(sys.argv[1])
