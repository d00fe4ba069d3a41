# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads an inventory as Ansible does, and plans its layouts as the forecast does: no host is reached."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner, several
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import Plan
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair

from support.paths import ROLES

LAYOUTS = {"ipi": ipi.LAYOUT, "pair": pair.LAYOUT}
GROUPS = {"ipi": ("ipi_masters", "ipi_workers"), "pair": ("pair",)}


class Inventory:
    """An inventory file or folder."""

    def __init__(self, path: Path):
        self._loader = DataLoader()
        self._manager = InventoryManager(loader=self._loader, sources=[str(path)])
        self._variables = VariableManager(loader=self._loader, inventory=self._manager)

    def layouts(self) -> List[str]:
        """Return the layouts that this inventory has hosts for."""
        return [layout for layout in LAYOUTS if self.hosts(layout)]

    def hosts(self, layout: str) -> List[str]:
        return [host for group in GROUPS[layout] for host in self.group(group)]

    def group(self, name: str) -> List[str]:
        return list(self._manager.get_groups_dict().get(name, []))

    def variables(self, host: str, prefix: str) -> Dict[str, Any]:
        """Return the variables of this prefix that the inventory sets for a host, their templates evaluated."""
        return self._evaluate(self._known(host), prefix)

    def _known(self, host: str) -> Dict[str, Any]:
        hostvars = HostVars(self._manager, self._variables, self._loader)
        return {**self._variables.get_vars(host=self._manager.get_host(host)), "hostvars": hostvars}

    def _evaluate(self, known: Dict[str, Any], prefix: str) -> Dict[str, Any]:
        templar = Templar(loader=self._loader, variables=known)
        return {name: templar.template(value) for name, value in known.items() if name.startswith(prefix)}

    def plan(self, layout: str, **settings: Any) -> Plan:
        """Return the plan of a layout of which the inventory has one; see `plans`."""
        (plan,) = self.plans(layout, **settings).plans
        return plan

    def plans(self, layout: str, **settings: Any) -> several.Plans:
        """Return the plans of a layout for hosts that nothing is known of.

        :param settings: what all members have in place of the inventory's, without the prefix of the layout
        """
        members = [self._member(host, layout) for host in self.hosts(layout)]
        changed = [{**member, "settings": {**member["settings"], **settings}} for member in members]
        return several.draw(LAYOUTS[layout], changed, planner.plan)

    def _member(self, host: str, layout: str) -> Dict[str, Any]:
        prefix, defaults = f"{layout}_", str(ROLES / layout / "defaults" / "main.yml")
        known = {**self._loader.load_from_file(defaults, trusted_as_template=True), **self._known(host)}
        settings = {name[len(prefix) :]: value for name, value in self._evaluate(known, prefix).items()}
        return {
            "name": host,
            "address": self.variables(host, "ansible_host").get("ansible_host", host),
            "groups": [group.name for group in self._manager.get_host(host).get_groups()],
            "members": settings["members"] if layout == "pair" else [*settings["masters"], *settings["workers"]],
            "settings": settings,
            "host": None,
            "outside_limit": False,
        }
