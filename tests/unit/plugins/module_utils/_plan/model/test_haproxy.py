"""What the role `haproxy` accepts by itself."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent, haproxy

WEB = {"name": "web", "port": 80, "servers": ["192.0.2.31"]}


def model(services=(WEB,), listeners=(), tuning=None, monitors=(), **stats):
    settings = {"services": list(services), "monitors": list(monitors), "stats": stats, "tuning": tuning or {}}
    return haproxy.model(settings, list(listeners), "lb1")


def test_a_bare_address_is_a_server_with_every_default():
    service = model()["services"][0]
    assert service["servers"] == [
        {
            "name": "192.0.2.31",
            "address": "192.0.2.31",
            "port": 80,
            "weight": 1,
            "maxconn": 0,
            "backup": False,
            "options": [],
        }
    ]
    usual = {"type": "tcp", "path": "/", "port": None, "interval": 0.2, "fall": 6, "rise": 2}
    usual.update(method="GET", user="", agent=None)
    usual.update(fast_interval=0, slow_start=0, shutdown_sessions=False, tcp_user_timeout=0)
    assert service["check"] == {
        **usual,
        "host": "",
        "sni": "",
        "status": ["200-399"],
        "verify": False,
        "ca": "",
        "steps": [],
    }
    assert (service["maxconn"], service["send_proxy"]) == (0, False)


def test_a_monitor_is_read_with_every_default():
    found = model(monitors=[{"name": "ready", "port": 9444, "at_least": {"web": 1}}])
    assert found["faults"] == []
    assert found["monitors"] == [{"name": "ready", "bind": ["*"], "port": 9444, "path": "/", "at_least": {"web": 1}}]


MONITOR = {"name": "ready", "port": 9444}


@pytest.mark.parametrize(
    "monitors, sentence",
    [
        ([{**MONITOR, "at_least": {"api": 1}}], "at_least has 'api', and there is no such service: known are web."),
        ([{**MONITOR, "at_least": {"web": 2}}], "at_least requires 2 servers of web, which has 1 without backups"),
        ([{**MONITOR, "port": 80}], "service web and monitor ready both listen on * port 80: change a port"),
        ([MONITOR, {**MONITOR, "name": "other"}], "monitor ready and monitor other both listen on * port 9444"),
        ([{**MONITOR, "name": "web"}], "has the name 'web', which a service has too"),
        ([MONITOR, {**MONITOR, "port": 9445}], "has the name 'ready' twice"),
        ([{**MONITOR, "port": 9000}], "monitor ready and the statistics page both listen on 127.0.0.1 port 9000"),
        ("x", "haproxy_monitors is"),
    ],
)
def test_a_monitor_that_haproxy_could_not_have_is_refused(monitors, sentence):
    found = haproxy.model({"services": [WEB], "monitors": monitors, "stats": {}, "tuning": {}}, [], "lb1")
    assert any(sentence in fault for fault in found["faults"]), found["faults"]


def test_a_service_that_follows_its_cluster_may_have_fewer_servers_than_a_monitor_wants():
    settings = {"services": [WEB], "monitors": [{**MONITOR, "at_least": {"web": 2}}]}
    named = {"web": 2}
    assert haproxy.model({**settings, "stats": {}, "tuning": {}}, [], "lb1", inventory_servers=named)["faults"] == []
    assert agent.translate(settings, inventory_servers=named)["faults"] == []
    (fault,) = agent.translate(settings, inventory_servers={"web": 1, "api": 2})["faults"]
    assert "at_least requires 2 servers of web, which has 1 without backups: lower it." in fault


def test_a_program_that_listens_on_a_monitors_port_is_named():
    taken = {"address": "::", "port": 9444, "program": "nginx", "pid": 5}
    assert "already taken by nginx (pid 5)" in model(listeners=[taken], monitors=[MONITOR])["faults"][0]


def test_a_program_that_listens_where_haproxy_is_to_answer_is_named():
    taken = {"address": "127.0.0.1", "port": 9555, "program": "nginx", "pid": 5}
    (fault,) = model(listeners=[taken], tuning={"answer_port": 9555})["faults"]
    assert "port 9555 of service answer_port is already taken by nginx (pid 5)" in fault
    (fault,) = model(tuning={"answer_port": 80})["faults"]
    assert fault.startswith("service web and haproxy_answer_port both listen on 127.0.0.1 port 80: change a port")


def test_the_statistics_are_for_this_host_only():
    found = model()
    assert found["faults"] == []
    assert found["stats"]["address"] == "127.0.0.1"


@pytest.mark.parametrize(
    "stats, sentence",
    [
        ({"address": "0.0.0.0"}, "which others can reach: set haproxy_stats_user and haproxy_stats_password"),
        ({"address": "*"}, "which others can reach: set haproxy_stats_user and haproxy_stats_password"),
        ({"address": "0.0.0.0", "user": "admin", "password": "password"}, "one of the first that attackers try"),
        ({"user": "ops", "password": "ops"}, "one of the first that attackers try"),
        ({"user": "ops"}, "go together: set both, or none."),
        ({"port": 80}, "service web and the statistics page both listen on 127.0.0.1 port 80: change a port"),
    ],
)
def test_statistics_that_strangers_could_read_are_refused(stats, sentence):
    assert any(sentence in fault for fault in model(**stats)["faults"])


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "*"])
def test_statistics_with_a_password_of_ones_own_may_be_anywhere(address):
    assert model(address=address, user="ops", password="Vq8-not-known")["faults"] == []


@pytest.mark.parametrize(
    "stats, sentence",
    [
        ({"user": "the ops", "password": "Vq8"}, "haproxy_stats_user has a space or a control character: use letters"),
        ({"user": "ops:1", "password": "Vq8"}, "haproxy_stats_user has a colon, which ends a user's name in HTTP"),
        ({"user": "ops", "password": "V q8"}, "haproxy_stats_password has a space or a control character: use letters"),
        ({"user": "ops", "password": "V\tq8"}, "haproxy_stats_password has a space or a control character"),
        ({"user": "ops", "password": "V\u00a0q8"}, "haproxy_stats_password has a space or a control character"),
        ({"uri": "stats"}, "haproxy_stats_uri is 'stats': a URL path is required: it begins with /"),
        ({"uri": "/a b"}, "haproxy_stats_uri is '/a b': a URL path is required"),
        ({"metrics": "/a b"}, "haproxy_metrics_path is '/a b': a URL path is required"),
    ],
)
def test_statistics_that_no_client_could_ask_for_are_refused(stats, sentence):
    faults = model(**stats)["faults"]
    assert len(faults) == 1 and sentence in faults[0] and "q8" not in faults[0]


def test_metrics_may_be_left_out():
    found = model(metrics="")
    assert (found["faults"], found["stats"]["metrics"]) == ([], "")


@pytest.mark.parametrize("time", ["", "5 s", "1m30s", "1.5s", "-1", "5 minutes"])
def test_what_is_no_time_to_haproxy_is_refused(time):
    wanted = [f"haproxy_timeout_client is {time!r}: a time such as 500ms, 30s or 1h is required."]
    assert model(tuning={"timeout_client": time})["faults"] == wanted


@pytest.mark.parametrize("time, good", [("24d", True), ("2147483647ms", True), ("25d", False), ("2147483648ms", False)])
def test_a_time_that_haproxy_cannot_count_is_refused(time, good):
    wanted = [] if good else [f"haproxy_hard_stop_after is '{time}': haproxy takes at most 24d."]
    assert model(tuning={"hard_stop_after": time})["faults"] == wanted


def test_a_time_stays_as_it_is_written_and_one_that_is_optional_may_be_left_out():
    tuning = model(tuning={"timeout_connect": "5000ms", "timeout_fin": ""})["tuning"]
    assert (tuning["timeout_connect"], tuning["timeout_fin"]) == ("5000ms", "")


def test_a_down_file_that_a_shell_would_split_is_refused():
    wanted = ["haproxy_down_file is '/run/a b': an absolute path of letters, digits and . _ - / is required."]
    assert model(tuning={"down_file": "/run/a b"})["faults"] == wanted


def test_a_taken_statistics_port_is_named_too():
    taken = {"address": "127.0.0.1", "port": 9000, "program": "prometheus", "pid": 5}
    assert "already taken by prometheus (pid 5)" in model(listeners=[taken])["faults"][0]


@pytest.mark.parametrize(
    "services, sentence",
    [
        ([WEB, WEB], "has the name 'web' twice"),
        ([WEB, {**WEB, "name": "other"}], "service web and service other both listen on * port 80: change a port"),
        ([{**WEB, "servers": []}], "servers is []: a list of 1 or more is required."),
        ([{**WEB, "servers": ["192.0.2.31", "192.0.2.31"]}], "has '192.0.2.31' twice"),
        ([{**WEB, "name": "a b"}], "a name of letters, digits and . : _ - is required."),
        ([{**WEB, "mode": "udp"}], "one of tcp, http is required."),
        ([{**WEB, "check": {"interval": 0}}], "check.interval is 0: a number from 0.1 to 3600 seconds is required."),
        ([{**WEB, "check": {"path": "/healthz"}}], "for a check of type http or https, and this one is tcp: leave it"),
        ([{**WEB, "check": {"type": "http", "verify": True}}], "check.verify is for a check of type https, and this"),
        ([{**WEB, "check": {"type": "https", "ca": "/ca.pem"}}], "check.ca is set, but verify is false: set verify"),
        ([{**WEB, "check": {"type": "https", "verify": True}}], "verify is true, but host is empty: set host to the"),
        ([{**WEB, "check": {"type": "http", "status": 99}}], "check.status is 99: codes from 100 to 599 and ranges"),
        ([{**WEB, "check": {"type": "https", "host": "a", "verify": True, "steps": [{"host": ""}]}}], "host is empty"),
        ([{**WEB, "check": {"timeout": 5}}], "haproxy_services[0] (web).check has the unknown key 'timeout'"),
        ([{**WEB, "maxconn": -1}], "haproxy_services[0] (web).maxconn is -1: a whole number from 0 to 1000000"),
        ([{**WEB, "send_proxy": "v1"}], "haproxy_services[0] (web).send_proxy is 'v1': true or false is required."),
        ([{**WEB, "servers": ["127.0.0.1"]}], "127.0.0.1 at 127.0.0.1 port 80 is the service itself: name another"),
        ([{**WEB, "bind": []}], "a list of 1 or more is required."),
        (["web"], "haproxy_services[0] is 'web': a mapping with the keys"),
        ([{"port": 80, "servers": ["192.0.2.31"]}], "haproxy_services[0] lacks 'name': add it."),
    ],
)
def test_bad_services_are_refused_with_their_place(services, sentence):
    assert any(sentence in fault for fault in model(services)["faults"]), model(services)["faults"]


def test_one_port_on_two_addresses_is_no_clash():
    assert model([{**WEB, "bind": ["192.0.2.1"]}, {**WEB, "name": "other", "bind": ["192.0.2.2"]}])["faults"] == []


@pytest.mark.parametrize(
    "balance",
    ["static-rr", "first", "random", "random(2)", "hdr(host)", "hdr(host) use_domain_only", "uri", "uri depth 2 whole"]
    + ["url_param user", "url_param user check_post 64", "rdp-cookie", "rdp-cookie(mstshash)", "hash src"]
    + ["hash path,field(2,/)", "hash src,ipmask(24,64),map_ip(/etc/racks.map,a)"],
)
def test_balance_is_as_haproxy_has_it(balance):
    assert model([{**WEB, "balance": balance}])["faults"] == []


@pytest.mark.parametrize(
    "balance",
    ["", "round-robin", "hdr", "uri depth", "source\n    server x", "random()", 5]
    + ["hash", "hash ,", "hash src,", "hash (src)", "hash src b"],
)
def test_a_balance_that_haproxy_does_not_have_is_refused(balance):
    (fault,) = model([{**WEB, "balance": balance}])["faults"]
    assert fault.startswith(f"haproxy_services[0] (web).balance is {balance!r}: roundrobin, leastconn, source, or ")


def test_raw_lines_may_be_a_list_or_one_text():
    assert model(tuning={"extra_lines": "listen x\n    bind :1\n"})["tuning"]["extra_lines"] == [
        "listen x",
        "    bind :1",
    ]


def test_a_fault_names_the_variable_as_the_user_knows_it():
    assert "haproxy_maxconn is 'lots': a whole number from 0" in model(tuning={"maxconn": "lots"})["faults"][0]
    assert "haproxy_stats_port is 0: a port from 1 to 65535 is required." in model(port=0)["faults"][0]


@pytest.mark.parametrize("address", ["*", "0.0.0.0"])
def test_the_statistics_page_listens_on_every_address_as_a_service_does(address):
    secret = {"user": "ops", "password": "Vq8-not-known"}
    assert model(address=address, **secret)["faults"] == []
    (found,) = model(address=address)["faults"]
    assert found.startswith("haproxy_stats_address is *, which others can reach: set haproxy_stats_user and")
    (found,) = model([{**WEB, "port": 9000, "bind": ["192.0.2.7"]}], address=address, **secret)["faults"]
    assert "the statistics page" in found and "both listen on" in found
    taken = [{"address": "192.0.2.7", "port": 9000, "program": "nginx", "pid": 7}]
    (found,) = model(listeners=taken, address=address, **secret)["faults"]
    assert "port 9000" in found and "nginx" in found


@pytest.mark.parametrize("address", ["", "x", "*:9000", ["*"], None, 5, "**", "fe80::1", "224.0.0.1", "{{ x }}"])
def test_what_nobody_can_listen_on_is_one_sentence(address):
    found = model(address=address, user="ops", password="Vq8-not-known")["faults"]
    assert len(found) == (address is not None), found  # null is the default
    assert all(each.startswith("haproxy_stats_address is ") for each in found)


@pytest.mark.parametrize(
    "given, is_refused",
    [
        ({"services": [{**WEB, "name": "haproxy_stats"}]}, True),
        ({"services": [{**WEB, "frontend_name": "haproxy_stats"}]}, True),
        ({"monitors": [{"name": "haproxy_stats", "port": 81}]}, True),
        ({"services": [{**WEB, "name": "haproxy_stats", "frontend_name": "web"}]}, False),
    ],
)
def test_no_other_frontend_has_the_name_of_the_statistics_page(given, is_refused):
    sentence = "haproxy_stats is the frontend of the statistics page: give the service or the monitor another name."
    assert model(**given)["faults"] == ([sentence] if is_refused else [])
    assert model(**given, enabled=False)["faults"] == []
