# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One row for each setting of a controller, way to become root, and way to call the collection."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterable, List, NamedTuple, Tuple

PASSWORD = "Sesame-7"  # of root, and of the user clerk
ROLE = "onprem.lb.pair"


class Row(NamedTuple):
    """What differs from a controller that pipelines and plays onprem.lb.site.

    :ivar environment: settings of ansible.cfg, by their variables
    :ivar variables: of the pair's hosts, as in an inventory
    :ivar play: the play of a user's own
    :ivar vaulted: variables of the pair in a file that is encrypted
    :ivar runner: ansible-runner runs it
    :ivar refused: the sentence with which it is refused; it works without one
    """

    environment: Dict[str, str] = {}
    variables: Dict[str, Any] = {}
    play: Dict[str, Any] = {}
    vaulted: Dict[str, str] = {}
    runner: bool = False
    refused: str = ""

    def claims(self) -> FrozenSet[str]:
        """Return what no other row may say in the same run."""
        own = {*self.environment, *self.variables, *self.vaulted}
        # A play of a user's own says nothing of these, and ansible-runner prints with a callback of its own.
        of_play = {"ANSIBLE_STRATEGY", "ANSIBLE_ANY_ERRORS_FATAL"} if self.play else set()
        of_runner = {"ANSIBLE_STDOUT_CALLBACK"} if self.runner else set()
        return frozenset(own | of_play | of_runner)


def together(rows: Dict[str, Row]) -> Dict[str, Row]:
    """Return as few rows as say what all of these say, each named after those that it consists of.

    A refused one stays alone: it does not show what another setting does.
    """
    runs: List[List[str]] = []
    for name, row in reversed(rows.items()):  # the last ones exclude each other most
        fitting = [run for run in runs if not any(clash(row, rows[other]) for other in run)]
        if fitting:
            min(fitting, key=len).append(name)
        else:
            runs.append([name])
    return {", ".join(run): joined(rows[name] for name in run) for run in runs}


def clash(one: Row, other: Row) -> bool:
    return bool(one.refused or other.refused or one.claims() & other.claims())


def joined(rows: Iterable[Row]) -> Row:
    """Return the row that says what these say, of which no two clash."""
    every = list(rows)
    return Row(
        environment={key: value for row in every for key, value in row.environment.items()},
        variables={key: value for row in every for key, value in row.variables.items()},
        play={key: value for row in every for key, value in row.play.items()},
        vaulted={key: value for row in every for key, value in row.vaulted.items()},
        runner=any(row.runner for row in every),
        refused="".join(row.refused for row in every),
    )


def calls(call: str) -> Tuple[Dict[str, Any], ...]:
    return ({f"ansible.builtin.{call}": {"name": ROLE}},)


