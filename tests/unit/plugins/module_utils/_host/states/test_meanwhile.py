# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a balancer listens on the way back to a state."""

from __future__ import annotations

import json

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.states import (
    arming,
    changes,
    manager,
    meanwhile,
    restoring,
    snapshot,
    store,
    undo,
    undoing,
)
from support.states import CONFIGS, RUNS, STOPPED, Systemd, file, native

HAPROXY = """\
# Managed by Ansible, onprem.lb.haproxy: changes made here are lost.

global
    stats socket /run/haproxy.sock mode 660
    stats socket 127.0.0.1:{answers} level user

frontend masters
    mode tcp
    bind *:{api}
    bind [::]:{api} v6only
    default_backend masters

backend masters
    server master1 192.0.2.11:6443

listen haproxy_ready
    mode http
    bind *:{ready}
    monitor-uri /readyz
"""
OLD, NEW = {"answers": 9440, "api": 9445, "ready": 9444}, {"answers": 9441, "api": 9500, "ready": 9501}
PROXY = "/etc/onprem-lb-agent/proxy.json"
REDIRECT = "/etc/onprem-lb/api-redirect.nft"


def on_haproxy(ports, asked="", **units):
    here = native(asked=f"port {asked or ports['ready']}\n", **units)
    other = [each for each in here.files if each.path != CONFIGS["haproxy"]]
    return here._replace(
        files=[file(CONFIGS["haproxy"], HAPROXY.format(**ports)), *other, file(REDIRECT, f"dnat {ports['api']}")]
    )


def on_agent(ports):
    services = [{"name": "masters", "bind": ["*"], "port": ports["api"]}]
    monitors = [
        {"name": "answers", "bind": ["127.0.0.1"], "port": ports["answers"], "at_least": {}},
        {"name": "ready", "bind": ["*"], "port": ports["ready"], "at_least": {"masters": 1}},
    ]
    units = {"onprem-lb-proxy.service": RUNS, "onprem-lb-vrrp.service": RUNS}
    text = json.dumps({"services": services, "monitors": monitors})
    return native()._replace(files=[file(PROXY, text)], units=units)


def listens(member):
    """The ports at which the balancer of a member listens, each as often as it is bound."""
    text = next(each.content for each in member.files if each.path in (CONFIGS["haproxy"], PROXY)).decode()
    if text.startswith("{"):
        found = json.loads(text)
        return sorted(each["port"] for each in [*found["services"], *found["monitors"]])
    words = [line.split() for line in text.splitlines()]
    bound = [line[1] if line[0] == "bind" else line[2] for line in words if line and line[0] in ("bind", "stats")]
    return sorted({int(each.rpartition(":")[2]) for each in bound if ":" in each})


@pytest.mark.parametrize("engine", [on_haproxy, on_agent])
@pytest.mark.parametrize("port", ["answers", "api", "ready"])
def test_a_port_that_changes_is_listened_at_until_whoever_asks_there_has_changed(engine, port):
    now, then = engine({**OLD, port: NEW[port]}), engine(OLD)
    first, last = meanwhile.steps(now, then)
    assert listens(first) == sorted([*OLD.values(), NEW[port]]) and last == then


def test_a_service_keeps_its_servers_and_options_at_both_ports():
    first, _last = meanwhile.steps(on_haproxy(NEW), on_haproxy(OLD))
    text = first.files[0].content.decode()
    assert "frontend masters\n    bind *:9500\n    bind [::]:9500 v6only\n    mode tcp\n    bind *:9445\n" in text
    first, _last = meanwhile.steps(on_agent(NEW), on_agent(OLD))
    assert [each["name"] for each in json.loads(first.files[0].content)["services"]] == ["masters", "masters-9500"]


def test_a_monitor_that_the_state_lacks_goes_on_answering():
    then = on_haproxy(OLD)
    text = then.files[0].content.decode().partition("\nlisten")[0]
    first, _last = meanwhile.steps(
        on_haproxy(OLD), then._replace(files=[file(CONFIGS["haproxy"], text), *then.files[1:]])
    )
    assert listens(first) == sorted(OLD.values())


