# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The inventory that a configuration of HAProxy and keepalived becomes, as a YAML file."""

from __future__ import annotations

import json
import re

import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.imported import inventory
from ansible_collections.onprem.lb.plugins.module_utils._shared import own_text

TEMPLATE = re.compile(r"\{[{%#]")  # what Ansible would evaluate


class _Dumper(yaml.SafeDumper):
    """Indents lists, and marks what Ansible is not to evaluate."""

    def increase_indent(self, flow=False, indentless=False):
        return super().increase_indent(flow, False)

    def ignore_aliases(self, data):
        return True


def _text(dumper, text):
    tag = "!unsafe" if TEMPLATE.search(text) else "tag:yaml.org,2002:str"
    return dumper.represent_scalar(tag, text, style="'" if tag == "!unsafe" else None)


_Dumper.add_representer(str, _text)


def imported_inventory(hosts, adopts=False):
    """Return ``{faults, text, lines}``: the text of the inventory, and what to tell the user.

    :param hosts: as `inventory.write` takes them
    :param adopts: whether the files are those of the hosts
    """
    found = inventory.write(hosts, adopts)
    if found.faults:
        return {"faults": found.faults, "text": "", "lines": []}
    plain = json.loads(json.dumps(found.inventory))  # Ansible's own kinds of text are none that YAML knows
    body = yaml.dump(plain, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)
    comments = "".join(f"# {line}\n" for line in found.comments)
    return {"faults": [], "text": own_text.sealed(f"{comments}{body}"), "lines": found.lines}


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {"imported_inventory": imported_inventory}
