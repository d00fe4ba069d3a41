# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filters that turn a role's variables into what it renders."""

from __future__ import annotations

import functools
import importlib.util
import json

from ansible.utils.display import Display
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import (
    agent,
    frr,
    haproxy,
    instances,
    playbooks,
    services,
    tls_content,
    variables,
    wanted,
)
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import handed as model_handed
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import PROXY
from ansible_collections.onprem.lb.plugins.plugin_utils import specs, templates
from ansible_collections.onprem.lb.plugins.plugin_utils.command_line import extra_variables
from ansible_collections.onprem.lb.plugins.plugin_utils.evaluation import opened

DISPLAY = Display()
LACKS = (
    "The controller lacks the collection {name}, which hosts with SELinux need: "
    "install it with ansible-galaxy collection install {name}."
)


def evaluated_once(function):
    """Return the last result again while the arguments are the same.

    Ansible evaluates a variable at each of its uses, of which a task has several. Thousands of servers show that.
    """
    last = {}

    @functools.wraps(function)
    def remembering(*arguments, **keywords):
        given = json.dumps(_plain([arguments, keywords]), default=str)
        if given not in last:
            last.clear()
            last[given] = function(*arguments, **keywords)
        return last[given]

    return remembering


def _plain(value):
    """Return a variable whose templates Ansible evaluates when they are looked at, with all of them evaluated."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _with_planned(settings):
    """Return a role's settings with the services of a plan, which are JSON, as a list."""
    known = _plain(settings)
    return {**known, "services": services.planned(known["services"])} if "services" in known else known


def _about(name, host, handed, replaces):
    """Return what the model of a balancer is made of beside its settings.

    :param name: of the host, and ``host`` is what was read of it
    :param handed: what a layout hands on, as `model.handed` has it; nothing where a role is used alone
    :param replaces: the programs that go, whose listeners are no conflict
    """
    listeners = [each for each in host["listeners"] if each["program"] not in replaces]
    own = {key: handed[key] for key in (*model_handed.FOR_THE_MODEL, "asking", "contents") if key in handed}
    return {"listeners": listeners, "host": name, "addresses": host["addresses"], **own}


def agent_config(settings, name, host, handed, replaces):
    """Return what the agent is given. Its module takes the configuration of the proxy as JSON, too."""
    return _agent_config(settings, **_about(name, host, handed, replaces))


@evaluated_once
def _agent_config(settings, **about):
    found = agent.translate(_with_planned(settings), **about)
    return {**found, PROXY: json.dumps(found[PROXY]) if found[PROXY] else None}


def haproxy_model(settings, name, host, handed):
    """Return the model with its services as JSON, as its template takes them."""
    about = _about(name, host, handed, handed.get("replaces", ()))
    return _haproxy_model(settings, host.get("unrestricted_tls", []), resolved=host["resolved"], **about)


@evaluated_once
def _haproxy_model(settings, unrestricted, **about):
    found = haproxy.model(haproxy.settings_of(_with_planned(settings)), **about)
    ports = [service["port"] for service in found["services"]]
    return {**haproxy.for_template(found, unrestricted), "service_ports": ports}


@evaluated_once
def keepalived_model(settings):
    """Return the model with each fault as a sentence.

    :param settings: the variables of the role keepalived, without their prefix
    """
    return instances.keepalived_model(instances.settings_of(settings))


@evaluated_once
def _frr_model(settings, own):
    return frr.model(settings, own)


def frr_model(settings, host):
    """Return the model with each fault as a sentence.

    :param settings: the variables of the role frr, without their prefix
    :param host: as `host_info` has read it
    """
    return _frr_model(settings, [each["address"] for each in host["addresses"]])


_RENDERED = {}  # by template: what it was last rendered from, and the text


def role_template(name, **variables):
    """Return the last text again while the variables are the same: a unit's drop-in needs that of the configuration."""
    given = json.dumps(_plain(variables), default=str)
    if _RENDERED.get(name, ("",))[0] != given:
        _RENDERED[name] = (given, templates.render(name, variables))
    return _RENDERED[name][1]


def unknown_variables(names, known, owner="role", shared=False):
    """Return the faults, and show the warnings."""
    found = variables.unknown_variables(names, known, owner, shared, extra_variables())
    for warning in found.warnings:
        DISPLAY.warning(warning)
    return found.faults


def playbook_faults(names, playbook, given):
    """Return what is wrong with a playbook's variables, and warn of those that are close to one of them.

    :param names: of all variables that begin with its name
    :param given: those of them that are its own, without their prefix
    """
    unknown = unknown_variables(names, playbooks.variables(playbook), "playbook")
    return unknown + playbooks.faults(given, playbook)


def services_to_read(services):
    """Return services as `host_info` takes them, without the texts of certificates."""
    return tls_content.to_read(opened(_plain(services)))


def missing_collections(names):
    """Return a sentence for each collection that the controller lacks."""
    return [LACKS.format(name=name) for name in names if not _is_installed(name)]


def _is_installed(collection):
    try:
        return importlib.util.find_spec(f"ansible_collections.{collection}") is not None
    except ModuleNotFoundError:  # not even one of its namespace is
        return False


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {
            "agent_config": agent_config,
            "frr_model": frr_model,
            "haproxy_model": haproxy_model,
            "keepalived_model": keepalived_model,
            "is_true": playbooks.is_true,
            "layout_read_faults": playbooks.layout_faults,
            "missing_collections": missing_collections,
            "not_in_force": wanted.not_in_force,
            "playbook_faults": playbook_faults,
            "playbook_variables": playbooks.variables,
            "role_options": specs.role_options,
            "role_template": role_template,
            "services_to_read": services_to_read,
            "unfit_faults": variables.unfit_faults,
            "unknown_variables": unknown_variables,
        }
