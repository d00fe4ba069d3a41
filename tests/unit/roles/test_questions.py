# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a layout asks its hosts about servers before it plans."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.onprem.lb.plugins.filter.plan import layout_reads
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import presets
from ansible_collections.onprem.lb.plugins.module_utils._shared import paths
from support.paths import ROLES
from support.roles import variables_of

SERVICE = {"name": "web", "port": 443, "servers": ["app1.example.com"]}
MASTERS, ROUTERS = [{"address": "master-0.example.com"}], ["192.0.2.31"]


def asked(written=json.dumps, **settings):
    """The arguments of host_info in a pair with some variables; ansible-core 2.16 to 2.18 read what is written."""
    defaults = yaml.safe_load((ROLES / "pair" / "defaults" / "main.yml").read_text())
    given = {**defaults, **{f"pair_{key}": value for key, value in settings.items()}, "pair_members": ["lb1", "lb2"]}
    known = {**variables_of("layout"), **variables_of("pair"), **given}
    definition = Templar(loader=DataLoader(), variables=known).template(known["__pair_layout"])
    of_layout = {key[len("pair_") :]: value for key, value in given.items()}
    found = layout_reads(definition, {"settings": written(of_layout)}, paths.DEFAULTS, "root")
    return {**found, **found["layout"]}


def test_the_names_of_all_servers_are_resolved():
    found = asked(services=[SERVICE], masters=MASTERS, infra_nodes=ROUTERS)
    assert found["servers"] == [SERVICE, *MASTERS, *ROUTERS]
    assert asked()["servers"] == []
    assert found["sets_booleans"] is True


def test_settings_that_ansible_has_read_by_then_are_asked_in_the_same_way():
    assert asked(dict, services=[SERVICE]) == asked(services=[SERVICE])


def test_a_host_is_not_told_of_servers_that_have_an_address():
    servers = ["192.0.2.31", {"name": "s2", "address": "2001:db8::32"}, {"name": "s3", "address": "app3.example.com"}]
    route = {"name": "shop", "check": {"ca": "/etc/shop.pem"}, "servers": ["192.0.2.41", "app4.example.com"]}
    service = {**SERVICE, "tls": {"certificate": "/etc/web.pem"}, "servers": servers, "routes": [route]}
    found = asked(services=[service])
    told = {**service, "servers": servers[2:], "routes": [{**route, "servers": ["app4.example.com"]}]}
    assert found["servers"] == found["named"]["services"] == [told]


@pytest.mark.parametrize("services", [None, "web", 5, [5, "web", None], {"name": "web"}, [{"servers": {"a": 1}}]])
def test_a_host_is_told_of_services_that_are_none_as_they_are(services):
    assert asked(services=services)["named"]["services"] == (services or [])


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


@pytest.mark.parametrize("delivery, runs", [("unit", ["the balancer", "the router"]), ("pod", [])])
def test_systemd_is_missed_for_what_it_is_to_run(delivery, runs):
    """The resolver is a unit beside pods, too."""
    assert asked(delivery=delivery)["runs_units"] == runs
    assert asked(delivery=delivery, dns="true")["runs_units"] == [*runs, "the resolver"]


@pytest.mark.parametrize("preset", presets.NAMED)
def test_the_certificates_of_api_servers_are_read(preset):
    found = asked(preset=preset, masters=MASTERS, api_names=["api.example.com"])
    assert found["api"] == {"servers": MASTERS, "names": ["api.example.com"]}


@pytest.mark.parametrize("preset", ["", presets.DEFAULT])
def test_before_others_no_certificate_is_read(preset):
    assert asked(preset=preset, masters=MASTERS)["api"] == {}


@pytest.mark.parametrize("track, path", [(True, "/run/haproxy.down"), ("no", "")])
def test_a_down_file_that_nothing_tracks_is_no_matter(track, path):
    assert asked(track_events=track)["named"]["down_file"] == path
