# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup reads all that a component role's configuration is made of, with its templates evaluated."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleLookupError
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.onprem.lb.plugins.lookup import role_settings
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.components import COMPONENTS
from support.paths import ROLES


def settings(role, **given):
    """Return what the lookup reads of a role's defaults, and of what a user has set."""
    loader = DataLoader()
    defaults = loader.load_from_file(str(ROLES / role / "defaults" / "main.yml"), trusted_as_template=True)
    known = {"inventory_hostname": "lb1", **defaults, **given}
    lookup = role_settings.LookupModule(loader=loader, templar=Templar(loader=loader, variables=known))
    (found,) = lookup.run([role], variables=known)
    return found


@pytest.mark.parametrize("role", ["agent", "haproxy", "keepalived"])
def test_each_setting_has_a_default(role):
    assert set(settings(role)) == set(COMPONENTS[role].configured())


def test_templates_are_evaluated_and_what_the_user_sets_comes_first():
    found = settings("keepalived", keepalived_script_user="keepalived_script")
    assert (found["router_id"], found["script_user"]) == ("lb1", "keepalived_script")


def test_what_only_tasks_read_is_not_evaluated():
    assert "packages" not in settings("haproxy", haproxy_packages="{{ undefined_here }}")


@pytest.mark.parametrize(
    "role, sentence",
    [("pair", f"'pair': one of {', '.join(COMPONENTS)} is required"), ("haproxy", "haproxy_services")],
)
def test_what_it_cannot_read_is_a_sentence(role, sentence):
    loader = DataLoader()
    lookup = role_settings.LookupModule(loader=loader, templar=Templar(loader=loader, variables={}))
    with pytest.raises(AnsibleLookupError, match=sentence):
        lookup.run([role], variables={})
