#!/usr/bin/python
# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: agent_archive
short_description: Write the embedded agent as one file, which python3 runs
version_added: 1.0.0
author:
  - The onprem.lb authors (!UNKNOWN)
description:
  - Builds the agent on the host from the sources in this module's payload. Nothing is downloaded or started.
  - P(onprem.lb.agent#module) installs it as a service. This is for its other commands, such as C(metrics).
options:
  path:
    description: The path of the archive. The folder is created.
    type: path
    required: true
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    description: Says whether the file differs.
  diff_mode:
    support: none
    description: The file is an archive.
  platform:
    support: full
    platforms: posix
    description: The file is renamed within its folder.
"""

EXAMPLES = r"""
- name: Write the agent
  onprem.lb.agent_archive:
    path: /usr/local/lib/mine/agent.pyz
"""

RETURN = r"""
paths:
  description: The path of the archive.
  type: list
  elements: str
  returned: success
python:
  description: The Python that runs this module, and can run the archive.
  type: str
  returned: success
checksum:
  description: The SHA-256 of the archive. A unit that names it is started anew for each version.
  type: str
  returned: success
"""

import sys

from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import embedded
from ansible_collections.onprem.lb.plugins.module_utils._host.module import Module, ending_in_words
from ansible_collections.onprem.lb.plugins.module_utils._host.write import programs


@ending_in_words
def main():
    module = Module(argument_spec={"path": {"type": "path", "required": True}}, supports_check_mode=True)
    path = module.params["path"]
    programs.keep(module, path, embedded.build(), paths=[path], python=sys.executable)


if __name__ == "__main__":
    main()
