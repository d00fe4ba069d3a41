# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which other speakers of BGP are in the way of FRR."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import cgroups, speakers
from ansible_collections.onprem.lb.plugins.module_utils._host.read.processes import Process

POD = cgroups.RunsIn(cgroups.POD, "0b1c2d3e")
DOCKER = cgroups.RunsIn(cgroups.CONTAINER, "4f5e6d7c8b9a", "docker")
BIRD = cgroups.RunsIn(cgroups.UNIT, "bird.service")


def listener(program="bgpd", runs_in="frr.service", port=179):
    return {"address": "0.0.0.0", "port": port, "program": program, "pid": 7, "runs_in": runs_in}


@pytest.mark.parametrize(
    "process, begins",
    [
        (Process("bgpd", 7, POD), "FRR's bgpd runs in the pod 0b1c2d3e (pid 7), outside frr.service, and two speakers"),
        (Process("bgpd", 7, DOCKER), "FRR's bgpd runs in the docker container 4f5e6d7c8b9a (pid 7), outside"),
        (Process("speaker", 7, POD), "MetalLB's speaker runs in the pod 0b1c2d3e (pid 7), outside frr.service"),
        (Process("bird", 7, BIRD), "BIRD's bird runs in bird.service (pid 7), outside frr.service"),
    ],
)
def test_a_speaker_outside_frrs_unit_is_named_with_its_mend(process, begins):
    (problem,) = speakers.problems([process], [listener(process.program, str(process.runs_in))])
    assert problem.startswith(begins) and problem.endswith(f"{process.mend}.")


def test_whatever_listens_at_its_port_is_named_once():
    found = [
        listener("calico-node", "the pod x"),
        listener("calico-node", "the pod x"),
        listener(),
        listener("sshd", "", 22),
    ]
    assert speakers.problems([], found) == [
        "calico-node in the pod x (pid 7) listens at TCP port 179, where FRR's bgpd listens: stop it for good."
    ]


@pytest.mark.parametrize(
    "process",
    [
        Process("bgpd", 7, speakers.OURS),
        Process("bgpd", 7, POD, on_this_network=False),
        Process("bgpd", 7, cgroups.RunsIn()),
        Process("haproxy", 7, POD),
    ],
)
def test_frrs_own_and_those_of_other_networks_are_not_in_the_way(process):
    assert speakers.problems([process], [listener()]) == []
