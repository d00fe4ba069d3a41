# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What asks a balancer is read from the files of both engines and both deliveries, and from what is in force."""

from __future__ import annotations

import pytest
from support.plans.asking import asked

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
