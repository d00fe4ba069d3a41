# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers by DNS name and with options of HAProxy's: what is accepted, and what haproxy makes of it."""

from __future__ import annotations

import contextlib
import shlex
import socket
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.config.schema import shown
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from support.name_server import NameServer
from support.plans.pairs import pair
from support.ports import free_ports
from support.readers import haproxy_cfg
from support.rendering import haproxy as rendered
from support.rendering import haproxy_model
from support.waiting import until

APP = {"name": "app1", "address": "app1.example.com"}
RESOLVED = ["resolvers", "haproxy_resolvers", "init-addr", "last,libc,none", "resolve-prefer"]

NEITHER = "an IPv4 or IPv6 address, or a fully qualified name such as app1.example.com, is required."


def web(*servers, **more):
    return {"name": "web", "port": 443, "servers": list(servers), **more}


def faults(*servers, **variables):
    return haproxy_model([web(*servers)], **variables)["faults"]


def lines(*servers, tmp_path, **variables):
    """Return the words of the lines of haproxy.cfg, which haproxy accepts."""
    file = tmp_path / "haproxy.cfg"
    file.write_text(rendered([web(*servers)], **variables))
    done = subprocess.run(["haproxy", "-c", "-f", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return haproxy_cfg(file.read_text())


def section(found, kind):
    """Return the lines of the section that begins with a word."""
    begin = next(at for at, line in enumerate(found) if line[0] == kind)
    end = next(at for at, line in enumerate(found) if at > begin and line[0] in ("frontend", "backend"))
    return found[begin:end]


@pytest.mark.parametrize(
    "address, sentence",
    [
        ("app1", "haproxy resolves no bare name: write the address, or the name in full, such as app1.example.com."),
        ("192.0.2.31:80", 'a port is a key of its own: write {"address": "192.0.2.31", "port": 80}.'),
        ("[2001:db8::31]:80", 'a port is a key of its own: write {"address": "2001:db8::31", "port": 80}.'),
        ("app1.example.com:80", 'a port is a key of its own: write {"address": "app1.example.com", "port": 80}.'),
        ("app1.example.com.", NEITHER),
        ("192.0.2.256", NEITHER),
        ("app 1.example.com", NEITHER),
        ("-app.example.com", NEITHER),
        (".".join(["a" * 63] * 4), NEITHER),
    ],
)
def test_what_is_no_address_and_no_whole_name_is_refused(address, sentence):
    assert faults({"name": "app1", "address": address}) == [
        f"haproxy_services[0] (web).servers[0].address is {shown(address)}: {sentence}"
    ]


def test_haproxy_resolves_a_name_with_the_hosts_name_servers(tmp_path):
    found = lines(APP, "192.0.2.31", tmp_path=tmp_path)
    assert section(found, "resolvers")[:2] == [["resolvers", "haproxy_resolvers"], ["parse-resolv-conf"]]
    assert ["server", "app1", "app1.example.com:443", "weight", "1", *RESOLVED, "ipv4"] in found
    assert ["server", "192.0.2.31", "192.0.2.31:443", "weight", "1"] in found


def test_the_name_servers_and_the_family_can_be_chosen(tmp_path):
    variables = {"haproxy_nameservers": ["192.0.2.53", "[2001:db8::53]:5353"], "haproxy_resolve_prefer": "ipv6"}
    found = lines(APP, tmp_path=tmp_path, **variables)
    assert section(found, "resolvers")[1:3] == [
        ["nameserver", "ns1", "192.0.2.53:53"],
        ["nameserver", "ns2", "[2001:db8::53]:5353"],
    ]
    assert ["server", "app1", "app1.example.com:443", "weight", "1", *RESOLVED, "ipv6"] in found


@pytest.mark.parametrize("value", ["ns.example.com", "192.0.2.53:0", "192.0.2.53:65536", "2001:db8::53:x", "", 53])
def test_a_name_server_that_haproxy_could_not_ask_is_refused(value):
    (fault,) = faults(APP, haproxy_nameservers=[value])
    assert fault.startswith("haproxy_nameservers is ") and fault.endswith("such as 192.0.2.53 or [2001:db8::53]:53.")


def test_no_resolvers_are_written_where_no_server_has_a_name():
    assert "resolve" not in rendered([web("192.0.2.31")])


def test_a_route_and_the_preset_of_a_pair_may_have_servers_by_name(tmp_path):
    route = {"name": "shop", "hosts": ["shop.example"], "servers": [APP]}
    assert haproxy_model([web("192.0.2.31", mode="http", routes=[route])])["names"] == ["app1.example.com"]
    networks = ["192.0.2.0/24"]
    upi = pair(preset="openshift_upi", masters=["master-0.example.com", "192.0.2.21"], machine_networks=networks)
    plan = _pair.plan(upi)
    assert plan.faults == []
    text = rendered(plan.members["lb1"].balancer.services)
    assert f"server master-0.example.com master-0.example.com:22623 weight 1 {' '.join(RESOLVED)} ipv4\n" in text


def test_options_are_words_of_haproxys_own(tmp_path):
    options = ["send-proxy-v2", "ssl verify none sni str(app1.example.com)", "cookie 'app 1'", "maxqueue 100"]
    found = lines({**APP, "maxconn": 5, "backup": True, "options": options}, tmp_path=tmp_path)
    server, _in_fallback = [line for line in found if line[0] == "server"]
    assert server[3:7] == ["weight", "1", "maxconn", "5"] and server[7] == "backup"
    written = ["ssl", "verify", "none", "sni", "str(app1.example.com)", "cookie", "app 1", "maxqueue", "100"]
    assert server[-len(written) - 1 :] == ["send-proxy-v2", *written]


@pytest.mark.parametrize("option", ["cookie $HOME", "cookie #1", 'cookie "a\\b"', "cookie it's'"])
def test_what_haproxy_would_expand_stands_as_it_was_written(option, tmp_path):
    found = lines({**APP, "options": [option]}, tmp_path=tmp_path)
    server, _in_fallback = [line for line in found if line[0] == "server"]
    assert server[-2:] == shlex.split(option)


@pytest.mark.parametrize(
    "options, sentence",
    [
        (
            ["weight 10"],
            "in it 'weight ...' is wrong: weight is a key of the server itself: set it next to options.",
        ),
        (["cookie 'a"], "in it 'cookie ...' is wrong: a quote has no end: close it."),
        (["cookie a\nserver b"], "is wrong: one line of printable characters is required."),
        ([{"cookie": "a"}], "an HAProxy option with its arguments is required, such as 'cookie app1'."),
        (["# x"], "an HAProxy option with its arguments is required, such as 'cookie app1'."),
        ("cookie a", 'a list is required, such as ["a", "b"].'),
    ],
)
def test_options_that_would_change_other_lines_are_refused(options, sentence):
    (fault,) = faults({**APP, "options": options})
    assert fault.startswith("haproxy_services[0] (web).servers[0].options is ") and fault.endswith(sentence)


def test_the_agent_refuses_names_and_options_in_a_sentence_each():
    found = agent.translate({"services": [web({**APP, "options": ["send-proxy", "cookie a"]})]})["faults"]
    assert found == [
        "agent_services (web).servers: app1 has the name app1.example.com, which the agent cannot resolve: write its "
        "address, or use HAProxy.",
        "agent_services (web).servers: app1 has the options send-proxy, cookie, and the agent knows weight, maxconn "
        "and backup alone: leave them out, or use HAProxy.",
    ]


def test_the_agent_has_the_options_that_are_keys():
    server = {"name": "app1", "address": "192.0.2.31", "weight": 3, "maxconn": 5, "backup": True}
    found = agent.translate({"services": [web(server)]})
    assert found["faults"] == []
    assert found["proxy"]["services"][0]["servers"] == [{**server, "port": 443}]


@contextlib.contextmanager
def running(text, folder):
    """A haproxy of this user with a configuration of the role; gives the path of its runtime socket."""
    privileged = ("user", "group", "chroot", "log")
    lines = [line for line in text.splitlines() if line.split()[:1] not in [[word] for word in privileged]]
    file, runtime = folder / "haproxy.cfg", folder / "admin.sock"
    file.write_text("\n".join(lines).replace("/run/haproxy/admin.sock", str(runtime)) + "\n")
    with subprocess.Popen(["haproxy", "-db", "-f", file], stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: answers(runtime) or process.poll() is not None)
            yield runtime
        finally:
            process.terminate()


def answers(runtime):
    """Return whether haproxy listens: the socket is there before."""
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(runtime)) == 0


def addresses(runtime):
    """Return the addresses of haproxy's servers as it has them now."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(runtime))
        connection.send(b"show servers state\n")
        said = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
    return [line.split()[4] for line in said.splitlines()[2:] if line]


def test_haproxy_starts_while_dns_is_down_and_has_the_address_once_it_answers(tmp_path):
    dns = NameServer("192.0.2.31")
    port, page = free_ports(2)
    service = {**web("app1.example.invalid", check={"type": "none"}), "bind": ["127.0.0.1"], "port": port}
    try:
        text = rendered([service], haproxy_nameservers=[dns.place], haproxy_stats_port=page)
        with running(text, tmp_path) as runtime:
            assert addresses(runtime) == ["-"]
            dns.up.set()
            until(lambda: addresses(runtime) == ["192.0.2.31"])
    finally:
        dns.close()
