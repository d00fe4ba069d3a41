# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A removal reads only the variables that it needs, so that a mistake in another one does not stop it."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible.template import trust_as_template
from ansible_collections.onprem.lb.plugins.module_utils._shared import platforms
from support.paths import ROLES
from support.roles import calls, variables_of

FILES = "onprem.lb.config_files"


@pytest.mark.parametrize("layout, variable", [("pair", "pair_services"), ("ipi", "ipi_machine_networks")])
def test_an_undefined_variable_does_not_stop_a_removal(layout, variable):
    defaults = yaml.safe_load((ROLES / layout / "defaults" / "main.yml").read_text())
    variables = {
        **defaults,
        **variables_of("layout"),
        "layout_definition": {"prefix": layout},
        "__layout_host": {"unremovable": {}, "active_units": [], "enabled_units": []},
        f"{layout}_down_file": "/run/lb.down",
        variable: trust_as_template("{{ no_such_variable.servers }}"),
    }
    ((_module, removed),) = calls("layout", variables, FILES, tasks_from="absent.yml")
    assert {"path": "/etc/systemd/system/onprem-lb-metrics.service", "state": "absent"} in removed["files"]
    assert {"path": "/run/lb.down", "state": "absent"} in removed["files"]


def test_what_other_programs_may_use_is_installed_and_not_recorded_for_a_removal():
    shared = [*platforms.PING_PACKAGES.values(), *platforms.SEBOOLEAN_PACKAGES.values(), "psmisc", "curl", "nftables"]
    host = {"missing_packages": ["keepalived", *shared], "recorded_packages": ["haproxy"], "os_family": "Debian"}
    variables = {**variables_of("keepalived"), "__keepalived_host": {**host, "package_lists_fresh": True}}
    variables["ansible_check_mode"] = False
    found = dict(calls("keepalived", variables, FILES, "ansible.builtin.apt", tasks_from="install.yml"))
    assert json.loads(found[FILES]["files"][0]["content"]) == ["haproxy", "keepalived"]
    assert found["ansible.builtin.apt"]["name"] == host["missing_packages"]
