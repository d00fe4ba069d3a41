# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks in a server's own protocol, and agents beside the servers: what is said of wrong values, and what follows."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.settings import PROTOCOLS
from ansible_collections.onprem.lb.plugins.module_utils._plan.forecast import servers as forecast
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.services import read_services
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines
from support.plans.clusters import cluster
from support.plans.pairs import pair
from support.rendering import haproxy
from support.talks import check_of

WRONG = [[], {}, ["GET"], {"a": 1}, 5, 1.5, True, "", " ", "{{ x }}", "a b", "a\nb", "a'b", 'a"b', "a#b", "ä", "a\\"]


def service(check, **more):
    servers = ["192.0.2.31", "192.0.2.32"]
    return {"name": "db", "port": 3306, "check": check, "servers": servers, **more}


def faults(check, **more):
    return read_services([service(check, **more)], "pair_services")[1]


def accepted(text, folder):
    """Have the installed HAProxy judge a file."""
    file = folder / "haproxy.cfg"
    file.write_text(text)
    tested = subprocess.run(["haproxy", "-c", "-f", file], check=False, capture_output=True, text=True)
    # The users and folders of the package may be missing.
    return tested.returncode == 0 or not [
        line for line in tested.stderr.splitlines() if "[ALERT]" in line and "parsing" in line
    ]


@pytest.mark.skipif(not shutil.which("haproxy"), reason="haproxy is not installed")
@pytest.mark.parametrize("mode", ["tcp", "http"])
def test_haproxy_accepts_each_check(tmp_path, mode):
    checks = [check_of(kind) for kind in PROTOCOLS]
    checks += [{"type": "smtp", "host": "lb.example"}, {"type": "http", "method": "HEAD"}]
    checks += [{"type": "https", "method": "OPTIONS", "host": "a.example", "steps": [{"method": "HEAD"}, {"port": 81}]}]
    checks += [{"type": "none"}, {"shutdown_sessions": True}]
    every = [
        service({**check, "agent": {"port": 9000 + at, "interval": 0.5}}, mode=mode, name=f"s{at}", port=80 + at)
        for at, check in enumerate(checks)
    ]
    text = haproxy(every)
    assert text.count("agent-check agent-port 9000 agent-inter 500ms") == 2  # the fallback's servers, too
    assert "option mysql-check user probe post-41\n" in text and "option smtpchk EHLO lb.example\n" in text
    assert accepted(text, tmp_path)


@pytest.mark.parametrize("value", WRONG)
@pytest.mark.parametrize("key", ["type", "method", "user", "agent", "host"])
def test_a_wrong_value_is_one_sentence_with_its_place(key, value):
    if key in ("user", "host") and value == "":
        return
    usual = {"type": "pgsql", "user": "probe"} if key == "user" else {"type": "http"}
    found = faults({**usual, key: value})
    if key == "agent" and value == {}:
        assert found == ["pair_services[0] (db).check.agent lacks 'port': add it."]
    elif key == "agent" and value == {"a": 1}:
        assert len(found) == 2
    else:
        assert len(found) == 1 and found[0].startswith(f"pair_services[0] (db).check.{key} is "), found


@pytest.mark.parametrize(
    "check, words",
    [
        ({"type": "mysql"}, "check.type is mysql, but user is empty: set user to one without a password."),
        ({"type": "pgsql", "user": ""}, "check.type is pgsql, but user is empty: set user to one without a password."),
        ({"type": "redis", "user": "a"}, "check.user is for a check of type mysql or pgsql, and this one is redis"),
        ({"type": "ldap", "path": "/up"}, "check.path is for a check of type http or https, and this one is ldap"),
        ({"type": "smtp", "method": "HEAD"}, "check.method is for a check of type http or https, and this one is smtp"),
        (
            {"type": "redis", "host": "a"},
            "check.host is for a check of type http or https or smtp, and this",
        ),
        ({"type": "smtp", "steps": [{"port": 26}]}, "check.type is smtp, but steps are set: leave one of them out."),
        ({"agent": {"port": 0}}, "check.agent.port is 0: a port from 1 to 65535 is required."),
        ({"agent": {"port": 1, "interval": 0}}, "check.agent.interval is 0: a number from 0.1 to 3600 seconds"),
        ({"agent": {"port": 1, "send": "x"}}, "check.agent has the unknown key 'send'"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(check, words):
    (found,) = faults(check)
    assert found.startswith(f"pair_services[0] (db).{words}"), found


def test_a_route_has_these_checks_too():
    routes = [{"name": "cache", "hosts": ["a.example"], "check": {"type": "redis"}, "servers": ["192.0.2.41"]}]
    assert "    option redis-check\n" in haproxy([service({}, routes=routes)])
    routes[0]["check"] = {"type": "mysql"}
    (found,) = faults({}, routes=routes)
    assert found.startswith("pair_services[0] (db).routes[0] (cache).check.type is mysql, but user is empty")


def test_the_agent_engine_refuses_an_agent_beside_a_server_and_names_the_mend():
    (found,) = agent.translate({"services": [service({"agent": {"port": 9999}})]})["faults"]
    assert found == ("agent_services (db).check.agent is set, which HAProxy alone asks: leave it out, or use HAProxy.")


@pytest.mark.parametrize("engine", [engines.NATIVE, engines.AGENT])
@pytest.mark.parametrize("kind", ["tcp", "http", *PROTOCOLS])
def test_a_check_that_asks_for_an_answer_sees_a_server_that_hangs(kind, engine):
    check = check_of(kind) if kind in PROTOCOLS else {"type": kind}
    (read,) = read_services([service(check)], "pair_services")[0]
    lost = {loss.event: loss for loss in forecast.losses_of(read, engine, forecast.Timeouts())}
    assert (lost[forecast.HANGS].window == forecast.FOR_GOOD) == (kind == "tcp")


def test_a_step_has_the_methods_of_its_check_in_both_engines():
    steps = [{"port": 81}, {"port": 82, "method": "GET"}]
    given = service({"type": "http", "method": "HEAD", "steps": steps})
    assert "send meth HEAD" in haproxy([given]) and "send meth GET" in haproxy([given])
    (written,) = agent.translate({"services": [given]})["proxy"]["services"]
    assert [step.get("method") for step in written["check"]["steps"]] == [None, "GET"]
    assert written["check"]["method"] == "HEAD"


def test_a_pair_of_the_agent_has_them_but_not_agents():
    (bare,) = layout.plan(pair(engine="agent", services=[service({"agent": {"port": 9}})])).faults[:1]
    assert "check.agent is set" in bare and "pair_services" in bare
    assert layout.plan(pair(engine="agent", services=[service(check_of("mysql"))])).faults == []


@pytest.mark.parametrize(
    "given, words",
    [
        ({"agent": "x"}, "ipi_server_check.agent is 'x': a mapping with the keys port, interval is required."),
        ({"agent": {"port": "a"}}, "ipi_server_check.agent.port is 'a': a port from 1 to 65535 is required."),
        ({"method": "POST"}, "ipi_server_check.method is 'POST': one of GET, HEAD, OPTIONS is required."),
    ],
)
def test_the_check_of_a_clusters_api_says_it_in_its_own_name(given, words):
    found = ipi.plan(cluster("master-0", "master-1", "master-2", server_check=given)).faults
    assert found == [words]


def test_direct_return_refuses_agents():
    nodes = ("master-0", "master-1", "master-2")
    (found,) = ipi.plan(cluster(*nodes, plane="direct", server_check={"agent": {"port": 9}})).faults
    assert found.startswith("ipi_server_check.agent is set, which only a proxy can do: leave it out, or set ipi_plane")
