# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of every host of a play in one task. Ansible forks a worker for each host and task, which costs more
than what it does there."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence

from ansible.template import Templar
from ansible_collections.onprem.lb.plugins.plugin_utils.evaluation import evaluator

UNORDERED = ("free", "host_pinned")  # strategies, of Ansible or of a plugin, in which hosts do not wait for each other


class PlayHost(NamedTuple):
    """A host of a play.

    :ivar known: its variables as a task of its own would have them: with the defaults of roles, ``vars`` and ``-e``
    :ivar evaluate: returns the value of a template there, or raises AnsibleError
    """

    known: Dict[str, Any]
    evaluate: Callable[[Any], Any]


def play_host(name: str, task: Any, known: Mapping[str, Any], loader: Any) -> PlayHost:
    """Return a host of the play of a task.

    ``hostvars`` would lack what the role and the play say.

    :param known: the variables of the task
    """
    hostvars = known["hostvars"]
    found = hostvars._variable_manager.get_vars(
        play=task.play,
        host=hostvars._inventory.get_host(name),
        task=task,
        _hosts=known["ansible_play_batch"],
        _hosts_all=known["ansible_play_hosts_all"],
    )
    return PlayHost(found, evaluator(Templar(loader=loader, variables=found)))


def play_fault(play: Any) -> str:
    """Return why the members cannot be set up together in a play; empty if they can."""
    if str(play.strategy).endswith(UNORDERED):
        return f"the members wait for each other, and the strategy is {play.strategy}: set strategy: linear."
    if play.serial:
        return "the members are planned together, and the play takes them in batches: remove serial."
    return ""


def together(found: Mapping[str, Sequence[str]]) -> List[str]:
    """Return the faults of hosts, each once, with the hosts that have it where not all of them do.

    :param found: the faults by host
    """
    hosts: Dict[str, List[str]] = {}
    for host, faults in found.items():
        for fault in dict.fromkeys(faults):
            hosts.setdefault(fault, []).append(host)
    return [fault if len(named) == len(found) else f"{', '.join(named)}: {fault}" for fault, named in hosts.items()]
