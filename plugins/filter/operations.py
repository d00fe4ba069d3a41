# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The status of members, a switchover, a rollback: see the .yml of each filter beside this file."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.model import rollback as rollback_model
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations import rollback, status, switchover


def members_status(given, drill=None):
    return status.status(given, drill)._asdict()


def switchover_steps(given, to="", back=False):
    return switchover.steps(given, to, back)._asdict()


def rollback_steps(given, to="", only_list=False):
    return rollback.steps(given, to, only_list)._asdict()


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {
            "members_status": members_status,
            "rollback_faults": rollback_model.faults,
            "rollback_steps": rollback_steps,
            "switchover_measured": switchover.measured,
            "switchover_steps": switchover_steps,
        }
