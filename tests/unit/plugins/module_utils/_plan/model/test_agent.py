# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The model comes out in the agent's words, whole, or is refused with a sentence."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.proxy import config
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import config as vrrp_config
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent

SERVICE = {"name": "web", "port": 443, "servers": ["192.0.2.31"]}
INSTANCE = {"name": "front", "interface": "eth0", "vrid": 51, "addresses": ["192.0.2.10"], "peers": ["192.0.2.2"]}
EVERYTHING = {
    "services": [
        {
            "name": "api",
            "bind": ["*", "::"],
            "port": 6443,
            "balance": "leastconn",
            "check": {
                "type": "https",
                "path": "/readyz",
                "host": "api.example",
                "sni": "sni.example",
                "status": [200, 204],
                "steps": [{"port": 6444}, {"port": 6445, "path": "/other", "status": 403}, {"type": "tcp"}],
                "verify": True,
                "ca": "/etc/ca.pem",
                "port": 6444,
                "interval": 0.5,
                "fall": 2,
                "rise": 4,
                "fast_interval": 0.2,
                "slow_start": 60,
                "shutdown_sessions": True,
                "tcp_user_timeout": 15,
            },
            "servers": [
                {"name": "one", "address": "192.0.2.31", "port": 6443, "weight": 3, "maxconn": 20},
                {"address": "2001:db8::32", "backup": True},
            ],
            "maxconn": 300,
            "send_proxy": True,
            "allow": ["192.0.2.0/24"],
        },
        SERVICE,
    ],
    "monitors": [{"name": "ready", "port": 9444, "path": "/ready", "at_least": {"api": 1}}],
    "maxconn": 500,
    "retries": 2,
    "timeout_queue": "20s",
    "workers": 2,
    "timeout_client": "90s",
    "timeout_tunnel": "2h",
    "timeout_connect": "750ms",
    "timeout_fin": "30s",
    "hard_stop_after": "10m",
    "stop_within": "5m",
    "instances": [
        {
            **INSTANCE,
            "priority": 254,
            "preempt_delay": 3,
            "source": "192.0.2.1",
            "garp_refresh": 30,
            "notify": "/usr/bin/tell",
            "track_scripts": ["alive", {"name": "load", "weight": -10}],
            "track_files": [{"name": "down", "weight": -5}],
            "track_interfaces": ["eth1"],
        },
        {
            **INSTANCE,
            "name": "six",
            "vrid": 52,
            "version": 3,
            "advert_interval": 0.5,
            "addresses": ["2001:db8::10"],
            "multicast": True,
            "peers": [],
        },
    ],
    "scripts": [
        {"name": "alive", "command": "/usr/bin/killall -0 onprem-lb-proxy", "interval": 0.2, "fall": 2, "rise": 3},
        {"name": "load", "command": "/usr/bin/load --high 'a b'", "user": "nobody", "timeout": 1},
    ],
    "track_files": [{"name": "down", "path": "/run/down"}],
    "auth_pass": "k3Ja92xQ",
    "script_user": "keeper",
    "checksum": "rfc9568",
}


def translate(**settings):
    found = agent.translate(settings)
    assert found["faults"] == []
    return found


def faults(**settings):
    return agent.translate(settings)["faults"]


