# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Locks, status, switchover, maintenance, rollback and backup of members.

Where it is not said otherwise, ``given`` is a list of the hosts of the play: ``{name, members, vips, engine, seen}``,
the last as `member_info` returns it.
"""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.model import drill_records, playbooks
from ansible_collections.onprem.lb.plugins.module_utils._plan.operations import (
    backup,
    draining,
    locking,
    maintenance,
    members,
    outside,
    rollback,
    status,
    steps,
    switchover,
    turns,
    updates,
)
from ansible_collections.onprem.lb.plugins.plugin_utils import command_line


def members_status(given, **beside):
    """Return ``{lines, data, faults}``: who holds each VIP, and who could take over.

    :param beside: what `status.Beside` names
    """
    return status.status(given, status.Beside(**beside))._asdict()


def status_asked(given, plans, heard):
    """Return what the host that is no member asks through each VIP, as `outside.asked` does.

    :param plans: as `layout_drafts` returns them
    :param heard: what `layout_info` has returned there
    """
    return outside.asked(plans, status.questions(given, plans)["targets"], heard)


def switchover_steps(given, to="", back=False, leaving="", wait=0):
    """Return ``{faults, lines, stop, hold, start, expected, probe, leave, frr, announce}`` of a planned handover.

    :param to: the member that is to hold the VIPs; the second in priority when empty
    :param back: whether an earlier switchover ends
    :param leaving: the member that is to announce its VIPs by BGP no more
    :param wait: for how many seconds at most its connections are waited for
    """
    return switchover.steps(given, to, back, leaving, int(wait))._asdict()


def rollback_steps(given, to="", only_list=False):
    """Return ``{faults, lines, id, what, members, first, settle, turns, proofs}`` of a rollback.

    :param given: with ``states``, as `member_state` lists them
    :param to: the ID of a state; the newest that is not the present one when empty
    :param only_list: list the states instead
    """
    return rollback.steps(given, to, only_list)._asdict()


def members_locked(loops, own, host):
    """Return ``{loops, attempted, interrupted, interrupted_as}``, as `locking.Locks` has them."""
    return locking.read(loops, own, host)._asdict()


def members_backup(given, made, file):
    """Return ``{faults, lines, text}``: one file of the states of members.

    :param given: with ``state``, as `member_state` exports it
    :param made: the backup's ID, the time at which it is made
    :param file: its path
    """
    return backup.make(given, made, file)._asdict()


def backup_contents(text, file, names, downgrades=False):
    """Return ``{faults, backup, members}`` of the text of a backup.

    :param file: its path, for the sentences
    :param names: the members that it is for
    :param downgrades: whether one that a newer version of the collection wrote is accepted
    """
    return backup.read(text, file, names, downgrades)._asdict()


def maintenance_settings(given, names):
    """Return ``{faults, settings}``, the latter with the ``work`` in words.

    :param given: the variables of a maintenance that are set, without their prefix
    :param names: of all members
    """
    return playbooks.model(given, names)._asdict()


def maintenance_updates(packages, manager, answer):
    """Return ``{faults, newest, exact, asked}``, as `updates.of` does."""
    return updates.of(packages, manager, answer)._asdict()


def maintenance_plan(given, wanted, work):
    """Return ``{faults, lines, order, done}``: which member is maintained when.

    :param wanted: the members that are asked for, none for all
    :param work: what is done to each, in words
    """
    return maintenance.plan(given, wanted, work)._asdict()


def maintenance_drain(given, name, settings, done, proved=()):
    """Return the steps that drain a member, as `switchover_steps` does.

    :param settings: as `maintenance_settings` returns them
    :param done: the members that this maintenance has finished
    :param proved: those that a dry run takes for proved
    """
    return maintenance.drain(given, name, settings["work"], done, proved, settings["wait"])._asdict()


def last_one_that_announces(given, name):
    """Say which VIPs nobody would be known to serve if a member left now; [] if there are none."""
    layout, member = members.member_of(members.layouts(given), name)
    return draining.last_one(layout, member)


def layouts_among(groups, pair, ipi):
    """Return which layouts' plays are imported: those that the inventory has, as `playbooks.layouts_among` tells.

    Ansible asks before the first play, and does not say then with which variables a user's playbook imports ours.
    """
    return playbooks.layouts_among(groups, pair, ipi) if command_line.names_only_ours() else "both"


def maintenance_give_back(given, name):
    """Return the steps with which a member takes part again, as `switchover_steps` does."""
    return maintenance.give_back(given, name)._asdict()


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {
            "drill_last_report": drill_records.last_report,
            "backup_contents": backup_contents,
            "backup_of_others": backup.of_others,
            "has_not_left": draining.has_not_left,
            "heartbeat_timeout": locking.heartbeat_timeout,
            "last_one_that_announces": last_one_that_announces,
            "layouts_among": layouts_among,
            "lock_refusals": locking.refusals,
            "lock_waits": locking.waits,
            "maintenance_drain": maintenance_drain,
            "maintenance_give_back": maintenance_give_back,
            "maintenance_plan": maintenance_plan,
            "maintenance_settings": maintenance_settings,
            "maintenance_stopped": maintenance.stopped,
            "maintenance_unproved": maintenance.unproved,
            "maintenance_updates": maintenance_updates,
            "members_backup": members_backup,
            "members_locked": members_locked,
            "members_status": members_status,
            "status_asked": status_asked,
            "status_questions": status.questions,
            "members_to_lock": locking.to_lock,
            "rollback_faults": status.faults_after_return,
            "rollback_steps": rollback_steps,
            "rollback_unproved": turns.unproved,
            "switchover_elsewhere": steps.elsewhere,
            "switchover_measured": steps.measured,
            "switchover_missed": steps.missed,
            "switchover_steps": switchover_steps,
        }
