# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What asks a balancer is read from the files of both engines and both deliveries, and from what is in force."""

from __future__ import annotations

from unittest import mock

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import answered, asking
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import PODS, ROUTERS, UNITS
from support.plans.asking import ASKED, Files, asked

# As nft 1.0.6 lists it.
IN_FORCE = """table inet onprem_lb_api {
\tchain redirect_vips {
\t\tfib daddr type != local return
\t\tip daddr 10.0.0.200 tcp dport 6443 dnat ip to 10.0.0.200:9445
\t\tip6 daddr 2001:db8::10 tcp dport 22623 dnat ip6 to [2001:db8::10]:9446
\t}
}
"""


def test_a_redirect_in_force_counts_beside_its_file():
    file = {"/etc/onprem-lb/api-redirect.nft": "ip daddr 10.0.0.200 tcp dport 6443 dnat ip to 10.0.0.200:9545"}
    assert asked(file, IN_FORCE)["redirects"] == [
        {"port": 6443, "to": 9445},
        {"port": 22623, "to": 9446},
        {"port": 6443, "to": 9545},
    ]


CONF = 'vrrp_script mine {{\n script "/usr/bin/curl -kLfs -o /dev/null {url}"\n}}\n'
AGENT = '{{"checks": [{{"name": "mine", "type": "{kind}", "address": "{address}", "port": {port}, "path": "/x"}}]}}'


@pytest.mark.parametrize(
    "path, text, address, port, tls",
    [
        (ASKED["keepalived_config"], CONF.format(url="https://localhost/x"), "localhost", 443, True),
        (ASKED["keepalived_config"], CONF.format(url="http://192.0.2.2:8080/x"), "192.0.2.2", 8080, False),
        (ASKED["keepalived_config"], CONF.format(url="https://[2001:db8::2]:8443/x"), "2001:db8::2", 8443, True),
        (ASKED["agent_config"], AGENT.format(kind="https", address="127.0.0.1", port=443), "127.0.0.1", 443, True),
        (ASKED["agent_config"], AGENT.format(kind="http", address="192.0.2.2", port=8080), "192.0.2.2", 8080, False),
    ],
)
def test_a_check_of_the_user_asks_an_address_of_its_host_with_or_without_tls(path, text, address, port, tls):
    question = {"name": "mine", "address": address, "port": port, "path": "/x", "tls": tls, "answered": True}
    assert asked({path: text}, own=["192.0.2.2", "2001:db8::2"])["checks"] == [question]


def test_what_is_not_answered_now_is_told():
    question = answered.Question(False, "localhost", 8080, "/x")
    files = Files({ASKED["keepalived_config"]: CONF.format(url="http://localhost:8080/x")})
    for found, is_answered in (({question}, True), (set(), False)):
        with mock.patch.object(answered, "of", lambda _questions, found=found: found):
            assert [each["answered"] for each in asking.read(files, ASKED, active=ROUTERS)["checks"]] == [is_answered]


@pytest.mark.parametrize(
    "path, router",
    [
        (ASKED["keepalived_config"], UNITS["native"].router),
        (ASKED["agent_config"], UNITS["agent"].router),
        ("/etc/kubernetes/static-pod-resources/onprem-lb/keepalived/keepalived.conf", PODS.router),
    ],
)
def test_what_only_a_router_that_does_not_run_would_ask_counts_as_unanswered(path, router):
    """Else a file that somebody has left there would refuse each change of that port. It is kept all the same."""
    agents = AGENT.format(kind="http", address="127.0.0.1", port=80)
    text = agents if path.endswith("json") else CONF.format(url="http://localhost/x")
    others = {*ROUTERS} - {router}
    for active, is_answered in (({router}, True), (others, False), ((), False)):
        assert [each["answered"] for each in asked({path: text}, active=active)["checks"]] == [is_answered]


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
    assert asked({path: text}) == {"checks": [], "redirects": []}
