# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""keepalived's hook as one file: it runs by itself, wherever it was built."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile

import pytest
from support.hooks import hook
from support.paths import AGENT


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "hook"
    path.write_bytes(hook())
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("what", [["ended"], ["take-over"], ["yielded", "vip-192.0.2.10"]])
def test_it_has_every_module_that_it_imports(program, tmp_path, what):
    config = tmp_path / "keepalived.conf"
    config.write_text("")
    (tmp_path / "systemctl").symlink_to("/bin/true")
    command = [program, what[0], config, *what[1:]]
    here = {"PATH": str(tmp_path)}
    ran = subprocess.run(command, capture_output=True, text=True, cwd="/", env=here, timeout=60, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_it_has_no_others():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import _agent.keepalived.resignation, _agent.keepalived.peers, _agent.keepalived.predecessor\n"
        "import _agent.keepalived.answers\n"
        "print(*(name for name in sys.modules if name.partition('.')[0] == '_agent'))\n"
    )
    built = zipfile.ZipFile(io.BytesIO(hook()))
    packed = {name[:-3].replace("/__init__", "").replace("/", ".") for name in built.namelist()} - {"__main__"}
    assert packed == imported(code)


def imported(code):
    ran = subprocess.run([sys.executable, "-IS", "-c", code, AGENT.parent], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())
