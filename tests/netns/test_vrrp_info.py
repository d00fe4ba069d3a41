# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The modules vrrp_info and vrid, run as Ansible runs them, on a real link with real keepalived."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.netns.recorder import carries_vrrp, open_capture
from support.paths import COLLECTIONS, PLAYBOOKS
from support.waiting import LIMIT_S, until

MODULE = """
import importlib, json, os, sys
from ansible.module_utils.testing import patch_module_args
module = importlib.import_module("ansible_collections.onprem.lb.plugins.modules." + sys.argv[1])
options = json.loads(sys.argv[2])
if options.pop("unprivileged", False):
    os.setgid(65534), os.setuid(65534)
with patch_module_args(options):
    module.main()
"""

FOREIGN = """
import json, sys
from ansible_collections.onprem.lb.plugins.module_utils._shared import vrrp_routers
print(json.dumps(vrrp_routers.conflicts(**json.loads(sys.argv[1]))))
"""

# Sends a frame ten times a second until it is killed.
SEND = """
import socket, sys, time
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
    sender.bind(("eth0", 0))
    while True:
        sender.send(bytes.fromhex(sys.argv[1]))
        print("sent", flush=True)
        time.sleep(0.1)
"""
# Version 2, VRID 51, priority 100, 1 s, for 192.0.2.100, without authentication; the checksum is computed by hand.
ADVERTISEMENT = "21336401" + "0001" + "b865" + "c0000264" + "00" * 8
# As OpenBSD sends it: version 2, type 1, VHID 5, advskew 0, 7 words of authentication, 36 bytes.
CARP = "21050007" + "0001" + "abcd" + "00" * 28

needs_keepalived = pytest.mark.skipif(not shutil.which("keepalived"), reason="the package keepalived is not installed")


def start(node, module, **options):
    return node.python(MODULE, module, json.dumps(options), packages=True)


def result(process):
    out, _err = process.communicate(timeout=LIMIT_S)
    return json.loads(out)


def listen(node, seconds=1.2, interface="eth0", **more):
    return result(start(node, "vrrp_info", interface=interface, seconds=seconds, **more))


def hear(node, count, what="routers", **more):
    """Listen until so many routers were heard at once, or so many conflicts were seen; return the report."""

    def found():
        report = listen(node, **more)
        return len(report[what]) >= count and report

    return until(found, f"{node.name} does not hear {count} {what}")


def listens(node):
    """Return whether the module has a packet socket for all protocols, so that it misses nothing from now on."""
    lines = node.output("cat", "/proc/net/packet").splitlines()[1:]
    return any(line.split()[3] == "0003" for line in lines)


def instance(
    name, vrid, addresses, version=2, auth_pass="", source="", peer="", priority=100, interval=1, state="BACKUP"
):
    lines = [
        f"state {state}",
        f"virtual_router_id {vrid}",
        f"priority {priority}",
        f"version {version}",
        "interface eth0",
        f"advert_int {interval}",
    ]
    if auth_pass:
        lines.append(f"authentication {{\n auth_type PASS\n auth_pass {auth_pass}\n}}")
    if peer:
        lines.append(f"unicast_src_ip {source}\nunicast_peer {{\n {peer}\n}}")
    lines.append("virtual_ipaddress {\n" + "\n".join(addresses) + "\n}")
    return f"vrrp_instance {name} {{\n" + "\n".join(lines) + "\n}\n"


def held(node, *scope):
    links = json.loads(node.output("ip", "-json", "addr", "show", "dev", "eth0", *scope))
    return {found["local"] for link in links for found in link.get("addr_info", []) if "local" in found}


