# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What haproxy and the agent say of their servers."""

from __future__ import annotations

import socket
import threading

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import balancer
from support.paths import GOLDEN

# haproxy 2.6, `show stat -1 4 -1`, without the columns in between.
STATISTICS = """\
# pxname,svname,qcur,status,weight,
web,app1,0,UP,1,
web,app2,0,DOWN,1,
web,app3,0,UP 1/2,1,
web,app4,0,DOWN 1/2,1,
web,app5,0,no check,1,
api,m1,0,MAINT (via web/app2),1,
api,m2,0,DRAIN,1,
api,m3,0,NOLB,1,
"""


def test_haproxys_words_for_a_server_become_one_of_five():
    states = [state for _service, _name, state in balancer.of_statistics(STATISTICS)]
    assert states == ["up", "down", "up", "down", "unchecked", "maint", "drain", "drain"]
    assert balancer.of_statistics(STATISTICS)[5][:2] == ("api", "m1")


IN_FALLBACK = """\
# pxname,svname,qcur,status,weight,
web,a,0,DOWN,1,
web,b,0,UP,1,
web,c,0,MAINT,1,
web,d,0,DOWN,1,
web-fallback,a,0,UP 1/2,1,
web-fallback,b,0,UP,1,
web-fallback,c,0,UP,1,
web-fallback,d,0,DOWN,1,
own-fallback,e,0,UP,1,
"""
CONFIG = "frontend web\n    use_backend web-fallback if { path_beg / } { nbsrv(web) eq 0 }\n    default_backend web\n"


def test_a_server_that_is_up_in_the_fallback_of_its_service_alone_is_late_and_counts_once():
    found = balancer.of_statistics(IN_FALLBACK, CONFIG)
    of_web = [("web", "a", "late"), ("web", "b", "up"), ("web", "c", "maint"), ("web", "d", "down")]
    assert found == [*of_web, ("own-fallback", "e", "up")]
    summary = balancer.summary(found)
    assert (summary["total"], summary["up"]) == (5, 3)
    assert [server["name"] for server in summary["others"]] == ["a", "c", "d"]


@pytest.mark.parametrize("golden", ["every-service.haproxy.cfg", "ipi-default.haproxy.cfg"])
def test_the_fallbacks_are_those_of_the_configuration(golden):
    text = (GOLDEN / golden).read_text()
    found = dict(balancer.FALLBACK.findall(text))
    assert found and {f"backend {fallback}" for fallback in found} <= {*text.splitlines()}
    assert all(f"{service}-fallback" == fallback for fallback, service in found.items())


JUST_STARTED = """\
# pxname,svname,qcur,status,check_status,
web,a,0,UP 1/6,INI,
web,b,0,UP 1/6,* INI,
web,c,0,UP,L4OK,
web,d,0,DOWN,L4CON,
web,e,0,MAINT,INI,
web,f,0,no check,,
web-fallback,d,0,UP 1/2,* INI,
"""


def test_a_server_that_haproxy_takes_for_up_before_its_first_check_has_ended_is_not_known_to_be():
    found = [state for _service, _name, state in balancer.of_statistics(JUST_STARTED, CONFIG)]
    assert found == [balancer.NEW, balancer.NEW, "up", balancer.NEW, "maint", "unchecked"]
    assert balancer.summary(balancer.of_statistics(JUST_STARTED, CONFIG))["up"] == 2


@pytest.mark.parametrize(
    "state, certain, read",
    [
        ("up", True, "up"),
        ("up", False, balancer.NEW),
        ("late", False, balancer.NEW),
        ("late", True, "late"),
        ("maint", False, "maint"),
        ("up", None, "up"),
    ],
)
def test_a_server_that_the_agent_takes_for_up_before_its_first_check_has_ended_is_not_known_to_be(state, certain, read):
    server = {"name": "a", "state": state, **({} if certain is None else {"certain": certain})}
    assert balancer.of_report({"services": [{"name": "web", "servers": [server]}]}) == [("web", "a", read)]


