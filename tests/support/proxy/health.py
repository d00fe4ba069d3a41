# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of the proxy's servers, with fakes for everything around them."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.checks_process import Result, Run
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy.master.server_states import Dependencies, Health

from support.agent.loops import Time

A, B = settings.Server("a", "192.0.2.1", 8080, weight=10), settings.Server("b", "192.0.2.2", 8080)


def service(servers=(A, B), name="web", **health):
    return settings.Service(name, ("*",), 80, tuple(servers), health=settings.Health(**health))


class HealthCase:
    """``Health`` with a fake clock, and checks whose results come from the test."""

    def __init__(self, *services, remembered=None, begun=0):
        self.time, self.wall = Time(), 1000.0
        self.time.advance(begun)
        self.applied, self.suspected, self.updates, self.log, self.faults = [], [], [], [], set()
        self.health = Health(Dependencies(self.time, self, self, self.updates.append, lambda: self.wall))
        self.health.apply(services, remembered)

    # the checks

    def apply(self, checks, _user):
        self.applied = checks

    def suspect(self, name):
        self.suspected.append(name)

    def found(self, key, up, detail="because"):
        """Report the result of a check; return the updates that the workers get."""
        self.updates.clear()
        self.health.take_result(Result(key, up, 0, detail))
        return [order for orders in self.updates for order in orders.items()]

    def ran(self, key, success, detail):
        self.health.take_run(Run(key, success, detail, 1500))

    def admin_state(self, key, order):
        self.updates.clear()
        self.health.command(key, order)
        return [order for orders in self.updates for order in orders.items()]

    # the log

    def info(self, text):
        self.log.append(text)

    warning = info

    def fault(self, key, text):
        self.faults.add(key)
        self.log.append(f"fault {key}: {text}")

    def cured(self, key, text):
        if key in self.faults:
            self.faults.remove(key)
            self.log.append(f"cured {key}: {text}")

    def states(self):
        return {key: self.health[key].state for key in self.health.known()}
