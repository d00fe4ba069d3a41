# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resolver of a node: dnsmasq with the configuration of the role, as the host's programs ask it."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import subprocess

import dns.exception
import dns.message
import dns.query
import dns.rcode
import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import hosts
from ansible_collections.onprem.lb.plugins.module_utils._agent.resolver import files
from ansible_collections.onprem.lb.plugins.module_utils._plan.dns import resolver
from support.name_server import NameServer
from support.netns.links import temporary_link
from support.netns.namespaces import inside
from support.waiting import LIMIT_S, until

DOMAIN = "lab.example.com"
CLUSTER = {
    "layout": "cluster",
    "name": "lab",
    "domain": "example.com",
    "api_vips": ["192.0.2.10"],
    "ingress_vips": ["192.0.2.20"],
    "nodes": {"master-0": "192.0.2.31"},
}
HOST = {
    "addresses": ["192.0.2.31"],
    "source": "192.0.2.31",
    "port_53": [],
    "resolved": False,
    "networkmanager": False,
    "resolv_conf": {"text": "nameserver 192.0.2.1\n"},
    "upstreams": {},
    "resolved_config": "",
}
EMPTY = (dns.rcode.NOERROR, [])
OTHER = "198.51.100.7"  # what the upstream has for every name
UPSTREAM_TTL = 5
# Of nodes and hosts, good ones and such as somebody with a node's rights might register.
FOREIGN = ("dev", "org", "com", "local", "registry.k8s.io", "example.com", "lab.example.com", "a.b.lab.example.com")
NAMES = (*FOREIGN, "master-0.lab.example.com", "m1", "m2.example.com", "api", "lab", "apps", "x" * 70, "net.example")
QUESTIONS = ("go.dev", "a.org", "www.example.com", "lab.example.com", "x.lab.example.com", "k8s.io", "m1.example.com")


@contextlib.contextmanager
def running(namespace, tmp_path, upstream="198.51.100.1", answering=None):
    """Yield a function that asks a resolver, and its process.

    :param upstream: as dnsmasq writes it; nobody answers at the default
    :param answering: what a resolver has answered before; the VIPs are about to change then
    """
    found = resolver.plan({"layout": CLUSTER}, {**HOST, "answering": answering or {}})
    assert found.faults == []
    config_text, names = (
        (found.on_the_way["config"], found.on_the_way["names"]) if answering else (found.config, found.names)
    )
    texts = {resolver.CONFIG: config_text, resolver.NAMES: names, resolver.HOSTS: found.hosts}
    for path, text in {**texts, resolver.LOCAL: found.local}.items():
        (tmp_path / path.rpartition("/")[2]).write_text(text)
    config = tmp_path / "dnsmasq.conf"
    text = config.read_text().replace(f"resolv-file={resolver.ASKED}", f"no-resolv\nserver={upstream}")
    config.write_text(text.replace(resolver.FOLDER, str(tmp_path)))
    # AppArmor confines it by its path, to folders which a test may not use.
    program = shutil.copy(shutil.which("dnsmasq", path="/usr/sbin:/usr/bin"), tmp_path / "dnsmasq")
    command = ["ip", "netns", "exec", namespace, program, "--keep-in-foreground", "--user=root"]

    def ask(question, kind="A", timeout=LIMIT_S):
        with inside(namespace):
            reply = dns.query.udp(dns.message.make_query(question, kind), "127.0.0.1", timeout=timeout)
        ttls = {each.ttl for each in reply.answer}
        assert {each for each in ttls if each > UPSTREAM_TTL} <= {30}
        return reply.rcode(), sorted(str(data) for each in reply.answer for data in each)

    with subprocess.Popen([*command, "--pid-file", "--log-facility=-", f"--conf-file={config}"]) as process:
        try:
            until(lambda: answers(ask))
            yield ask, process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resolver")
    with temporary_link() as link, running(link.client.namespace, folder) as (found, _dnsmasq):
        yield found


def answers(ask):
    with contextlib.suppress(OSError, dns.exception.Timeout):
        return bool(ask("api.lab.example.com", timeout=0.2))
    return False


@pytest.mark.parametrize(
    "question, kind, answer",
    [
        ("api.lab.example.com", "A", (0, ["192.0.2.10"])),
        ("API-INT.lab.example.com", "A", (0, ["192.0.2.10"])),
        ("a.b.apps.lab.example.com", "A", (0, ["192.0.2.20"])),
        ("master-0.lab.example.com", "A", (0, ["192.0.2.31"])),
        ("master-0", "A", (0, ["192.0.2.31"])),
        ("31.2.0.192.in-addr.arpa", "PTR", (0, ["master-0.lab.example.com."])),
        *((name, "AAAA", EMPTY) for name in ("api.lab.example.com", "x.apps.lab.example.com", "master-0")),
        ("master-0.lab.example.com", "AAAA", EMPTY),
        ("api.lab.example.com", "HTTPS", EMPTY),
    ],
)
def test_the_names_of_the_cluster_are_answered_although_no_upstream_is(ask, question, kind, answer):
    assert ask(question, kind) == answer


@pytest.mark.parametrize("name", ["xapi.lab.example.com", "lab.example.com", "apps.example.com"])
def test_other_names_are_for_the_upstream(ask, name):
    """Which does not answer, or cannot be reached."""
    with contextlib.suppress(dns.exception.Timeout):
        assert ask(name, timeout=1)[0] in (dns.rcode.REFUSED, dns.rcode.SERVFAIL)


