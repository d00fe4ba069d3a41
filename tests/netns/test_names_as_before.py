# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""With its own resolver a host resolves whatever it resolved without it, by the same servers, asked in their order.

Real dnsmasq and the host's libc, against name servers that know a name or not, fail, refuse, are late or silent.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess

import dns.exception
import dns.message
import dns.query
import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.resolver import files
from ansible_collections.onprem.lb.plugins.module_utils._plan.dns import resolver
from support.netns import name_servers
from support.netns.links import temporary_link
from support.netns.namespaces import inside
from support.waiting import until

CLUSTER = {"layout": "cluster", "name": "lab", "domain": "example.com", "api_vips": ["192.0.2.10"]}
CLUSTER["ingress_vips"] = ["192.0.2.20"]
HOST = {
    "addresses": [name_servers.OWN],
    "source": name_servers.OWN,
    "port_53": [],
    "resolved": False,
    "networkmanager": False,
    "upstreams": {},
    "resolved_config": "",
}
SAYS = [("knows", 0), ("knows", 0.3), ("knows", 2), ("knows", 3.5), ("unknown", 0), ("unknown", 1), ("nothing", 0)]
SAYS += [("fails", 0), ("refuses", 0), ("silent", 0)]
# What was found wrong: by N2 the fastest one was believed, by N4 a late one was not waited for.
KNOWN = [
    [("knows", 0.3), ("unknown", 0)],
    [("knows", 3.5)],
    [("knows", 3.5), ("unknown", 0)],
    [("silent", 0), ("knows", 0)],
    [("silent", 0), ("silent", 0), ("knows", 0)],
    [("fails", 0), ("knows", 3.5)],
    [("closed", 0), ("knows", 0)],
]
FAIL = [("fails", 0), ("refuses", 0)]
FAILING = [[*each] for count in (1, 2, 3) for each in itertools.product(FAIL, repeat=count)]


def cases(seed, count):
    """Return servers of which one at least answers: without one dnsmasq says nothing, and nothing was resolved."""
    chance = random.Random(seed)
    found = [[chance.choice(SAYS) for _each in range(chance.randint(1, 3))] for _case in range(count)]
    return [case for case in found if any(says in ("knows", "unknown", "nothing") for says, _delay in case)]


def planned(servers, options=""):
    text = options + "".join(f"nameserver {name_servers.address(number)}\n" for number in range(1, len(servers) + 1))
    found = resolver.plan({"layout": CLUSTER}, {**HOST, "resolv_conf": {"text": text}})
    assert found.faults == []
    return text, found, found.config.replace(resolver.FOLDER, "FOLDER")


def host(servers, dnsmasq, options=""):
    before, found, config = planned(servers, options)
    given = {"servers": servers, "dnsmasq": dnsmasq, "config": config, "upstreams": found.asked}
    return {**given, "resolv_conf": found.resolv_conf if dnsmasq else before}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Return a copy: AppArmor confines the one of the package by its path."""
    there = shutil.which("dnsmasq", path="/usr/sbin:/usr/bin")
    return str(shutil.copy(there, tmp_path_factory.mktemp("program") / "dnsmasq"))


def test_a_host_resolves_what_it_resolved_and_asks_in_the_same_order(program):
    every = [*KNOWN, *cases(48, 24)]
    answers = name_servers.look_up([host(servers, with_it) for with_it in ("", program) for servers in every])
    found = list(zip(every, answers[: len(every)], answers[len(every) :]))
    lost = [each for each in found if each[1]["found"] and each[2]["found"] != each[1]["found"]]
    disordered = [each for each in found if each[2]["asked"] != sorted(each[2]["asked"])]
    assert (lost, disordered) == ([], [])


def test_where_every_name_server_fails_the_client_is_told_before_its_next_try(program):
    """dnsmasq keeps the failure of the last one to itself."""
    patient = "options timeout:30 attempts:1\n"
    found = list(zip(FAILING, name_servers.look_up([host(servers, program, patient) for servers in FAILING])))
    assert [each for each in found if each[1]["found"] or each[1]["unanswered"]] == []


def test_the_name_servers_that_are_kept_are_asked_without_a_restart(program, tmp_path):
    """dnsmasq notices a file that is renamed to its place, and not one that is linked there (N1)."""
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 127.0.1.1\n")
    config = (
        planned([("knows", 0)])[2]
        .replace("FOLDER/upstreams", files.kept_path(str(path)))
        .replace("FOLDER", str(tmp_path))
    )
    (tmp_path / "dnsmasq.conf").write_text(config)
    (tmp_path / "names").write_text(planned([("knows", 0)])[1].names)
    with temporary_link() as link:
        command = [
            "ip",
            "netns",
            "exec",
            link.client.namespace,
            program,
            "--keep-in-foreground",
            "--user=root",
            "--pid-file",
        ]
        log = tmp_path / "log"
        with subprocess.Popen(
            [*command, f"--log-facility={log}", f"--conf-file={tmp_path / 'dnsmasq.conf'}"]
        ) as process:
            try:
                until(lambda: log.exists() and "started" in log.read_text())
                until(lambda: asked(link, "api.lab.example.com"))
                files.keep(str(path), False)
                until(lambda: "using nameserver 127.0.1.1" in log.read_text())
            finally:
                process.kill()
    assert os.path.exists(path)


def asked(link, name):
    try:
        with inside(link.client.namespace):
            return dns.query.udp(dns.message.make_query(name, "A"), "127.0.0.1", timeout=0.5).answer
    except (OSError, dns.exception.Timeout):
        return None
