"""The inventory tells Ansible everything it needs, and survives being read half-written."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path

import pytest

from lab import hosts, inventory, shell
from lab.layout import VIPS, Lab
from lab.network import Network

NET = Network(ipaddress.IPv4Network("10.1.2.0/24"), ipaddress.IPv6Network("fd00:1::/64"))


def described(net=NET):
    return inventory.describe(Lab(Path("/c"), "default"), {"lab": net}, Path("/k"), Path("/tmp/s"), "debian12")["all"]


def routed():
    """Return the inventory of a lab with routers, whose networks are numbered in their order."""
    lab = Lab(Path("/c"), "bgp")
    subnets = {name: f"10.1.{at}.0/24" for at, name in enumerate((*lab.networks, lab.vips))}
    networks = {name: Network(ipaddress.IPv4Network(subnet)) for name, subnet in subnets.items()}
    return inventory.describe(lab, networks, Path("/k"), Path("/tmp/s"), "debian12")["all"]


def test_groups_hold_the_hosts_of_the_layout():
    groups = {name: list(group["hosts"]) for name, group in described()["children"].items()}
    assert groups == {"pair": ["lb1", "lb2"], "backends": ["node1", "node2"], "probe": ["client"]}


def test_hosts_have_their_addresses():
    assert described()["children"]["pair"]["hosts"]["lb2"] == {
        "ansible_host": "10.1.2.12",
        "lab_address": "10.1.2.12",
        "lab_address6": "fd00:1::12",
        "lab_addresses": {"lab": "10.1.2.12"},
        "lab_addresses6": {"lab": "fd00:1::12"},
    }


def test_a_host_of_several_networks_has_an_address_in_each_and_is_reached_in_the_first():
    told = routed()
    router = told["children"]["routers"]["hosts"]["r2"]
    networks = {name: ipaddress.ip_network(subnet) for name, subnet in told["vars"]["lab_networks"].items()}
    assert set(router["lab_addresses"]) == set(networks) - {VIPS}
    assert all(ipaddress.ip_address(each) in networks[name] for name, each in router["lab_addresses"].items())
    assert router["ansible_host"] == router["lab_address"] == next(iter(router["lab_addresses"].values()))


def test_beyond_routers_no_host_is_in_the_network_of_the_vips():
    told = routed()
    vips = ipaddress.ip_network(told["vars"]["lab_network"])
    assert ipaddress.ip_address(told["vars"]["lab_vip"]) in vips
    of_hosts = [
        address
        for group in told["children"].values()
        for host in group["hosts"].values()
        for address in host["lab_addresses"].values()
    ]
    assert not [address for address in of_hosts if ipaddress.ip_address(address) in vips]


def test_virtual_addresses_are_told():
    told = described()["vars"]
    assert (told["lab_vip"], told["lab_vip2"], told["lab_vip6"]) == (
        "10.1.2.100",
        "10.1.2.101",
        "fd00:1::100",
    )


def test_without_ipv6_its_variables_are_null_not_missing():
    told = described(Network(NET.subnet))["vars"]
    assert told["lab_vip6"] is None
    assert told["lab_network6"] is None


def test_the_users_known_hosts_are_never_touched():
    assert "-oUserKnownHostsFile=/dev/null" in described()["vars"]["ansible_ssh_common_args"]


def test_ssh_sockets_fit_into_a_unix_socket_path():
    sockets = Path("/tmp") / (Lab(Path("/any/where"), "a-scenario-of-30-characters-ok").name + ".12345678")
    longest = "{}/{}-{}".format(sockets, "255.255.255.255", inventory.USER)
    suffix_while_ssh_opens_it = 17
    assert len(longest) + suffix_while_ssh_opens_it < 108


def test_what_is_written_is_read_back_and_no_half_file_stays(tmp_path):
    path = tmp_path / "inventory.yml"
    inventory.write(path, {"all": {}})
    assert inventory.read(path) == {"all": {}}
    assert list(tmp_path.iterdir()) == [path]


def test_labs_of_other_checkouts_and_scenarios_have_other_names():
    names = {Lab(Path(path), scenario).name for path in ("/a", "/b") for scenario in ("default", "ipi")}
    assert len(names) == 4


def test_ssh_reaches_a_host_by_its_name(tmp_path):
    lab = Lab(tmp_path, "default")
    lab.folder.mkdir(parents=True)
    inventory.write(lab.inventory, {"all": described()})
    command = hosts.ssh_command(lab, "lb1")
    assert (command[0], command[-1]) == ("ssh", "ops@10.1.2.11")
    own = hosts.ssh_command(lab, "lb1", shared=False)
    paths = [option for option in own if option.startswith("-oControlPath=")]
    assert paths[0] == "-oControlPath=none"  # of two values ssh takes the first


def test_ssh_to_an_unknown_host_names_the_known_ones(tmp_path):
    lab = Lab(tmp_path, "default")
    lab.folder.mkdir(parents=True)
    inventory.write(lab.inventory, {"all": described()})
    with pytest.raises(shell.LabError, match="lb1, lb2, node1, node2, client"):
        hosts.ssh_command(lab, "lb3")


def test_ssh_into_a_lab_that_is_down_says_how_to_start_it(tmp_path):
    with pytest.raises(shell.LabError, match="python3 lab up --scenario ipi"):
        hosts.ssh_command(Lab(tmp_path, "ipi"), "lb1")


def test_a_socket_that_goes_by_itself_does_not_keep_a_lab_from_being_removed(tmp_path, monkeypatch):
    lab = Lab(tmp_path, "default")
    folder = tmp_path / (lab.name + ".x")
    folder.mkdir()
    (folder / "10.1.2.11-ops").touch()
    unlink = os.unlink

    def gone(path, **options):
        unlink(path, **options)
        raise FileNotFoundError(path)

    monkeypatch.setattr(hosts, "SOCKETS", tmp_path)
    monkeypatch.setattr(hosts.shell, "succeeds", lambda _command: True)
    monkeypatch.setattr(os, "unlink", gone)
    hosts._remove_files(lab)
    assert not folder.exists()
