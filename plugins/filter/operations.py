# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Locks, status, switchover, maintenance, rollback and backup of members: see the .yml beside this file."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.model import maintenance as settings
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import rollback as rollback_model
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations import (
    backup,
    locking,
    maintenance,
    rollback,
    status,
    steps,
    switchover,
)


def members_status(given, drill=None):
    return status.status(given, drill)._asdict()


def switchover_steps(given, to="", back=False):
    return switchover.steps(given, to, back)._asdict()


def rollback_steps(given, to="", only_list=False):
    return rollback.steps(given, to, only_list)._asdict()


def members_backup(given, made, file):
    return backup.make(given, made, file)._asdict()


def backup_contents(text, file, names, downgrades=False):
    return backup.read(text, file, names, downgrades)._asdict()


def maintenance_settings(given, names):
    return settings.model(given, names)._asdict()


def maintenance_plan(given, wanted, work):
    return maintenance.plan(given, wanted, work)._asdict()


def maintenance_drain(given, name, work, done):
    return maintenance.drain(given, name, work, done)._asdict()


def maintenance_give_back(given, name):
    return maintenance.give_back(given, name)._asdict()


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {
            "backup_contents": backup_contents,
            "lock_refusals": locking.refusals,
            "maintenance_drain": maintenance_drain,
            "maintenance_give_back": maintenance_give_back,
            "maintenance_plan": maintenance_plan,
            "maintenance_settings": maintenance_settings,
            "maintenance_stopped": maintenance.stopped,
            "maintenance_unproved": maintenance.unproved,
            "members_backup": members_backup,
            "members_status": members_status,
            "rollback_faults": rollback_model.faults,
            "rollback_steps": rollback_steps,
            "switchover_measured": steps.measured,
            "switchover_missed": steps.missed,
            "switchover_steps": switchover_steps,
        }
