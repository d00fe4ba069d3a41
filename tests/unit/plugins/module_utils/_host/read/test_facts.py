"""What a host's files and programs say, read."""

from __future__ import annotations

import json
import os
import socket
import time

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import facts
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._shared import platforms

IP_JSON = """[
 {"ifname": "lo", "address": "00:00:00:00:00:00", "addr_info": [{"local": "127.0.0.1", "prefixlen": 8}]},
 {"ifname": "eth0", "address": "02:00:00:00:00:01", "addr_info": [
   {"local": "192.0.2.1", "prefixlen": 24}, {"local": "192.0.2.10", "prefixlen": 32}, {}]}]"""


@pytest.mark.parametrize(
    "text, family",
    [
        ('ID=debian\nVERSION_ID="12"\n', "Debian"),
        ("ID=ubuntu\nID_LIKE=debian\n", "Debian"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "RedHat"),
        ("ID=fedora\n", "RedHat"),
        ("ID=alpine\n", "alpine"),
        ("", "unknown"),
    ],
)
def test_the_family_is_found(text, family):
    assert platforms.os_family(text) == family


def test_addresses_come_with_interface_prefix_and_mac_but_for_those_of_the_loopback_interface():
    assert facts.addresses(IP_JSON) == [
        {"interface": "eth0", "address": "192.0.2.1", "prefix": 24, "mac": "02:00:00:00:00:01"},
        {"interface": "eth0", "address": "192.0.2.10", "prefix": 32, "mac": "02:00:00:00:00:01"},
    ]


def test_an_address_that_is_temporary_is_none_of_the_hosts():
    info = [{"local": "2001:db8::1", "prefixlen": 64}, {"local": "2001:db8::9c1f", "prefixlen": 64, "temporary": True}]
    found = facts.addresses(json.dumps([{"ifname": "eth0", "addr_info": info}]))
    assert [each["address"] for each in found] == ["2001:db8::1"]


def test_a_vip_is_looked_for_once_on_the_link_of_its_subnet():
    assert facts.links_of(["192.0.2.10", "203.0.113.1"], facts.addresses(IP_JSON)) == {"eth0": ["192.0.2.10"]}


def test_vips_are_read_in_every_spelling_and_what_is_none_is_left_to_the_plan():
    given = ["192.0.2.10/24", {"address": "2001:DB8::1", "vrid": 5}, "nonsense", {}, None]
    assert facts.vip_addresses(given) == ["192.0.2.10", "2001:db8::1"]


def test_a_real_listener_is_found_with_its_program():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = [item for item in facts.listeners() if item["port"] == port]
    assert [(item["address"], item["pid"]) for item in found] == [("127.0.0.1", os.getpid())]


def test_ipv6_listeners_are_read_in_the_kernels_byte_order():
    table = (
        "  sl  local_address remote_address st tx rx tr tm retr uid timeout inode\n"
        "   0: B80D0120000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 77 1\n"
        "   1: 0100007F:0050 0200007F:1234 01 0:0 0:0 0 0 0 78 1\n"
    )
    assert facts.listening_sockets(table) == [{"address": "2001:db8::1", "port": 8080, "inode": "77"}]


def test_connections_are_those_that_are_established_at_an_address_of_either_family(tmp_path):
    (tmp_path / "net").mkdir()
    head = "  sl  local_address rem_address   st\n"
    four = [("0A0200C0:0050", "01"), ("0A0200C0:0050", "06"), ("0A0200C0:0050", "0A"), ("010200C0:0050", "01")]
    mapped, six = f"{'0' * 16}FFFF00000A0200C0:0050", "B80D0120000000000000000010000000:0050"
    rows = [f"{at}: {local} 0200007F:1234 {state} 0:0\n" for at, (local, state) in enumerate(four)]
    (tmp_path / "net/tcp").write_text(head + "".join(rows))
    assert facts.connections(["192.0.2.10", "2001:db8::10"], str(tmp_path)) == 1, "a host may have no IPv6"
    rows = [f"{at}: {each} 0:0 01 0:0\n" for at, each in enumerate([mapped, six])]
    (tmp_path / "net/tcp6").write_text(head + "".join(rows))
    assert facts.connections(["192.0.2.10", "2001:db8::10"], str(tmp_path)) == 3
    assert facts.connections(["192.0.2.99"], str(tmp_path)) == 0


def test_only_open_ports_count_as_reached():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert facts.reachable([("127.0.0.1", port)], 1.0) == [f"127.0.0.1 {port}"]
    assert facts.reachable([("127.0.0.1", port)], 1.0) == []


def test_the_youngest_of_a_unit_is_its_newest_child():
    ticks = os.sysconf("SC_CLK_TCK")
    stat = "{} (a name) (x)) S {} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 {} 0 0"
    stats = [stat.format(10, 1, 5 * ticks), stat.format(11, 10, 50 * ticks), stat.format(12, 99, 90 * ticks)]
    assert facts.youngest(10, stats) == pytest.approx(50.0)


def test_this_process_started_before_now_and_not_long_ago():
    uptime = float(Reader(None, None).text("/proc/uptime").split()[0])
    assert uptime - 3600 < facts.youngest(os.getpid(), facts.process_stats()) <= uptime


def reader(answers):
    return Reader(lambda command: (0, answers[os.path.basename(command[0])], ""), lambda name: name in answers and name)


def test_units_are_told_by_their_names_also_beside_one_that_does_not_exist():
    said = "Id=gone.service\nUnitFileState=\n\nId=haproxy.service\nUnitFileState=enabled\n"
    wanted = ["haproxy.service", "gone.service"]
    assert reader({"systemctl": said}).units_in("UnitFileState", wanted, "enabled") == ["haproxy.service"]
    assert reader({}).units_in("UnitFileState", [], "enabled") == []


def test_package_lists_are_fresh_when_there_are_some_and_they_are_of_today(tmp_path):
    nothing = Reader(None, None)
    assert not nothing.package_lists_are_fresh(str(tmp_path)), "there are none"
    (tmp_path / "deb.example_Packages").write_text("")
    assert nothing.package_lists_are_fresh(str(tmp_path))
    assert not nothing.package_lists_are_fresh(str(tmp_path), now=time.time() + 90000)
    assert nothing.package_lists_are_fresh(str(tmp_path / "no-apt-here"))
