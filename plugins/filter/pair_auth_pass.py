# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Give a pair's password: see pair_auth_pass.yml beside this file."""

from __future__ import annotations

import uuid

from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import members as _members


def pair_auth_pass(members):
    return _members.auth_pass(members, fresh=lambda: str(uuid.uuid4()))


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self):
        return {"pair_auth_pass": pair_auth_pass}
