# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services and routes without servers: what is said of wrong ones, and that all that counts servers takes them."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.drill import lost_servers
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import servers as forecast
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.services import read_services
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout
from support.plans.pairs import pair
from support.rendering import haproxy, haproxy_model

PLACE = "pair_services[0] (gone)"
GONE = {"status": 410}
NO_URLS = ("x", "//x", "ftp://x", "https://", "/a b", "/a\nb", "/ä", '/"', "/{{ x }}", "/\\", 5, [], {"a": 1})
AWAY = {"status": 301, "prefix": "https://new.example"}


def service(**more):
    return {"name": "gone", "port": 80, "mode": "http", "return": GONE, **more}


def faults(answer, **more):
    return read_services([service(**{"return": answer, **more})], "pair_services")[1]


@pytest.mark.parametrize("servers", [{}, {"servers": []}, {"servers": None}])
def test_it_is_one_without_servers_and_without_a_fallback(servers):
    assert faults(GONE, **servers) == []
    text = haproxy([service(**servers)])
    assert text.count("backend gone\n    mode http\n    http-request return status 410\n") == 1
    assert "gone-fallback" not in text and "balance" not in text


@pytest.mark.parametrize(
    "answer, words",
    [
        ([], ".return is []: a mapping with the keys status, location, prefix, content, content_type is required."),
        ("x", ".return is 'x': a mapping with the keys"),
        ({}, ".return lacks 'status': add it."),
        ({"status": "x"}, ".return.status is 'x': a status from 200 to 299 or 400 to 599 is required, or 301, 302,"),
        ({"status": 304}, ".return.status is 304: "),
        ({"status": 100}, ".return.status is 100: "),
        ({"status": [200]}, ".return.status is [200]: "),
        ({"status": 301}, ".return.status is 301, which leads elsewhere: set either location or prefix."),
        ({**AWAY, "location": "/x"}, ".return.status is 301, which leads elsewhere: set either location or prefix."),
        ({**AWAY, "status": 200}, ".return.prefix is set, and status 200 leads nowhere: set status to one of 301,"),
        ({**AWAY, "content": "x"}, ".return.content is set, and status 301 has none: leave it out."),
        ({"status": 204, "content": "x"}, ".return.content is set, and status 204 has none: leave it out."),
        *(({"status": 301, "location": url}, ".return.location is ") for url in NO_URLS),
        ({"status": 301, "location": "/" * 3000}, ".return.location is "),
        *(({"status": 200, "content": text}, ".return.content is ") for text in (5, [], {}, "\0", "a\rb", "x" * 8001)),
        *(
            ({"status": 200, "content_type": text}, ".return.content_type is ")
            for text in ("html", "text/html\n", "text/html; x", "{{ x }}/y", 5, [], "a'b/c", "")
        ),
        ({"status": 200, "text": "x"}, ".return has the unknown key 'text'"),
    ],
)
def test_a_wrong_one_is_one_sentence_with_its_place(answer, words):
    (found,) = faults(answer)
    assert found.startswith(f"{PLACE}{words}"), found


def test_servers_and_an_answer_exclude_each_other():
    (found,) = faults(GONE, servers=["192.0.2.31"])
    assert found == f"{PLACE} has servers and return, and one of them answers: leave the other one out."
    (found,) = read_services([{"name": "gone", "port": 80}], "pair_services")[1]
    assert found == f"{PLACE} lacks 'servers': add it."


@pytest.mark.parametrize(
    "key, value",
    [("balance", "source"), ("check", {"type": "http"}), ("send_proxy", True), ("sticky", {"by": "source"})],
)
def test_what_is_for_servers_is_refused_beside_an_answer(key, value):
    (found,) = faults(GONE, **{key: value})
    assert found == f"{PLACE}.{key} is for servers, and return answers without them: leave it out."
    routes = [{"name": "old", "hosts": ["old.example"], "return": AWAY, key: value}]
    (found,) = faults(None, servers=["192.0.2.31"], routes=routes)
    assert found == f"{PLACE}.routes[0] (old).{key} is for servers, and return answers without them: leave it out."


@pytest.mark.parametrize(
    "key, value", [("balance", "roundrobin"), ("check", {}), ("check", None), ("send_proxy", False)]
)
def test_an_explicit_default_does_no_harm_beside_an_answer(key, value):
    assert faults(GONE, **{key: value}) == []


def test_mode_tcp_reads_no_request():
    (found,) = faults(GONE, mode="tcp")
    assert found == f"{PLACE}.return needs mode http, and {PLACE}.mode is 'tcp': set mode to http."
    route = {"name": "old", "hosts": ["old.example"], "return": AWAY}
    (found,) = faults(None, mode="tcp", servers=["192.0.2.31"], routes=[route])
    assert found.startswith(f"{PLACE}.routes[0] (old).return needs mode http")
    (found,) = faults(GONE, mode="udp")
    assert found.startswith(f"{PLACE}.mode is 'udp'")


def test_the_agent_refuses_it_in_one_sentence_with_the_mend():
    (found,) = agent.translate({"services": [service()]})["faults"]
    assert found == "agent_services (gone).return is set, and the agent answers no request itself: " + (
        "leave it out, or use HAProxy."
    )
    found = layout.plan(pair(engine="agent", services=[service()])).faults
    assert [each for each in found if "pair_services (gone).return is set" in each] == found != []


def test_nothing_counts_its_servers():
    monitors = [{"name": "ready", "port": 8404, "at_least": {"gone": 1}}]
    (found,) = haproxy_model([service()], monitors=monitors)["faults"]
    assert found.startswith("haproxy_monitors[0] (ready).at_least requires servers of gone, which answers without")
    plan = layout.plan(pair(services=[service(), {"name": "web", "port": 81, "servers": ["192.0.2.31"]}]))
    assert plan.faults == []
    assert not any("gone" in line for line in forecast.of_plan(plan, [{"name": name} for name in plan.members]))


def test_follow_cannot_have_it():
    settings = {"follow": True, "follow_kubeconfig": "/etc/kubeconfig", "follow_services": ["gone"]}
    found = layout.plan(pair(services=[service()], **settings)).faults
    assert any("pair_follow_services names gone, whose servers need addresses" in fault for fault in found)


def test_a_drill_takes_no_server_of_it_away():
    assert lost_servers._unfit({"direct": None}, {**read_services([service()], "x")[0][0], "up": ""}) == (
        "gone has no second active server"
    )


def test_a_name_with_fallback_is_free_beside_it():
    others = [service(), {"name": "gone-fallback", "port": 81, "servers": ["192.0.2.31"]}]
    assert haproxy_model(others)["faults"] == []


def test_percent_signs_quotes_and_line_ends_are_as_they_are_written():
    text = haproxy([service(**{"return": {"status": 302, "location": "/a%20b'c"}})])
    assert "http-request redirect location '/a%%20b'\"'\"'c' code 302" in text
    text = haproxy([service(**{"return": {"status": 200, "content": "a\n\nb\t#c"}})])
    assert "string a\\n\\nb\\t'#c'" in text
