"""Replaces the script that ansible-test downloads to install pip into its virtual environments by one with ensurepip.

Writes it where ansible-test looks first, unless there is one already.
"""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

CACHE = Path.home() / ".ansible" / "test" / "cache"
SCRIPT = "# Written by onprem.lb's `make sanity`.\nimport ensurepip\n\nensurepip.bootstrap()\n"


def script_names() -> set[str]:
    """Return the names that this ansible-test uses, get_pip_VERSION.py."""
    spec = find_spec("ansible_test")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("ansible-test is not installed: run `make setup`.")
    source = Path(spec.submodule_search_locations[0], "_internal", "python_requirements.py").read_text()
    versions = re.findall(r"\bpip='([\d.]+)'", source)
    return {f"get_pip_{version.replace('.', '_')}.py" for version in versions}


def main() -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    for name in script_names():
        if not (CACHE / name).exists():
            (CACHE / name).write_text(SCRIPT)


if __name__ == "__main__":
    main()
