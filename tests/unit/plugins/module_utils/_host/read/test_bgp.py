# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What FRR says of its sessions, and what is said where it says nothing."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import bgp
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader

PEER = {
    "remoteAs": 64601,
    "state": "Established",
    "peerUptimeMsec": 4000,
    "pfxRcd": 0,
    "pfxSnt": 2,
    "connectionsEstablished": 1,
    "connectionsDropped": 0,
}
SUMMARY = {
    "ipv4Unicast": {"routerId": "192.0.2.11", "peers": {"192.0.2.1": PEER}},
    "ipv6Unicast": {"peers": {"2001:db8::1": {"remoteAs": 64601, "state": "Active"}, "odd": 5}},
}
BFD = [{"peer": "192.0.2.1", "status": "up", "remote-receive-interval": 100}, "odd"]


def reader(summary="{}", bfd="[]", code=0, err=""):
    def run(command):
        assert command[:3] == ["timeout", bgp.PATIENCE, "/usr/bin/vtysh"]
        return code, summary if "summary" in command[-1] else bfd, err

    return Reader(run, lambda name: f"/usr/bin/{name}")


def test_the_sessions_of_both_families():
    first, second = bgp.sessions(reader(json.dumps(SUMMARY), json.dumps(BFD)), now=1000.0)
    assert first == bgp.Session("192.0.2.1", 64601, "ipv4", "Established", 996.0, 2, 0, 1, 0, "up", 100)
    assert second == bgp.Session("2001:db8::1", 64601, "ipv6", "Active", None, 0, 0, 0, 0, "")


@pytest.mark.parametrize(
    "said", ["", "% BGP instance not found", "[]", "{}", '{"ipv4Unicast": 5}', '{"ipv4Unicast": {"peers": []}}']
)
def test_without_an_instance_or_with_odd_words_there_are_none(said):
    assert bgp.sessions(reader(said, "no")) == []


@pytest.mark.parametrize(
    "code, err, sentence",
    [
        (
            1,
            "failed to connect to any daemons.",
            "FRR does not answer (failed to connect to any daemons.): see `systemctl status frr`.",
        ),
        (124, "", "FRR does not answer (vtysh ended with code 124): see `systemctl status frr`."),
    ],
)
def test_why_frr_does_not_answer_is_a_sentence(code, err, sentence):
    with pytest.raises(bgp.NoAnswer) as raised:
        bgp.running_config(reader(code=code, err=err))
    assert str(raised.value) == sentence
    with pytest.raises(bgp.NoAnswer, match="FRR is not installed"):
        bgp.sessions(Reader(None, lambda name: None))


def test_sessions_are_read_without_bfdd():
    def run(command):
        return (0, json.dumps(SUMMARY), "") if "summary" in command[-1] else (1, "", "bfdd is not running")

    assert [each.bfd for each in bgp.sessions(Reader(run, lambda name: name))] == ["", ""]