def test_the_agent_reads_all_of_it_as_it_was_meant():
    found = translate(**EVERYTHING)
    proxy, wrong = config.parse(json.dumps(found["proxy"]))
    assert wrong == []
    api, web = proxy.services
    assert (api.bind, api.port, api.balance) == (("*", "::"), 6443, "leastconn")
    assert [(s.name, s.address, s.port, s.weight, s.backup, s.maxconn) for s in api.servers] == [
        ("one", "192.0.2.31", 6443, 3, False, 20),
        ("2001:db8::32", "2001:db8::32", 6443, 1, True, 0),
    ]
    health = api.health
    assert (health.type, health.path, health.port, health.interval) == ("https", "/readyz", 6444, 500_000)
    assert (health.fall, health.rise, web.health.type, web.health.fall) == (2, 4, "tcp", 6)
    assert (health.timeout, health.slow_start, health.shutdown_sessions) == (750_000, 60_000_000, True)
    assert health.tcp_user_timeout == 15_000_000
    assert (health.host, health.sni, health.status) == ("api.example", "sni.example", ("200", "204"))
    assert (health.verify, health.ca) == (True, "/etc/ca.pem")
    assert api.allow == ("192.0.2.0/24",)
    assert [(step.type, step.port, step.path, step.status) for step in health.steps] == [
        ("https", 6444, "/readyz", ("200", "204")),
        ("https", 6445, "/other", ("403",)),
        ("tcp", 6444, "/", ("200-399",)),
    ]
    assert (api.maxconn, api.send_proxy, web.maxconn, web.send_proxy) == (300, True, 0, False)
    times = proxy.timeouts
    assert (times.connect, times.client, times.server, times.tunnel) == (750_000, 90_000_000, 60_000_000, 7_200_000_000)
    assert (times.fin, proxy.hard_stop_after, proxy.stop_within) == (30_000_000, 600_000_000, 300_000_000)
    assert (times.queue, proxy.retries) == (20_000_000, 2)
    assert (proxy.maxconn, proxy.workers) == (500, 2)
    assert [(m.path, m.at_least[0].servers) for m in proxy.monitors] == [("/ready", 1)]
    assert (proxy.page.bind, proxy.page.port) == (("127.0.0.1",), 9000)

    vrrp, wrong = vrrp_config.parse(json.dumps(found["vrrp"]))
    assert wrong == []
    front, six = vrrp.instances
    assert (front.vrid, front.priority, front.interval, front.preempt_delay) == (51, 254, 1_000_000, 3_000_000)
    assert (front.auth_pass, front.source, front.peers) == (b"k3Ja92xQ", "192.0.2.1", ("192.0.2.2",))
    assert (front.announce_again, front.notify, front.addresses) == (30_000_000, ("/usr/bin/tell",), ("192.0.2.10/32",))
    assert [(t.name, t.weight) for t in front.track] == [("alive", 0), ("load", -10), ("down", -5), ("link:eth1", 0)]
    assert (six.version, six.multicast, six.interval, six.auth_pass) == (3, True, 500_000, b"")
    assert (front.checksum, six.checksum) == ("rfc5798", "rfc9568")  # version 2 has one checksum only
    checks = {check.name: check for check in vrrp.checks}
    alive = checks["alive"]
    assert (alive.type, alive.process, alive.interval) == ("process", "onprem-lb-proxy", 200_000)
    assert (alive.fall, alive.rise) == (2, 3)
    load = checks["load"]
    assert (load.command, load.user, load.timeout) == (("/usr/bin/load", "--high", "a b"), "nobody", 1_000_000)
    assert (checks["down"].file, checks["link:eth1"].interface, vrrp.script_user) == ("/run/down", "eth1", "keeper")


WAY = "10.0.0.0/8 via 192.0.2.254 dev eth0"


def test_what_keepalived_has_for_a_sync_group_and_its_own_interface_the_agent_has_too():
    more = {"excluded_addresses": ["2001:db8::9"], "virtual_routes": [WAY]}
    more["addresses"] = [*INSTANCE["addresses"], "198.51.100.9 dev eth1"]
    told = {
        **INSTANCE,
        **more,
        "dont_track_primary": True,
        "min_ttl": 254,
        "notify": "/usr/bin/tell",
        "notify_user": "ops",
    }
    group = {
        "name": "both",
        "instances": ["six", INSTANCE["name"]],
        "track_scripts": ["alive"],
        "track_files": ["down"],
        "track_interfaces": ["eth1"],
        "notify": "/usr/bin/all",
        "notify_user": "root",
    }
    six = EVERYTHING["instances"][1]
    scripts, files = EVERYTHING["scripts"], EVERYTHING["track_files"]
    found = translate(instances=[told, six], scripts=scripts, track_files=files, sync_groups=[group], startup_delay=2.5)
    vrrp, wrong = vrrp_config.parse(json.dumps(found["vrrp"]))
    assert wrong == []
    front, second = vrrp.instances
    assert (front.dont_track_primary, front.min_ttl, front.notify_user) == (True, 254, "ops")
    assert (second.dont_track_primary, second.min_ttl, second.notify_user) == (False, 255, "")
    assert (front.excluded_addresses, [*map(str, front.virtual_routes)]) == (("2001:db8::9/128",), [WAY])
    assert front.addresses[-1] == "198.51.100.9/32 dev eth1"
    assert (second.excluded_addresses, second.virtual_routes) == ((), ())
    for instance in vrrp.instances:
        assert [(each.name, each.weight) for each in instance.track] == [("alive", 0), ("down", 0), ("link:eth1", 0)]
    assert (vrrp.groups[0].notify, vrrp.groups[0].notify_user) == (("/usr/bin/all",), "root")
    assert vrrp.startup_delay == 2_500_000


