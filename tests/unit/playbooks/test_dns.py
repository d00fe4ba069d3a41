# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`onprem.lb.dns`, run as a user runs it."""

from __future__ import annotations

import json
import re

import pytest
from support.paths import ROOT
from support.playbooks import play, printed

DNS = "onprem.lb.dns"
PAIR = """
[pair]
lb1 ansible_host=192.0.2.11
lb2 ansible_host=lb2.example dns_address='["192.0.2.12", "2001:db8::12"]' dns_domain=of-the-first.example

[pair:vars]
pair_vips=["192.0.2.10/24", "2001:db8::10"]
dns_domain=example.com
pair_masters=["192.0.2.21"]
pair_infra_nodes=["192.0.2.31"]
"""
CLUSTER = """
[ipi_masters]
master0
master1 ipi_domain=of-the-first.example

[ipi_masters:vars]
ipi_cluster_name=lab
ipi_domain=example.com
ipi_api_vips=["198.51.100.10"]
ipi_ingress_vips=["198.51.100.20", "198.51.100.21"]
dns_nodes={"master-0": "198.51.100.31"}
ipi_bootstrap=198.51.100.30
"""
PAIR_ZONE = """\
; example.com.
*.apps.example.com.    300 IN A    192.0.2.10
*.apps.example.com.    300 IN AAAA 2001:db8::10
haproxy.example.com.   300 IN A    192.0.2.10
haproxy.example.com.   300 IN AAAA 2001:db8::10
haproxy-0.example.com. 300 IN A    192.0.2.11
haproxy-1.example.com. 300 IN A    192.0.2.12
haproxy-1.example.com. 300 IN AAAA 2001:db8::12
"""
CLUSTER_ZONE = """\
; lab.example.com.
api.lab.example.com.       60 IN A    198.51.100.10
api-int.lab.example.com.   60 IN A    198.51.100.10
*.apps.lab.example.com.    60 IN A    198.51.100.20
*.apps.lab.example.com.    60 IN A    198.51.100.21
bootstrap.lab.example.com. 60 IN A    198.51.100.30
master-0.lab.example.com.  60 IN A    198.51.100.31
; 100.51.198.in-addr.arpa.
10.100.51.198.in-addr.arpa. 60 IN PTR  api.lab.example.com.
10.100.51.198.in-addr.arpa. 60 IN PTR  api-int.lab.example.com.
30.100.51.198.in-addr.arpa. 60 IN PTR  bootstrap.lab.example.com.
31.100.51.198.in-addr.arpa. 60 IN PTR  master-0.lab.example.com.
"""

# What the same file holds in each of its forms.
FORMS = [
    ("zone", "records.zone", "haproxy.example.com.   300 IN A    192.0.2.10"),
    ("dnsmasq", "~/records.dnsmasq", "host-record=haproxy.example.com,192.0.2.10,300"),
    ("nsupdate", "./records.nsupdate", "update add haproxy.example.com. 300 A 192.0.2.10"),
]


@pytest.mark.parametrize("form, output, line", FORMS, ids=[form for form, *_rest in FORMS])
def test_it_prints_and_writes_the_records_of_the_pair_without_connecting_to_a_host(tmp_path, form, output, line):
    """The file is where the user is, and what was printed."""
    given = (PAIR, DNS, "--become", "-e", f"dns_format={form}", "-e", f"dns_output={output}")
    code, said = play(tmp_path, *given)
    assert code == 0 and "changed: [lb1 -> localhost]" in said, said
    written = tmp_path / output.rpartition("/")[2]
    lines = written.read_text().splitlines()
    assert line in lines and printed(said)[: len(lines)] == lines
    assert written.stat().st_mode & 0o7777 == 0o644
    if form == "zone":
        assert lines == PAIR_ZONE.splitlines()
        assert '"openshift_master_default_subdomain": "apps.example.com"' in said


def test_what_is_written_already_is_not_changed(tmp_path):
    for outcome in ("changed: [lb1 -> localhost]", "ok: [lb1 -> localhost]"):
        code, said = play(tmp_path, PAIR, DNS, "-e", "dns_output=records.zone")
        assert code == 0 and outcome in said, said
    assert "changed: [" not in said


def of_members(folder, *members):
    code, said = play(folder, PAIR, DNS, "-e", json.dumps({"dns_ttl": 9, "pair_members": members}))
    assert code == 0, said
    return said


def test_the_members_are_numbered_in_their_order(tmp_path):
    lines = printed(of_members(tmp_path, "lb2", "lb1"))
    assert {"haproxy-0.example.com. 9 IN A    192.0.2.12", "haproxy-1.example.com. 9 IN A    192.0.2.11"} <= {*lines}


def test_of_one_member_its_own_variables_count(tmp_path):
    said = of_members(tmp_path, "lb2")
    assert "haproxy-0.of-the-first.example. 9 IN A    192.0.2.12" in printed(said) and "192.0.2.11" not in said


TWO = """
[pair]
web1 ansible_host=192.0.2.11
web2 ansible_host=192.0.2.12
db1 ansible_host=192.0.2.13
db2 ansible_host=192.0.2.14

[web]
web1
web2

[web:vars]
pair_members={{ groups['web'] }}
pair_vips=["192.0.2.10"]
dns_domain=web.example.com

[db]
db1
db2

[db:vars]
pair_members={{ groups['db'] }}
pair_vips=["192.0.2.20"]
dns_domain=db.example.com
"""


