# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All of the agent travels inside the module, through Ansible itself."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent import VERSION
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import archive, embedded
from support.paths import AGENT, COLLECTIONS

MODULE = """\
#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.onprem.lb.plugins.module_utils._agent import VERSION
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import embedded

import hashlib

module = AnsibleModule({})
module.exit_json(digest=hashlib.sha256(embedded.build()).hexdigest(), version=VERSION)
"""


def test_on_the_controller_it_is_what_the_folder_gives():
    assert embedded.build() == archive.build(str(AGENT))


def test_on_the_target_it_is_byte_for_byte_the_same(tmp_path):
    pytest.importorskip("ansible.cli")
    if not (COLLECTIONS / "ansible_collections" / "onprem" / "lb").exists():
        pytest.skip("ansible finds the collection elsewhere")
    (tmp_path / "carry.py").write_text(MODULE)
    (tmp_path / "ansible.cfg").touch()
    environ = {
        **os.environ,
        "ANSIBLE_LIBRARY": str(tmp_path),
        "ANSIBLE_HOME": str(tmp_path),
        "ANSIBLE_CONFIG": str(tmp_path / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.minimal",
        "ANSIBLE_LOAD_CALLBACK_PLUGINS": "true",
    }
    ran = subprocess.run(
        [sys.executable, "-m", "ansible", "adhoc", "-i", "localhost,", "-c", "local", "localhost", "-m", "carry"]
        + ["-e", f"ansible_python_interpreter={sys.executable}"],
        capture_output=True,
        text=True,
        env=environ,
        timeout=120,
        check=False,
    )
    said = json.loads(ran.stdout.partition("=>")[2] or "{}")
    assert said.get("digest") == hashlib.sha256(archive.build(str(AGENT))).hexdigest(), ran.stdout + ran.stderr
    assert said["version"] == VERSION