def test_each_answers_where_its_unit_lets_it():
    found = translate(services=[SERVICE], instances=[INSTANCE])
    assert found["proxy"]["status_socket"] == "/run/onprem-lb-proxy/status.sock"
    assert found["vrrp"]["status_socket"] == "/run/onprem-lb-vrrp/status.sock"


def test_a_daemon_without_work_has_no_configuration():
    assert translate(services=[SERVICE])["vrrp"] is None
    assert translate(instances=[INSTANCE])["proxy"] is None


def test_a_group_changes_together():
    both = {"name": "both", "instances": ["front"], "notify": "/usr/bin/tell"}
    found = translate(instances=[INSTANCE], sync_groups=[both])
    assert found["vrrp"]["sync_groups"] == [both]


def test_a_url_is_asked_by_the_agent_itself_and_what_it_cannot_ask_by_curl():
    urls = {"one": ["https://localhost:6443/readyz"], "two": ["http://localhost/", "http://localhost:81/"]}
    found = translate(
        instances=[{**INSTANCE, "track_scripts": list(urls)}],
        scripts=[{"name": name, "any_of": asked, "fall": 3, "timeout": 1} for name, asked in urls.items()],
    )
    one, two = vrrp_config.parse(json.dumps(found["vrrp"]))[0].checks
    assert (one.type, one.address, one.port, one.path, one.host) == (
        *("https", "127.0.0.1", 6443, "/readyz", "localhost"),
    )
    assert (one.fall, one.timeout, one.verify) == (3, 1_000_000, False)
    assert (two.type, two.command[:2]) == ("script", ("/usr/bin/sh", "-c"))


def test_a_check_may_take_as_long_as_the_smaller_of_haproxys_two_limits():
    def limit(**given):
        return translate(services=[SERVICE], **given)["proxy"]["services"][0]["check"]["timeout"]

    assert limit() == 0.28
    assert limit(timeout_check="2s") == 1.05
    assert limit(timeout_check="2s", timeout_connect="5s") == 2
    assert limit(timeout_connect="250ms") == 0.25


def test_what_is_not_set_is_left_to_the_agents_own_default():
    proxy = config.parse(json.dumps(translate(services=[SERVICE])["proxy"]))[0]
    assert (proxy.timeouts.fin, proxy.stop_within, proxy.maxconn) == (0, 8_000_000, 10_000)


def test_the_page_can_be_left_out():
    assert "page" not in translate(services=[SERVICE], stats_enabled=False)["proxy"]


@pytest.mark.parametrize(
    "given, seconds",
    [("250ms", 0.25), ("500ms", 0.5), ("2s", 2), ("3m", 180), ("1h", 3600), ("1d", 86400)],
)
def test_times_are_haproxys(given, seconds):
    assert translate(services=[SERVICE], timeout_client=given)["proxy"]["timeouts"]["client"] == seconds


@pytest.mark.parametrize(
    "settings, place",
    [
        ({"services": [{**SERVICE, "frontend_lines": ["x"]}]}, "agent_services (web).frontend_lines"),
        ({"services": [{**SERVICE, "backend_lines": ["x"]}]}, "agent_services (web).backend_lines"),
        ({"instances": [{**INSTANCE, "lines": ["x"]}]}, "agent_instances (front).lines"),
        (
            {"instances": [INSTANCE], "sync_groups": [{"name": "both", "instances": ["front"], "lines": ["x"]}]},
            "agent_sync_groups (both).lines",
        ),
        ({"services": [SERVICE], "raw": {"haproxy_global_lines": ["x"]}}, "haproxy_global_lines"),
    ],
)
def test_raw_lines_are_refused_with_their_place(settings, place):
    (sentence,) = faults(**settings)
    assert sentence.startswith(f"{place} has raw lines")


