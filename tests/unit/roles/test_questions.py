# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a layout asks its hosts about servers before it plans."""

from __future__ import annotations

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from support.paths import ROLES
from support.roles import variables_of

SERVICE = {"name": "web", "port": 443, "servers": ["app1.example.com"]}
MASTERS, ROUTERS = [{"address": "master-0.example.com"}], ["192.0.2.31"]


def asked(**settings):
    """The arguments of host_info in a pair with some variables."""
    defaults = yaml.safe_load((ROLES / "pair" / "defaults" / "main.yml").read_text())
    given = {**defaults, **{f"pair_{key}": value for key, value in settings.items()}, "pair_members": ["lb1", "lb2"]}
    known = {**variables_of("layout"), **variables_of("pair"), **given}
    known["layout_definition"] = known["__pair_layout"]
    known["__layout_settings"] = {key[len("pair_") :]: value for key, value in given.items()}
    loader = DataLoader()
    tasks = loader.load_from_file(str(ROLES / "layout" / "tasks" / "plan.yml"), trusted_as_template=True)
    arguments = next(task["module_defaults"] for task in tasks if "module_defaults" in task)["onprem.lb.host_info"]
    return {
        key: Templar(loader=loader, variables=known).template(arguments[key])
        for key in ("servers", "api", "sets_booleans", "pings")
    }


def test_the_names_of_all_servers_are_resolved():
    found = asked(services=[SERVICE], masters=MASTERS, infra_nodes=ROUTERS)
    assert found["servers"] == [SERVICE, *MASTERS, *ROUTERS]
    assert asked()["servers"] == []
    assert found["sets_booleans"] is True


@pytest.mark.parametrize(
    "checks, pings",
    [
        ([], False),
        ([{"interface": "eth1"}, {"url": "http://localhost/up"}], False),
        ([{"interface": "eth1"}, {"gateway": "192.0.2.254"}], True),
        ({"gateway": "192.0.2.254"}, True),
        ("gateway", False),
        (None, False),
    ],
)
def test_ping_is_looked_for_where_a_gateway_is_checked(checks, pings):
    assert asked(checks=checks)["pings"] is pings


@pytest.mark.parametrize("preset", ["kubeadm", "rke2", "k3s", "openshift_upi"])
def test_the_certificates_of_api_servers_are_read(preset):
    found = asked(preset=preset, masters=MASTERS, api_names=["api.example.com"])
    assert found["api"] == {"servers": MASTERS, "names": ["api.example.com"]}


@pytest.mark.parametrize("preset", ["", "okd3"])
def test_before_others_no_certificate_is_read(preset):
    assert asked(preset=preset, masters=MASTERS)["api"] == {}
