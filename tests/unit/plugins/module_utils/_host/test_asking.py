# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What asks a balancer is read from the files of both engines and both deliveries, and from what is in force."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import ipi, pair, planner
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts.ipi_presets import PRESETS
from support.plans import askers
from support.plans.clusters import cluster
from support.plans.pairs import pair as members_of_pair

# As nft 1.0.6 lists it.
IN_FORCE = """table inet onprem_lb_api {
\tchain redirect_vips {
\t\tfib daddr type != local return
\t\tip daddr 10.0.0.200 tcp dport 6443 dnat ip to 10.0.0.200:9445
\t\tip6 daddr 2001:db8::10 tcp dport 22623 dnat ip6 to [2001:db8::10]:9446
\t}
}
"""
# The path of a haproxy's runtime socket is none.
ASKED_BY = {
    "default": [("chk_api", 9454, "/haproxy_monitor"), ("chk_haproxy", 9444, "/haproxy_ready")],
    "upstream": [("chk_ocp_lb", 9444, "/haproxy_ready"), ("chk_ocp_both", 9444, "/haproxy_ready")],
    "ocp45": [("chk_ocp", 50936, "/readyz")],
}


@pytest.mark.parametrize("delivery", ["unit", "pod"])
@pytest.mark.parametrize("engine", ["native", "agent"])
@pytest.mark.parametrize("preset", PRESETS)
def test_the_checks_of_every_preset_are_read_and_its_redirect(preset, engine, delivery):
    of_pods = {"delivery": delivery, "pods": {"agent_image": "registry.example/agent:1"}} if delivery == "pod" else {}
    plan = planner.draft(ipi.LAYOUT, cluster(preset=preset, engine=engine, **of_pods)).members["master-0"]
    found = askers.asked(getattr(askers, f"{delivery}s")("master-0", plan))
    asked = {(each["name"], each["port"], each["path"]) for each in found["checks"]}
    assert {each for each in asked if each[1] not in (1936, 6443)} == {*ASKED_BY[preset]}
    assert found["redirects"] == [{"port": 6443, "to": 9445}]


@pytest.mark.parametrize("engine, path", [("native", ""), ("agent", "/")])
def test_what_asks_whether_a_balancer_hangs_is_read(engine, path):
    plan = planner.draft(pair.LAYOUT, members_of_pair(engine=engine, answer_port=9555)).members["lb1"]
    found = askers.asked(askers.units("lb1", plan))
    assert {"name": "haproxy_answers", "port": 9555, "path": path} in found["checks"]


def test_a_redirect_in_force_counts_beside_its_file():
    file = {"/etc/onprem-lb/api-redirect.nft": "ip daddr 10.0.0.200 tcp dport 6443 dnat ip to 10.0.0.200:9545"}
    assert askers.asked(file, IN_FORCE)["redirects"] == [
        {"port": 6443, "to": 9445},
        {"port": 22623, "to": 9446},
        {"port": 6443, "to": 9545},
    ]


@pytest.mark.parametrize(
    "path, text",
    [
        ("/etc/systemd/system/onprem-lb-answers.service", "ExecStart=hook answers 'no end"),
        ("/etc/systemd/system/onprem-lb-answers.service", "ExecStart=hook answers {no-json}"),
        ("/etc/onprem-lb-agent/vrrp.json", '{"checks": [{"name": 1, "type": "http", "port": "x"}, 7]}'),
        ("/etc/kubernetes/static-pod-resources/onprem-lb/sidecar/sidecar.json", '{"router": {"questions": 5}}'),
        ("/etc/keepalived/keepalived.conf", 'vrrp_script a {\n script "curl http://localhost:port/x"\n}'),
        ("/etc/keepalived/keepalived.conf", 'vrrp_script a {\n script "curl http://192.0.2.1:80/x"\n}'),
    ],
)
def test_a_damaged_file_and_a_question_to_another_host_ask_nothing(path, text):
    assert askers.asked({path: text}) == {"checks": [], "redirects": []}