def test_each_of_several_pairs_gets_its_names(tmp_path):
    code, said = play(tmp_path, TWO, DNS, "--limit", "db2")
    assert code == 0, said
    found = {" ".join(line.split()) for line in printed(said)}
    assert {"haproxy.web.example.com. 300 IN A 192.0.2.10", "haproxy-1.web.example.com. 300 IN A 192.0.2.12"} <= found
    assert {"haproxy.db.example.com. 300 IN A 192.0.2.20", "haproxy-0.db.example.com. 300 IN A 192.0.2.13"} <= found


def test_it_prints_what_the_cluster_needs_and_nothing_for_an_installer_also_for_a_part_of_it(tmp_path):
    code, said = play(tmp_path, CLUSTER, DNS, "--limit", "master1", "-e", "dns_ttl=60")
    assert code == 0, said
    assert printed(said) == CLUSTER_ZONE.splitlines()
    assert '"msg": {' not in said and "WARNING" not in said


def test_a_dry_run_shows_the_difference_and_writes_nothing_and_a_limit_makes_no_difference(tmp_path):
    written = tmp_path / "records.txt"
    written.write_text("; of before\n")
    dry = ("-e", f"dns_output={written}", "--check", "--diff")
    code, said = play(tmp_path, PAIR + CLUSTER, DNS, "--limit", "lb2", "-e", "dns_subdomain=", *dry)
    assert code == 0 and "changed=1" in said and "WARNING" not in said, said
    lines = printed(said)
    assert lines[:2] == ["; example.com.", "*.example.com.         300 IN A    192.0.2.10"]
    assert {"; lab.example.com.", "haproxy-0.example.com. 300 IN A    192.0.2.11"} <= set(lines)
    assert "31.100.51.198.in-addr.arpa. 300 IN PTR  master-0.lab.example.com." in lines
    assert "-; of before\n+; example.com.\n" in said
    assert written.read_text() == "; of before\n"


def test_every_fault_of_a_pair_is_said_with_a_clusters_missing_variables_and_nothing_is_written(tmp_path):
    wrong = PAIR.replace("dns_address=", "other=").replace("dns_domain", "other")
    arguments = ("-e", "dns_output=records.txt", "-e", "dns_ttl=1h")
    code, said = play(tmp_path, wrong + "[ipi_masters]\nmaster0\n", DNS, *arguments)
    assert code != 0
    assert "The address of lb2 is 'lb2.example': an IPv4 or IPv6 address is required, as its dns_address." in said
    assert "dns_domain is empty: give a name, for instance example.com." in said
    assert "dns_ttl is '1h': a number of seconds from 0 to 2147483647 is required." in said
    assert "ipi_cluster_name is " in said and "undefined" not in said
    assert not (tmp_path / "records.txt").exists()


def test_every_fault_of_a_cluster_is_said_with_a_pairs_missing_variables(tmp_path):
    code, said = play(tmp_path, "[pair]\nlb1 ansible_host=192.0.2.11\n" + CLUSTER.replace("lab", "a.b"), DNS)
    assert code != 0
    assert "ipi_cluster_name is 'a.b', with a dot: give the bare name, without its domain." in said
    assert "dns_domain is " in said and "pair_vips is " in said and "undefined" not in said


def test_the_nodes_of_the_documentations_recipe_have_records(tmp_path):
    (recipe,) = re.findall(r"^dns_nodes: (.*)$", (ROOT / "docs" / "dns.md").read_text(), re.MULTILINE)
    nodes = f"dns_nodes={recipe}\ndns_etcd=['master0', '198.51.100.36']\n"
    hosts = "[ipi_workers]\nworker0 ansible_host=198.51.100.35\n"
    cluster = re.sub("dns_nodes=.*\n", nodes, CLUSTER.replace("master0", "master0 ansible_host=198.51.100.31"))
    cluster = cluster.replace("master1", "master1 dns_address=198.51.100.32")
    code, said = play(tmp_path, cluster + hosts, DNS, "--limit", "worker0,master1")
    assert code == 0, said
    found = dict(re.findall(r"^(\S+)\.lab\.example\.com\. +\d+ IN A +(\S+)", "\n".join(printed(said)), re.MULTILINE))
    assert (found["master0"], found["master1"], found["worker0"]) == tuple(f"198.51.100.3{at}" for at in (1, 2, 5))
    assert (found["etcd-0"], found["etcd-1"]) == ("198.51.100.31", "198.51.100.36")


@pytest.mark.parametrize("variable", ["dns_nodes", "dns_etcd"])
def test_nodes_that_cannot_be_computed_are_refused(tmp_path, variable):
    template = "\"{{ groups.ipi_masters | map('extract', hostvars, 'ansible_host') | list }}\""
    cluster = re.sub("dns_nodes=.*\n", "", CLUSTER)
    code, said = play(tmp_path, f"{cluster}{variable}={template}\n", DNS)
    assert code != 0
    assert re.search(rf"{variable} of master0 uses a variable that is not defined, or hostvars|{variable} is ", said)


def test_a_form_that_it_does_not_know_is_one_sentence(tmp_path):
    code, said = play(tmp_path, PAIR, DNS, "-e", "dns_format=bind")
    assert code != 0 and "dns_format is 'bind': one of zone, dnsmasq, nsupdate, corefile is required." in said


def test_a_misspelt_variable_is_one_sentence(tmp_path):
    """The row `dns_adress: typo dns_adress`."""
    code, said = play(tmp_path, PAIR.replace("dns_address", "dns_adress"), DNS, "--limit", "lb2")
    assert code != 0 and "dns_adress is not a variable of the playbook: did you mean dns_address?" in said