@pytest.fixture
def keepalived(tmp_path):
    """Return a function that starts keepalived on a node, and waits until it holds certain addresses."""
    started = []

    def run(node, *instances, holds=()):
        home = tmp_path / f"{node.name}-{len(started)}"
        home.mkdir()
        (home / "keepalived.conf").write_text("global_defs {\n vrrp_garp_master_delay 1\n}\n" + "".join(instances))
        pids = [f"--{kind}={home / kind}" for kind in ("pid", "vrrp_pid", "checkers_pid")]
        command = ["ip", "netns", "exec", node.namespace, "keepalived", "--dont-fork", "--vrrp"]
        process = subprocess.Popen(
            [*command, f"--use-file={home / 'keepalived.conf'}", *pids],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        started.append(process)
        until(lambda: held(node) >= set(holds), f"{node.name} never took {', '.join(holds)}")
        return process

    try:
        yield run
    finally:
        for process in started:
            # A SIGKILL would leave its child behind.
            process.send_signal(signal.SIGTERM)
        for process in started:
            try:
                process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def short(router):
    keys = ("family", "vrid", "version", "source", "unicast", "priority", "interval", "addresses", "auth_type")
    return tuple(router[key] for key in keys)


@needs_keepalived
def test_every_kind_of_advertisement_of_keepalived_is_heard(link, keepalived):
    vips = ["192.0.2.100", "192.0.2.101", "192.0.2.102", "192.0.2.103", "fe80::64", "2001:db8::64", "fe80::65"]
    keepalived(
        link.lb1,
        instance("pass", 51, vips[0:1], auth_pass="0a1b2c3d"),
        instance("three", 52, vips[1:3], version=3, priority=254),
        instance("unicast", 53, vips[3:4], source="192.0.2.1", peer="192.0.2.3"),
        instance("six", 52, vips[4:6], version=3),
        instance("six-unicast", 53, vips[6:7], version=3, source="2001:db8::1", peer="2001:db8::3"),
        holds=vips,
    )
    found = hear(link.client, 5)
    (own,) = held(link.lb1, "scope", "link") - {"fe80::64", "fe80::65"}
    assert [short(router) for router in found["routers"]] == [
        (4, 51, 2, "192.0.2.1", False, 100, 1.0, ["192.0.2.100"], "simple"),
        (4, 52, 3, "192.0.2.1", False, 254, 1.0, ["192.0.2.101", "192.0.2.102"], "none"),
        (4, 53, 2, "192.0.2.1", True, 100, 1.0, ["192.0.2.103"], "none"),
        (6, 52, 3, own, False, 100, 1.0, ["fe80::64", "2001:db8::64"], "none"),
        (6, 53, 3, "2001:db8::1", True, 100, 1.0, ["fe80::65"], "none"),
    ]
    assert {router["mac"] for router in found["routers"]} == {link.lb1.mac}
    assert {router["checksum"] for router in found["routers"]} == {"rfc3768", "rfc5798"}
    assert [router["destination"] for router in found["routers"]][2:] == ["192.0.2.3", "ff02::12", "2001:db8::3"]
    assert min(router["seen"] for router in found["routers"]) > 0
    assert (found["discarded"], found["conflicts"], found["changed"]) == ({}, [], False)
    assert "0a1b2c3d" not in json.dumps(found)
    assert hear(link.client, 5, with_auth_pass=True)["routers"][0]["auth_pass"] == "0a1b2c3d"
    # Another host does not receive what is sent to the client by unicast.
    assert [router["vrid"] for router in hear(link.lb2, 3)["routers"]] == [51, 52, 52]


@needs_keepalived
def test_two_pairs_with_one_vrid_are_a_conflict_that_names_the_other_router(link, keepalived):
    # They are in different subnets, and each kernel drops the other's packets (rp_filter). A keepalived that receives
    # them restarts its timer, even if the password is wrong, and with equal intervals both would take turns.
    link.lb2.ip("addr", "replace", "198.51.100.2/24", "dev", "eth0")
    link.lb2.ip("addr", "del", "192.0.2.2/24", "dev", "eth0")
    for node in (link.lb1, link.lb2):
        node.output(
            "sh", "-c", "echo 1 | tee /proc/sys/net/ipv4/conf/all/rp_filter /proc/sys/net/ipv4/conf/eth0/rp_filter"
        )
    keepalived(link.lb1, instance("ours", 51, ["192.0.2.100"], auth_pass="0a1b2c3d"), holds=["192.0.2.100"])
    keepalived(link.lb2, instance("theirs", 51, ["198.51.100.200"], auth_pass="another"), holds=["198.51.100.200"])
    conflict = ["VRID 51 (IPv4) on eth0 has two Actives: 192.0.2.1 and 198.51.100.2."]
    assert hear(link.client, 1, "conflicts", seconds=3.5)["conflicts"] == conflict
    # One of the two routers also detects the conflict, because the module captures its own packets.
    found = hear(link.lb1, 1, "conflicts", seconds=3.5, with_auth_pass=True)
    assert found["conflicts"] == conflict
    assert [router["own"] for router in found["routers"]] == [True, False]
    arguments = {"routers": found["routers"], "vips": ["192.0.2.100"], "vrids": [51], "auth_pass": "0a1b2c3d"}
    conflicts = result(link.client.python(FOREIGN, json.dumps({**arguments, "members": ["192.0.2.1"]})))
    assert conflicts == [
        "198.51.100.2 already advertises VRID 51 on eth0 for 198.51.100.200 (priority 100, with another password): it "
        "is not of this pair, choose another VRID."
    ]
    conflicts = result(link.client.python(FOREIGN, json.dumps({**arguments, "members": ["198.51.100.2"]})))
    assert conflicts == [
        "192.0.2.1 already advertises VRID 51 on eth0 for our VIP 192.0.2.100 (priority 100, with our password): it "
        "seems to be a member that the inventory lacks, add it there or stop it."
    ]


@needs_keepalived
def test_a_graceful_takeover_is_no_conflict(link, keepalived):
    """The second router would take over after nine seconds of silence, so it does not while this machine stalls."""
    same = {"vrid": 51, "addresses": ["192.0.2.100"], "interval": 3}
    first = keepalived(link.lb1, instance("one", priority=254, state="MASTER", **same), holds=["192.0.2.100"])
    keepalived(link.lb2, instance("two", priority=253, **same))
    process = start(link.client, "vrrp_info", interface="eth0", seconds=12)
    until(lambda: listens(link.client), "the module never listened")
    with contextlib.closing(open_capture(link.bridge, link.lb1.port)) as frames:
        frames.settimeout(LIMIT_S)
        until(lambda: carries_vrrp(frames.recv(2048)), "the first router does not advertise")
    first.send_signal(signal.SIGTERM)
    found = result(process)
    assert [(r["source"], r["priority"]) for r in found["routers"]] == [("192.0.2.1", 0), ("192.0.2.2", 253)]
    assert found["conflicts"] == []


@needs_keepalived
def test_a_vrid_on_the_link_is_taken_unless_a_member_advertises_it(link, keepalived):
    """The API of a cluster called lab has VRID 51, its ingress 146."""
    keepalived(link.lb1, instance("one", 51, ["192.0.2.100"]), holds=["192.0.2.100"])
    listening = {"name": "lab", "interface": "eth0", "seconds": 1.5}

    def choose(**more):
        """Choose a VRID again, unless nothing was heard."""
        return until(lambda: heard(result(start(link.client, "vrid", **listening, **more))), "nothing is heard")

    def heard(chosen):
        return chosen["heard"] and chosen

    refused = choose()
    assert refused["failed"]
    evidence = "VRID 51 of the API of cluster lab is taken by 192.0.2.1, heard on eth0 for 192.0.2.100"
    assert refused["msg"] == f"{evidence}: take another name, or set on_conflict to next."
    assert (refused["conflicts"], refused["heard"][0]["vrid"]) == ([f"{evidence}."], 51)
    moved = choose(on_conflict="next")
    assert (moved["vrids"], moved["changed"]) == ({"api": 52, "ingress": 146}, False)
    ours = result(start(link.client, "vrid", **listening, members=["192.0.2.1"]))
    assert (ours["vrids"], ours["heard"], ours["conflicts"]) == ({"api": 51, "ingress": 146}, [], [])


def test_choosing_a_vrid_without_listening_needs_no_privilege(link):
    options = {
        "unprivileged": True,
        "name": "balancers",
        "strategy": "pool",
        "taken": [16],
        "_ansible_check_mode": True,
    }
    chosen = result(start(link.client, "vrid", **options, current=240))
    assert (chosen["vrids"], chosen["vrid"], chosen["heard"]) == ({"pair": 240}, 240, [])


@needs_keepalived
def test_the_survey_prints_one_table_for_all_hosts(link, keepalived):
    """Ansible runs it as for a user, with the module in its payload. Both hosts are the client here."""
    keepalived(link.lb1, instance("one", 51, ["192.0.2.100"]), holds=["192.0.2.100"])
    python = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "ansible_become": False}
    hosts = {"hosts": {"a": python, "b": python}}
    playbook = Path(sys.executable).with_name("ansible-playbook")
    command = ["ip", "netns", "exec", link.client.namespace, playbook, "--inventory", "/dev/stdin"]
    variables = ["-e", "ansible_become=false", "-e", "survey_interface=eth0", "-e", "survey_seconds=5"]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS), "ANSIBLE_NOCOLOR": "1"}
    run = subprocess.run(
        [*command, *variables, PLAYBOOKS / "survey.yml"],
        input=json.dumps({"all": hosts}),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    lines = [line for line in run.stdout.splitlines() if "192.0.2.1 " in line]
    assert len(lines) == 1
    assert "| 51 " in lines[0]
    assert "| a eth0, b eth0 |" in lines[0]


def send(node, message, ttl=255, tag=""):
    """Send with a valid header checksum, because a bridge with br_netfilter would drop the packet otherwise."""
    ends = f"c00002{node.number:02x}" + "e0000012"
    header = f"45c0{20 + len(message) // 2:04x}00000000{ttl:02x}70" + "{}" + ends
    checksum = -int(header.format("0000"), 16) % 0xFFFF
    ethernet = "01005e000012" + node.mac.replace(":", "") + tag + "0800"
    sender = node.python(SEND, ethernet + header.format(f"{checksum:04x}") + message)
    assert sender.stdout.readline() == "sent\n"


def test_invalid_messages_are_counted_by_reason(link):
    send(link.lb1, CARP)
    send(link.lb2, ADVERTISEMENT, ttl=254)
    found = hear(link.client, 2, "discarded")
    assert found["routers"] == [] and found["discarded"].keys() == {"carp", "hop_limit"}
    assert found["discarded"]["carp"]["count"] > 0
    assert (found["discarded"]["carp"]["source"], found["discarded"]["carp"]["interface"]) == ("192.0.2.1", "eth0")
    assert "254" in found["discarded"]["hop_limit"]["detail"]


def test_a_frame_with_a_vlan_tag_is_on_another_link_and_one_with_a_priority_tag_is_not(link):
    send(link.lb1, ADVERTISEMENT, tag="81000007")
    send(link.lb2, ADVERTISEMENT, tag="8100e000")
    assert [router["source"] for router in hear(link.client, 1)["routers"]] == ["192.0.2.2"]


def test_without_an_interface_it_listens_on_all_and_names_the_interface_of_each_router(link):
    link.client.ip("link", "add", "link", "eth0", "name", "mv0", "type", "macvlan", "mode", "bridge")
    link.client.ip("link", "set", "mv0", "up")
    send(link.lb1, ADVERTISEMENT)
    # A macvlan receives only the multicast groups that a socket has joined, as a network card does.
    assert [router["interface"] for router in hear(link.client, 2, interface=None)["routers"]] == ["eth0", "mv0"]
    assert [router["interface"] for router in hear(link.client, 1, interface="mv0")["routers"]] == ["mv0"]


def test_when_it_cannot_listen_it_says_why(link):
    refused = listen(link.client, interface="eth9")
    assert (refused["failed"], refused["msg"]) == (True, "There is no interface eth9: there are lo, eth0.")
    assert listen(link.client, seconds=0)["msg"] == "seconds is 0.0: a number from 0.1 to 3600 seconds is required."
    sentence = "There is no permission to open raw sockets: use become, or give the container NET_RAW."
    assert listen(link.client, unprivileged=True)["msg"] == sentence
    refused = result(start(link.client, "vrid", name="lab", seconds=1, unprivileged=True))
    assert (refused["msg"], refused["conflicts"]) == (sentence, [])
    link.client.ip("link", "set", "eth0", "down")
    sentence = "Interface eth0 is down, so nothing can be heard on it: set it up first."
    assert listen(link.client)["msg"] == sentence
    nowhere = result(start(link.client, "vrrp_info", seconds=1))
    assert nowhere["msg"] == "No interface but lo is up, so nothing can be heard: set one up first."
