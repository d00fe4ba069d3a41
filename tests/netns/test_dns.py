# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The DNS records in real servers: named, which nsupdate fills, and dnsmasq."""

from __future__ import annotations

import contextlib
import shutil
import subprocess

import dns.message
import dns.query
import dns.rcode
import dns.reversename
import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.dns import layouts
from support.netns.namespaces import inside
from support.waiting import LIMIT_S, until

MASTERS = ["192.0.2.31", "192.0.2.32"]
CLUSTER = {
    "layout": "cluster",
    "name": "lab",
    "domain": "example.com",
    "api_vips": ["192.0.2.10/24", "2001:db8::10/64"],
    "ingress_vips": ["192.0.2.20", "192.0.2.21", {"address": "192.0.2.22", "name": "shard1", "members": ["w1", "w2"]}],
    "nodes": {"master-0": MASTERS[0], "master-1": MASTERS[1]},
    "etcd": MASTERS,
    "bootstrap": "192.0.2.30",
}
PAIR = {
    "layout": "pair",
    "domain": "upi.example.com",
    "vips": ["192.0.2.110"],
    "members": {"lb1": "192.0.2.111", "lb2": "192.0.2.112"},
    "api": True,
}
ANSWERS = {
    ("api.lab.example.com.", "A"): ["192.0.2.10"],
    ("api-int.lab.example.com.", "AAAA"): ["2001:db8::10"],
    ("x.apps.lab.example.com.", "A"): ["192.0.2.20", "192.0.2.21"],
    ("a.b.apps.lab.example.com.", "A"): ["192.0.2.20", "192.0.2.21"],
    ("x.apps.lab.example.com.", "AAAA"): [],
    ("x.shard1.lab.example.com.", "A"): ["192.0.2.22"],
    ("bootstrap.lab.example.com.", "A"): ["192.0.2.30"],
    ("master-1.lab.example.com.", "A"): ["192.0.2.32"],
    ("etcd-1.lab.example.com.", "A"): ["192.0.2.32"],
    ("_etcd-server-ssl._tcp.lab.example.com.", "SRV"): [
        "0 10 2380 etcd-0.lab.example.com.",
        "0 10 2380 etcd-1.lab.example.com.",
    ],
    ("api.upi.example.com.", "A"): ["192.0.2.110"],
    ("x.apps.upi.example.com.", "A"): ["192.0.2.110"],
    ("haproxy-1.upi.example.com.", "A"): ["192.0.2.112"],
}
POINTERS = {
    "192.0.2.10": ["api-int.lab.example.com.", "api.lab.example.com."],
    "2001:db8::10": ["api-int.lab.example.com.", "api.lab.example.com."],
    "192.0.2.30": ["bootstrap.lab.example.com."],
    "192.0.2.110": ["api-int.upi.example.com.", "api.upi.example.com."],
    "192.0.2.20": [],
}
ANSWERS.update({(str(dns.reversename.from_address(ip)), "PTR"): names for ip, names in POINTERS.items()})

REVERSE = ("2.0.192.in-addr.arpa", "0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa")
FORWARD = ("lab.example.com", "upi.example.com")
SERVER = "127.0.0.1"


@pytest.fixture
def started(link, tmp_path):
    """Return a function that starts a server in a namespace and waits until it answers."""
    namespace = link.client.namespace
    with contextlib.ExitStack() as stack:

        def start(name, port, *arguments):
            # AppArmor confines these programs by their path, to folders which a test may not use.
            program = shutil.copy(shutil.which(name, path="/usr/sbin:/usr/bin"), tmp_path / name)
            log = stack.enter_context(open(tmp_path / f"{name}.log", "wb"))
            command = ["ip", "netns", "exec", namespace, program, *arguments]
            process = stack.enter_context(subprocess.Popen(command, stdout=log, stderr=log))
            stack.callback(process.kill)
            until(lambda: answers(namespace, port), f"{name} does not answer: {tmp_path / name}.log")
            return lambda question, kind: ask(namespace, port, question, kind)

        yield start


def answers(namespace, port):
    try:
        ask(namespace, port, "example.com.", "SOA", timeout=0.2)
    except (OSError, dns.exception.Timeout):
        return False
    return True


