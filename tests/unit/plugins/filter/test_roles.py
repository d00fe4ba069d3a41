# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the roles' filters pass on through Ansible: services as JSON, each evaluated once in a task."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.filter import roles
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi_layout
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import components
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import services as model_services
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import as_data
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair_layout
from jinja2 import UndefinedError
from support.plans.clusters import cluster
from support.plans.pairs import pair

SERVICES = [{"name": "web", "port": 443, "servers": ["192.0.2.31"]}]
FAMILY = {"runtime_socket": "/run/haproxy/admin.sock", "log_targets": ["/dev/log local0"], "authorities": "/etc/ca.crt"}
HOST = {"listeners": [], "addresses": [], "resolved": {}}
FILTERS = roles.FilterModule().filters()


def of_haproxy(services):
    return FILTERS["haproxy_model"]({"services": services}, "lb1", HOST, {})


def of_agent(services):
    return FILTERS["agent_config"]({"services": services}, "lb1", HOST, {}, [])


@pytest.mark.parametrize(
    "filtered, layout, given",
    [
        (of_haproxy, pair_layout, pair()),
        (of_agent, pair_layout, pair()),
        (of_haproxy, pair_layout, pair(preset="kubeadm")),
        (of_haproxy, ipi_layout, cluster("master-0", "master-2", "master-1")),
    ],
    ids=["haproxy", "agent", "with an API", "cluster"],
)
def test_a_plan_hands_its_services_on_as_json_and_nobody_validates_them_again(filtered, layout, given, monkeypatch):
    """The model is that of the same services as a list, which a user has written."""
    member = next(iter(layout.plan(given).members.values()))
    written = filtered(member.balancer.services)
    assert written["faults"] == [] and written["service_ports"] != []

    def again(*_given):
        raise AssertionError("validated again")

    monkeypatch.setattr(model_services, "_read_service", again)
    assert filtered(as_data(member.balancer)["services"]) == written


@pytest.mark.parametrize("text", ["[", "[" * 100_000, "web", "{}"])
def test_a_text_that_is_no_list_in_json_is_refused(text):
    (fault,) = of_haproxy(text)["faults"]
    assert fault.startswith("haproxy_services is ") and ": a list of services is required" in fault


def test_a_user_may_not_write_services_as_json():
    """A host would not be asked about their names and files."""
    text = json.dumps(SERVICES)
    found = components.faults({"haproxy_services": text}) + components.faults({"agent_services": text})
    found += pair_layout.plan(pair(services=text)).faults
    assert [fault.split(" ")[0] for fault in found] == ["haproxy_services", "agent_services", "pair_services"]
    assert all(" is required" in fault for fault in found)


@pytest.mark.parametrize("replaces, refused", [([], 1), (["nginx"], 0)])
def test_a_program_that_goes_is_no_conflict(replaces, refused):
    host = {**HOST, "listeners": [{"program": "nginx", "address": "192.0.2.1", "port": 443, "pid": 1}]}
    settings, handed = {"services": SERVICES}, {"replaces": replaces}
    assert len(FILTERS["haproxy_model"](settings, "lb1", host, handed)["faults"]) == refused
    assert len(FILTERS["agent_config"](settings, "lb1", host, {}, replaces)["faults"]) == refused


def test_the_model_becomes_haproxy_cfg():
    text = FILTERS["role_template"]("haproxy/haproxy.cfg.j2", model=of_haproxy(SERVICES), family=FAMILY)
    assert "    server 192.0.2.31 192.0.2.31:443 weight 1\n" in text


def test_the_agents_module_is_given_the_proxys_configuration_as_json():
    found = of_agent(SERVICES)
    assert json.loads(found["proxy"])["services"][0]["name"] == "web"
    assert of_agent([])["proxy"] is None


def test_a_template_without_one_of_its_variables_is_refused():
    with pytest.raises(UndefinedError, match="down_file"):
        FILTERS["role_template"]("layout/down-file.path.j2")


def test_a_filter_is_evaluated_again_only_for_other_arguments():
    seen = []

    @roles.evaluated_once
    def counted(settings, listeners=(), host=""):
        seen.append(host)
        return {"host": host, "count": len(settings)}

    settings = {"services": [1, {"a": 2}]}
    assert counted(settings, host="lb1") == counted({"services": [1, {"a": 2}]}, host="lb1")
    assert seen == ["lb1"]
    settings["services"].append(3)
    counted(settings, host="lb1")
    counted(settings, host="lb2")
    assert seen == ["lb1", "lb1", "lb2"]