@pytest.mark.parametrize(
    "settings, word",
    [
        ({"stats_user": "me", "stats_password": "hunter22"}, "agent_stats_password"),
        ({"stats_address": "*"}, "agent_stats_address is *, which others can reach, and the agent's page knows no"),
        ({"stats_address": "192.0.2.1"}, "agent_stats_address is 192.0.2.1, which others can reach"),
        ({"timeout_client": "5 minutes"}, "agent_timeout_client is '5 minutes'"),
        ({"timeout_fin": "soon"}, "agent_timeout_fin is 'soon': a time such as 500ms"),
        ({"stop_within": "1000d"}, "stop_within is 86400000: a number from 0 to 604800 seconds is required."),
        ({"checksum": "md5"}, "agent_checksum is 'md5': one of rfc5798, rfc9568 is required."),
        ({"services": [{**SERVICE, "check": {"host": "x"}}]}, "agent_services[0] (web).check.host is for a check of"),
        ({"down_file": "/run/a b"}, "agent_down_file"),
        ({"down_file": "/run/x';reboot;'"}, "agent_down_file"),
        ({"start_commands": ["nft list"]}, "agent_start_commands"),
        ({"start_commands": ["/bin/a\\"]}, "agent_start_commands"),
        ({"stop_commands": ["/bin/a\n/bin/b"]}, "agent_stop_commands"),
        ({"services": [SERVICE, {**SERVICE, "name": "other"}]}, "both listen on * port 443"),
        (
            {"services": [{**SERVICE, "balance": "first"}]},
            "agent_services (web).balance is first, and the agent",
        ),
        ({"monitors": [{"name": "m", "port": 443}]}, "port 443"),
        ({"monitors": [{"name": "m", "prot": 1}]}, "agent_monitors[0] (m) has the unknown key 'prot': did you mean"),
        ({"monitors": [{"name": "m", "port": 1, "at_least": {"x": 1}}]}, "agent_monitors[0] (m).at_least has 'x', and"),
        ({"stats_port": 443}, "443"),
        ({"instances": [{**INSTANCE, "peers": []}]}, "agent_instances[0] (front).peers is empty"),
        ({"instances": [{**INSTANCE, "track_scripts": ["x"]}]}, "names 'x', which is not defined"),
        ({"instances": [{**INSTANCE, "vrid": 300}]}, "agent_instances[0] (front).vrid is 300"),
        ({"instances": [INSTANCE], "auth_pass": "much too long"}, "agent_auth_pass has 13 characters"),
        ({"instances": [INSTANCE], "monitor": []}, "unknown key 'monitor'"),
    ],
)
def test_what_cannot_be_is_refused_with_its_variable(settings, word):
    found = faults(**{"services": [SERVICE], **settings})
    assert [sentence for sentence in found if word in sentence], found
    assert "hunter22" not in str(found) and "much too long" not in str(found)


def test_a_script_and_a_file_of_one_name_are_told_apart():
    found = faults(
        instances=[INSTANCE],
        scripts=[{"name": "x", "command": "/bin/true"}],
        track_files=[{"name": "x", "path": "/run/x"}],
    )
    assert "agent_scripts and agent_track_files both have the name 'x': give each its own." in found


def test_a_program_that_listens_on_a_services_port_is_named_unless_it_is_the_proxy_itself():
    def clash(program, port=443, **settings):
        listener = {"address": "0.0.0.0", "port": port, "program": program, "pid": 7}
        return agent.translate({"services": [SERVICE], **settings}, listeners=[listener], host="lb1")["faults"]

    assert clash("nginx") == [
        "lb1: port 443 of service web is already taken by nginx (pid 7): stop that program or move the service."
    ]
    assert clash("haproxy") and clash("nginx", port=9000)
    assert clash("nginx", port=9444, monitors=[{"name": "ready", "port": 9444}])
    for own in ("onprem-lb-proxy", "proxy-worker"):
        assert clash(own) == []


def test_a_password_of_a_wrong_kind_is_not_shown():
    (fault, *others) = faults(instances=[{**INSTANCE, "auth_pass": 12345678}])
    wrong = "one line of text is required: put it into quotes."
    assert fault == f"agent_instances[0] (front).auth_pass is a secret (a number): {wrong}"
    others += faults(instances=[INSTANCE], auth_pass=["12345678"], stats_password=12345678)
    assert len(others) >= 2 and "12345678" not in str([fault, *others])


def test_passwords_and_the_arguments_of_programs_are_named_as_secrets():
    assert translate(**EVERYTHING)["secrets"] == ["--high 'a b'", "-0 onprem-lb-proxy", "k3Ja92xQ"]