def ask(namespace, port, question, kind, timeout=LIMIT_S):
    """Return the data that a server has for a name, without the names that a CNAME passes by."""
    with inside(namespace):
        answer = dns.query.udp(dns.message.make_query(question, kind), SERVER, timeout=timeout, port=port)
    return sorted(str(data) for found in answer.answer for data in found)


def start_named(started, folder, zones, refusing=(), records=None):
    """Start named with zones that are empty but for the given records; those below another one are delegated by it."""
    for zone in zones:
        lines = ["$TTL 60", "@ SOA ns h 1 60 60 60 60", "@ NS ns", f"ns A {SERVER}"]
        lines += [f"{other}. NS ns.{other}." for other in zones if other.endswith(f".{zone}")]
        (folder / zone).write_text("\n".join([*lines, (records or {}).get(f"{zone}.", "")]))
    statements = [
        f'options {{ directory "{folder}"; pid-file none; session-keyfile "{folder}/key"; recursion no;'
        f" listen-on {{ {SERVER}; }}; listen-on-v6 {{ none; }}; dnssec-validation no; check-names primary ignore; }};",
        "controls {};",
    ]
    for zone in zones:
        allowed = "none" if zone in refusing else "any"
        statements.append(f'zone "{zone}" {{ type primary; file "{zone}"; allow-update {{ {allowed}; }}; }};')
    (folder / "named.conf").write_text("\n".join([*statements, ""]))
    asking = started("named", 53, "-g", "-c", folder / "named.conf")
    until(lambda: all(asking(f"{zone}.", "SOA") for zone in zones), "named answers, and has not loaded its zones")
    return asking


def nsupdate(link, script):
    return subprocess.run(
        ["ip", "netns", "exec", link.client.namespace, "nsupdate"],
        input=f"server {SERVER}\n{script}",
        capture_output=True,
        text=True,
        check=False,
    )


def assert_complete(ask_server):
    assert {question: ask_server(*question) for question in ANSWERS} == ANSWERS


@pytest.mark.parametrize("cut", [(), ("apps.lab.example.com", "_tcp.lab.example.com", "shard1.lab.example.com")])
def test_nsupdate_puts_every_name_into_its_zone_wherever_the_zones_are_cut(link, started, tmp_path, cut):
    ask_named = start_named(started, tmp_path, (*FORWARD, *REVERSE, *cut))
    script = layouts.describe([CLUSTER, PAIR])["nsupdate"]
    before = (
        "update add api.lab.example.com. 60 CNAME old.\nsend\nupdate add api.upi.example.com. 60 A 192.0.2.9\nsend\n"
    )
    nsupdate(link, before)
    for _time in (1, 2):
        done = nsupdate(link, script)
        assert (done.returncode, done.stderr) == (0, "")
        assert_complete(ask_named)


def test_nsupdate_names_the_zone_that_a_server_refuses_and_updates_the_others(link, started, tmp_path):
    ask_named = start_named(started, tmp_path, (*FORWARD, *REVERSE), refusing=REVERSE[:1])
    done = nsupdate(link, layouts.describe(CLUSTER)["nsupdate"])
    assert done.returncode != 0 and "update failed: REFUSED" in done.stderr
    answers = [answer for answer in done.stdout.split("Answer:") if "status: REFUSED" in answer]
    assert len(answers) == 1 and f";{REVERSE[0]}." in answers[0]
    assert ask_named("api.lab.example.com.", "A") == ["192.0.2.10"]
    assert ask_named(str(dns.reversename.from_address("2001:db8::10")), "PTR") == POINTERS["2001:db8::10"]


def test_the_lines_of_the_zone_files_mean_the_same_to_named(started, tmp_path):
    records = layouts.describe([CLUSTER, PAIR])["zones"]
    assert_complete(start_named(started, tmp_path, (*FORWARD, *REVERSE), records=records))


def test_dnsmasq_answers_the_same(started, tmp_path):
    (tmp_path / "dnsmasq.conf").write_text(layouts.describe([CLUSTER, PAIR])["dnsmasq"])
    ask_dnsmasq = started(
        "dnsmasq",
        5354,
        *("--keep-in-foreground", "--no-resolv", "--no-hosts", "--user=root", "--pid-file", "--port=5354"),
        *(f"--conf-file={tmp_path / 'dnsmasq.conf'}", f"--listen-address={SERVER}", "--bind-interfaces"),
    )
    assert_complete(ask_dnsmasq)