def test_a_node_that_has_moved_has_its_address_of_now_after_a_reload(link, tmp_path):
    nodes = {"master-0": ["192.0.2.77"], "master-1": ["2001:db8::1"]}
    with running(link.client.namespace, tmp_path) as (ask, process):
        (tmp_path / "local").write_text(hosts.local(nodes, "lab.example.com"))
        (tmp_path / "hosts").write_text(hosts.hosts(nodes, "lab.example.com"))
        process.send_signal(signal.SIGHUP)
        until(lambda: ask("master-0.lab.example.com") == (0, ["192.0.2.77"]))
        assert ask("master-1.lab.example.com", "AAAA") == (0, ["2001:db8::1"])
        assert ask("master-1.lab.example.com", "A") == EMPTY


def test_while_vips_change_dnsmasq_answers_both_and_nothing_else_changes(link, tmp_path):
    before = {**CLUSTER, "api_vips": ["192.0.2.110", "2001:db8::110"], "ingress_vips": ["192.0.2.120"]}
    with running(link.client.namespace, tmp_path, answering=answering(before)) as (ask, _process):
        both = ["192.0.2.10", "192.0.2.110"]
        assert ask("api.lab.example.com") == ask("api-int.lab.example.com") == (0, both)
        assert ask("api.lab.example.com", "AAAA") == (0, ["2001:db8::110"])
        assert ask("x.apps.lab.example.com") == (0, ["192.0.2.120", "192.0.2.20"])
        assert ask("x.apps.lab.example.com", "AAAA") == EMPTY


def answering(layout):
    """What a resolver answers, as a host tells it."""
    found = resolver.plan({"layout": layout}, HOST)
    return {"config": found.config, "names": found.names}


def test_while_names_change_every_lookup_is_answered_at_its_first_attempt(link, tmp_path):
    """A name has the address of before, both, or that of the plan, and none of them needs another start of dnsmasq."""
    changed = {**CLUSTER, "api_vips": ["192.0.2.110"]}
    way = resolver.plan({"layout": changed}, {**HOST, "answering": answering(CLUSTER)}).on_the_way
    steps = [way, answering(changed), answering(CLUSTER)]
    expected = [["192.0.2.10"], ["192.0.2.10", "192.0.2.110"], ["192.0.2.110"]]
    with running(link.client.namespace, tmp_path) as (ask, process):
        heard = []
        for step in steps * 5:
            assert step["config"] == answering(CLUSTER)["config"]
            files.write(str(tmp_path / "names"), step["names"])
            process.send_signal(signal.SIGHUP)
            heard += [ask("api-int.lab.example.com") for _lookup in range(20)]
            assert ask("x.apps.lab.example.com") == (0, ["192.0.2.20"])
    assert {rcode for rcode, _ips in heard} == {0}
    assert [ips for ips in expected if (0, ips) not in heard] == []
    assert [ips for _rcode, ips in heard if ips not in expected] == []


def own(nodes):
    """Return the names that belong to the cluster, each with what is below it, and the addresses of those with one."""
    fixed = {"api.lab.example.com": "192.0.2.10", "api-int.lab.example.com": "192.0.2.10", "apps.lab.example.com": None}
    return {**fixed, **{f"{hosts.label(name, DOMAIN)}.{DOMAIN}": ips[0] for name, ips in nodes.items()}}


def test_for_any_set_of_names_everything_else_is_answered_as_by_the_upstream(tmp_path):
    chance = random.Random(48)
    with temporary_link() as link, inside(link.client.namespace):
        upstream = NameServer(OTHER)
        upstream.up.set()
        try:
            place = upstream.place.replace(":", "#")
            with running(link.client.namespace, tmp_path, place) as (ask, process):
                for _round in range(12):
                    given = chance.sample(NAMES, chance.randint(1, len(NAMES)))
                    judge(ask, process, tmp_path, {name: [f"192.0.2.{at + 40}"] for at, name in enumerate(given)})
        finally:
            upstream.close()


def judge(ask, process, folder, nodes):
    """Have the resolver read these names, and ask it for them, for what is above and below them, and for others."""
    sign = f"sign{nodes}".encode().hex()[-40:]
    (folder / "local").write_text(hosts.local(nodes, DOMAIN))
    (folder / "hosts").write_text(f"{hosts.hosts(nodes, DOMAIN)}203.0.113.1 {sign}.{DOMAIN}\n")
    process.send_signal(signal.SIGHUP)
    until(lambda: ask(f"{sign}.{DOMAIN}")[1] == ["203.0.113.1"])
    named = {name: ips for name, ips in nodes.items() if not hosts.refusal(name, DOMAIN)}
    ours = own(named)
    for name in [each for each in NAMES if len(each) < 64]:
        for question in {name, f"x.{name}", f"{name}.{DOMAIN}", f"{name}.example.com", *QUESTIONS}:
            whose = next((each for each in ours if f".{question}".endswith(f".{each}")), "")
            if not whose and "." in question:
                assert ask(question) == (0, [OTHER]), (question, nodes)
            elif question in ours and ours[question]:
                assert ask(question) == (0, [ours[question]]), (question, nodes)