def test_each_monitor_answers_at_its_own_path():
    """Another preset has both another port and another path."""
    now = on_haproxy(NEW)
    text = now.files[0].content.decode().replace("/readyz", "/healthz")
    first, _last = meanwhile.steps(
        now._replace(files=[file(CONFIGS["haproxy"], text), *now.files[1:]]), on_haproxy(OLD)
    )
    monitors = first.files[0].content.decode().split("\nlisten haproxy_ready")[1:]
    assert [each.split()[-3:] for each in monitors] == [
        ["*:9444", "monitor-uri", "/readyz"],
        ["*:9501", "monitor-uri", "/healthz"],
    ]


@pytest.mark.parametrize("engine", [on_haproxy, on_agent])
def test_where_every_port_stays_there_is_one_step(engine):
    assert meanwhile.steps(engine(OLD), engine(OLD)) == [engine(OLD)]


@pytest.mark.parametrize("text", ["{", "\udcff", '{"services": [{"port": 1}]}'])
def test_a_configuration_that_is_damaged_is_merged_with_nothing(text):
    damaged = on_agent(OLD)._replace(files=[file(PROXY)._replace(content=text.encode(errors="surrogateescape"))])
    assert meanwhile.steps(damaged, on_agent(OLD)) == [on_agent(OLD)]


def test_a_balancer_that_does_not_run_is_asked_by_nobody():
    assert meanwhile.steps(on_haproxy(NEW, haproxy=STOPPED), on_haproxy(OLD)) == [on_haproxy(OLD)]


THEN = on_haproxy(OLD)._replace(openings=["tcp 9445 from anywhere"])


class Host:
    """A member that records at which ports its balancer listens after each command."""

    def __init__(self, monkeypatch, now):
        self.now, self.systemd, self.events = now, Systemd(haproxy=True, keepalived=True), []
        self.listens = listens(now)
        monkeypatch.setattr(snapshot, "take", lambda *_given: self.now)
        monkeypatch.setattr(restoring, "files", self._files)
        monkeypatch.setattr(restoring, "openings", lambda _host, then: self._open(then.openings))
        monkeypatch.setattr(restoring, "current_openings", lambda _host: self.now.openings)
        monkeypatch.setattr(store, "load", lambda wanted: store.State(wanted, "a run", THEN))

    def _open(self, openings):
        self.now = self.now._replace(openings=openings)
        self.events.append(("openings", sorted(openings)))

    def _files(self, now, then):
        self.now = self.now._replace(files=then.files)
        return changes.of_files(now, then).paths

    def run_command(self, command, **options):
        if command[1] != "show":
            self.listens = listens(self.now) if command[-1] == "haproxy.service" else self.listens
            self.events.append((" ".join(command), self.listens))
        return self.systemd.run_command(command, **options)

    get_bin_path = staticmethod(lambda _name: "")


def undone(host):
    due = arming.Due("20260131T120000Z", "20260131T120000Z", undoing.ALONE, 40, 5, arming.boot_id())
    known = {each.path: [undo.records.checksum(each.content)] for each in host.now.files}
    undo.Undo(due, on_haproxy(OLD), host, say=lambda _text: None, written=known).go(lambda: None)


def rolled_back(host):
    manager.restore(manager.Member(host.run_command, host, CONFIGS, []), "20260131T120000Z", dry=False)


@pytest.mark.parametrize("way", [undone, rolled_back])
def test_whoever_asks_changes_while_both_ports_answer_and_the_balancer_drops_one_last(monkeypatch, way):
    host = Host(monkeypatch, on_haproxy(NEW))
    way(host)
    loaded = [event for event in host.events if event[0] != "openings"]
    both, old = sorted([*OLD.values(), *NEW.values()]), sorted(OLD.values())
    assert loaded == [
        ("systemctl reload haproxy.service", both),
        (f"nft --file {REDIRECT}", both),
        ("systemctl reload keepalived.service", both),
        ("systemctl reload haproxy.service", old),
    ]


def test_the_firewall_opens_before_anybody_is_led_there_and_closes_last(monkeypatch):
    host = Host(monkeypatch, on_haproxy(NEW)._replace(openings=["tcp 9500 from anywhere"]))
    rolled_back(host)
    names = [event[0] for event in host.events]
    opened, closed = (event for event in host.events if event[0] == "openings")
    assert opened == ("openings", ["tcp 9445 from anywhere", "tcp 9500 from anywhere"])
    assert host.events.index(opened) < names.index(f"nft --file {REDIRECT}")
    assert host.events[-1] == closed == ("openings", THEN.openings)