CLERK = {"ansible_user": "clerk"}
OWN = {"hosts": "pair", "become": True, "any_errors_fatal": True}
# The lock refuses it, or the plan, which needs all members: whichever comes first.
NOT_LINEAR = "set strategy: linear."
IN_BATCHES = "remove serial, and set strategy: linear."
NOT_ROOT = "this takes root: set become: true, and ansible_become_user, if you set it, to root."
NO_PASSWORD = "lb1 cannot be reached as root: Missing sudo password: give the password with --ask-become-pass."
ROWS: Dict[str, Row] = {
    "Ansible's own defaults": Row({"ANSIBLE_PIPELINING": "false"}),
    "strategy free": Row({"ANSIBLE_STRATEGY": "free"}),
    "strategy host_pinned": Row({"ANSIBLE_STRATEGY": "host_pinned"}),
    "native templating": Row({"ANSIBLE_JINJA2_NATIVE": "true"}),
    "extensions of Jinja": Row({"ANSIBLE_JINJA2_EXTENSIONS": "jinja2.ext.loopcontrols,jinja2.ext.do"}),
    "a cache of facts": Row({"ANSIBLE_CACHE_PLUGIN": "jsonfile", "ANSIBLE_CACHE_PLUGIN_CONNECTION": "facts"}),
    "facts not as variables": Row({"ANSIBLE_INJECT_FACT_VARS": "false"}),
    "dictionaries merged": Row({"ANSIBLE_HASH_BEHAVIOUR": "merge"}),
    "gathering explicit": Row({"ANSIBLE_GATHERING": "explicit"}),
    "gathering smart": Row({"ANSIBLE_GATHERING": "smart"}),
    "private variables of roles": Row({"ANSIBLE_PRIVATE_ROLE_VARS": "true"}),
    "any error fatal": Row({"ANSIBLE_ANY_ERRORS_FATAL": "true"}),
    "handlers forced": Row({"ANSIBLE_FORCE_HANDLERS": "true"}),
    "always become": Row({"ANSIBLE_BECOME": "true"}),
    "never log": Row({"ANSIBLE_NO_LOG": "true"}),
    "always a difference": Row({"ANSIBLE_DIFF_ALWAYS": "true"}),
    "one fork": Row({"ANSIBLE_FORKS": "1"}),
    "a time limit for tasks": Row({"ANSIBLE_TASK_TIMEOUT": "300"}),
    "files of modules kept": Row({"ANSIBLE_KEEP_REMOTE_FILES": "true"}),
    "ssh by pipes": Row({"ANSIBLE_SSH_TRANSFER_METHOD": "piped"}),
    "no shared connections": Row({"ANSIBLE_SSH_ARGS": "-o ControlMaster=no"}),
    "the locale C": Row({"LC_ALL": "C.UTF-8", "LANG": "C"}),
    "callback json": Row({"ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json"}),
    "callback minimal": Row({"ANSIBLE_STDOUT_CALLBACK": "minimal"}),
    "callback oneline": Row({"ANSIBLE_STDOUT_CALLBACK": "oneline"}),
    "results as YAML": Row({"ANSIBLE_CALLBACK_RESULT_FORMAT": "yaml", "ANSIBLE_DISPLAY_SKIPPED_HOSTS": "false"}),
    "callback profile_tasks": Row({"ANSIBLE_CALLBACKS_ENABLED": "ansible.posix.profile_tasks,ansible.posix.timer"}),
    "root over ssh": Row(variables={"ansible_user": "root", "ansible_become": False}),
    "sudo with a password": Row(variables={**CLERK, "ansible_become_password": PASSWORD}),
    "su with a password": Row(variables={**CLERK, "ansible_become_method": "su", "ansible_become_password": PASSWORD}),
    "sudo without sbin in its path": Row(variables={"ansible_user": "narrow"}),
    "a virtual environment as interpreter": Row(variables={"ansible_python_interpreter": "/opt/venv/bin/python"}),
    "an interpreter to be found": Row(variables={"ansible_python_interpreter": "auto"}),
    "another temporary folder": Row(variables={"ansible_remote_tmp": "/var/tmp/.ansible-${USER}"}),
    "ansible-runner": Row(runner=True),
    "vaulted variables": Row(vaulted={"pair_auth_pass": "Vault7ed"}),
    "own play with roles": Row(play={**OWN, "roles": [ROLE]}),
    "own play with import_role": Row(play={**OWN, "tasks": calls("import_role")}),
    "own play with include_role": Row(play={**OWN, "tasks": calls("include_role")}),
    "own play without any_errors_fatal": Row(play={"hosts": "pair", "become": True, "roles": [ROLE]}),
    "own play with a cache of facts": Row(
        {"ANSIBLE_GATHERING": "smart", "ANSIBLE_INJECT_FACT_VARS": "false"}, play={**OWN, "roles": [ROLE]}
    ),
    "own play that is free": Row({"ANSIBLE_STRATEGY": "free"}, play={**OWN, "roles": [ROLE]}, refused=NOT_LINEAR),
    "own play in batches": Row(play={**OWN, "serial": 1, "roles": [ROLE]}, refused=IN_BATCHES),
    "own play without become": Row(play={"hosts": "pair", "roles": [ROLE]}, refused=NOT_ROOT),
    "no become": Row(variables={"ansible_become": False}, refused=NOT_ROOT),
    "another user than root": Row(variables={"ansible_become_user": "clerk"}, refused=NOT_ROOT),
    "sudo without its password": Row(variables=CLERK, refused=NO_PASSWORD),
    "sudo with a wrong password": Row(
        variables={**CLERK, "ansible_become_password": "wrong"}, refused=NO_PASSWORD.replace("Missing", "Incorrect")
    ),
    "su with a wrong password": Row(
        variables={**CLERK, "ansible_become_method": "su", "ansible_become_password": "wrong"},
        refused="Incorrect su password: give the password with --ask-become-pass.",
    ),
}