@pytest.mark.parametrize(
    "states, is_known, says",
    [
        (["down", balancer.NEW], False, "Whether a server of web is up is not known: the first check of 1 has"),
        ([balancer.NEW, balancer.NEW], False, "Whether a server of web is up is not known: the first check of 2 has"),
        (["up", balancer.NEW], True, ""),
        (["late", balancer.NEW], True, ""),
        (["down", "drain"], True, "No server of web is up (0 of 2)"),
    ],
)
def test_what_no_check_has_said_yet_is_said_to_be_unknown(states, is_known, says):
    servers = [("other", "x", "up"), *(("web", f"s{number}", state) for number, state in enumerate(states))]
    assert balancer.is_known(servers) == is_known
    found = balancer.unserved(servers)
    assert [sentence[: len(says)] for sentence in found] == ([says] if says else [])


def test_a_summary_counts_and_names_those_without_connections():
    found = balancer.summary(balancer.of_statistics(STATISTICS))
    assert (found["total"], found["up"]) == (8, 3)
    assert found["others"][0] == {"service": "web", "name": "app2", "state": "down"} and len(found["others"]) == 5


def test_a_report_of_the_agent_is_read_the_same_way():
    report = {
        "services": [{"name": "web", "servers": [{"name": "app1", "state": "up"}, {"name": "b", "state": "down"}]}]
    }
    assert balancer.of_report(report) == [("web", "app1", "up"), ("web", "b", "down")]
    assert balancer.of_report({}) == []


@pytest.mark.parametrize(
    "golden, path",
    [("pair.haproxy.cfg", "/run/haproxy/admin.sock"), ("pair.redhat.haproxy.cfg", "/var/lib/haproxy/stats")],
)
def test_the_socket_is_the_one_of_the_configuration(golden, path):
    assert balancer.stats_socket((GOLDEN / golden).read_text()) == path
    assert balancer.stats_socket("global\n") == ""


@pytest.fixture
def listener(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(tmp_path / "sock"))
        server.listen()
        yield server


def test_haproxy_is_asked_for_its_servers_alone(listener):
    asked = []

    def answer():
        client = listener.accept()[0]
        asked.append(client.recv(100))
        client.sendall(STATISTICS.encode())
        client.close()

    thread = threading.Thread(target=answer)
    thread.start()
    assert balancer.ask(listener.getsockname()) == STATISTICS
    thread.join()
    assert asked == [b"show stat -1 4 -1\n"]


def test_a_hung_haproxy_and_one_without_a_socket_give_no_answer(listener, tmp_path):
    assert balancer.ask(listener.getsockname(), timeout=0.05) is None
    assert balancer.ask(str(tmp_path / "none")) is None


@pytest.mark.parametrize(
    "states, says",
    [
        (["down", "down"], True),
        (["down", "maint", "drain"], True),
        (["down", "up"], False),
        (["down", "late"], False),
        (["unchecked"], False),
        ([], False),
    ],
)
def test_a_service_is_unserved_if_none_of_its_servers_gets_connections(states, says):
    servers = [("other", "x", "up"), *(("web", f"s{number}", state) for number, state in enumerate(states))]
    sentence = f"No server of web is up (0 of {len(states)}), so its clients get no answer."
    assert balancer.unserved(servers) == ([sentence] if says else [])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "Permission denied",
        "# pxname,svname\nweb,a\n",
        "# pxname,svname,status\nweb\n",
        "a,b\n" + "x" * 200_000,
    ],
    ids=range(6),
)
def test_what_is_no_statistics_has_no_servers(text):
    assert balancer.of_statistics(text) == []


def test_a_row_without_the_state_of_its_check_is_taken_by_its_status():
    assert balancer.of_statistics("# pxname,svname,status,check_status\nweb,a,UP\n") == [("web", "a", "up")]
