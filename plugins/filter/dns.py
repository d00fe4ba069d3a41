# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The DNS records of layouts, and the resolver of a node. dns_records.yml describes the public one."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError
from ansible_collections.onprem.lb.plugins.module_utils._plan.dns import layouts, resolver
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import restarts


def dns_records(described):
    given = described if isinstance(described, list) else [described]
    if not all(isinstance(one, dict) for one in given):
        raise AnsibleFilterError("onprem.lb.dns_records takes a mapping, or a list of them.")
    return layouts.describe(given)


def resolver_plan(settings, host):
    """Return ``{faults, warnings, told, answers}`` and the texts of the files; raise nothing.

    :param settings: the variables of the role resolver, without their prefix
    :param host: as `component_info` returns it
    """
    return resolver.plan(settings, host)._asdict()


def resolver_turns(hosts, unit):
    """Return the turns in which resolvers restart, each the names of its hosts.

    :param hosts: the variables of each host of the play
    :param unit: the resolver's
    """
    return restarts.turns([each["inventory_hostname"] for each in hosts if restarts.is_due(each, unit)])


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {"dns_records": dns_records, "resolver_plan": resolver_plan, "resolver_turns": resolver_turns}
