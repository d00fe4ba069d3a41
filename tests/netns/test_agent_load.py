# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The agent under load: a flood of hostile messages, and every VRID on one link."""

from __future__ import annotations

import time

from support.netns.floods import STATES, flooded_agent, hostile, sending, states, strangers
from support.netns.stages import instance
from support.waiting import until

INTERVAL_S = 10  # so long that no Backup takes over from an agent that this machine has stalled
SOME = 1000  # messages that are read: enough to show that no line is logged for each


def test_an_agent_in_a_flood_of_hostile_messages_counts_them_and_goes_on(stage, tmp_path):
    agent = flooded_agent(stage)
    stage.stop_recording()
    pid = agent.report()["pid"]

    def discarded():
        return {each["name"]: each["discarded"] for each in agent.report()["instances"]}

    sender = sending(stage.link.lb2, tmp_path, hostile(), times=10**9)
    until(lambda: sum(sum(each.values()) for each in discarded().values()) > SOME, discarded)
    for _time in range(5):
        sent = agent.instance("steady")["sent"]
        until(lambda sent=sent: agent.instance("steady")["sent"] > sent, "it does not advertise any more")
    until(lambda: discarded()["steady"].keys() >= {"peer", "type", "checksum"}, discarded)
    until(lambda: discarded()["answering"].keys() >= {"checksum", "length"}, discarded)
    until(lambda: discarded()["secret"].keys() == {"authentication"}, discarded)
    sender.kill()
    assert states(agent) == STATES
    assert [each["transitions"] for each in agent.report()["instances"]] == [2, 2, 2]
    assert agent.report()["pid"] == pid
    assert len(agent.log().splitlines()) < 40, "a flood of messages became a flood of log lines"


def test_messages_of_strangers_are_not_even_discarded(stage, tmp_path):
    """The kernel drops them, which costs the agent nothing; tests/timing has the figure."""
    agent = flooded_agent(stage)
    packets = strangers()
    sender = sending(stage.link.lb2, tmp_path, packets, times=10)
    assert int(sender.stdout.readline()) == 10 * len(packets)
    sent = agent.instance("steady")["sent"]
    until(lambda: agent.instance("steady")["sent"] > sent, "it does not advertise any more")
    assert all(not each["discarded"] and not each["received"] for each in agent.report()["instances"])


def every_vrid(node, priority):
    return [
        instance(
            node, priority, vrid, f"v{vrid}", f"198.18.0.{vrid}", multicast=True, peers=[], advert_interval=INTERVAL_S
        )
        for vrid in range(1, 256)
    ]


def test_every_vrid_on_one_link_moves_from_one_agent_to_the_other_and_back(stage):
    link = stage.link
    first = stage.agent(link.lb1, *every_vrid(link.lb1, 255))
    until(lambda: set(states(first).values()) == {"Active"}, "the first one does not hold them all")
    second = stage.agent(link.lb2, *every_vrid(link.lb2, 253))
    vips = [f"198.18.0.{vrid}" for vrid in range(1, 256)]

    def wait_for_holder(name):
        stage.wait(lambda: all(stage.view(vip).holders == [name] for vip in vips), f"{name} does not hold them all")
        stage.wait(lambda: all(stage.view(vip).announcer == name for vip in vips), f"{name} has not announced them all")

    wait_for_holder("lb1")
    first.stop()
    wait_for_holder("lb2")
    stage.start(first)
    wait_for_holder("lb1")
    assert set(states(second).values()) == {"Backup"}
    assert {sum(each["discarded"].values()) for each in second.report()["instances"]} == {0}
    begin = time.time()
    first.reload()
    until(lambda: "is in force" in first.log(), "it does not reload")
    assert not [one for one in stage.recorder.events if one.at > begin and one.kind in ("added", "removed")]
