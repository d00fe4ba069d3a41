"""`onprem.lb.dns`, run as a user runs it, on hosts that nobody can reach."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EVERYWHERE = """
[all:vars]
ansible_ssh_executable=there_is_none
ansible_become=true
ansible_become_exe=there_is_none
"""
PAIR = """
[pair]
lb1 ansible_host=192.0.2.11
lb2 ansible_host=lb2.example dns_address='["192.0.2.12", "2001:db8::12"]' dns_domain=of-the-first.example

[pair:vars]
pair_vips=["192.0.2.10/24", "2001:db8::10"]
dns_domain=example.com
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


@pytest.fixture
def play(tmp_path):
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".cache" / "collections"),
        "ANSIBLE_HOME": str(tmp_path / "ansible"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_BECOME_EXE": "there_is_none",
        # Also where root runs this, who would not have to become himself.
        "ANSIBLE_BECOME_USER": "nobody",
        "HOME": str(tmp_path),
    }
    program = Path(sys.executable).parent / "ansible-playbook"

    def run(groups, *arguments):
        inventory = tmp_path / "inventory.ini"
        inventory.write_text(EVERYWHERE + groups)
        command = [program, "-i", inventory, "onprem.lb.dns", *arguments]
        user = {"env": environment, "cwd": tmp_path, "umask": 0o077}
        done = subprocess.run(command, capture_output=True, text=True, check=False, **user)
        return done.returncode, done.stdout + done.stderr

    return run


def printed(said):
    return re.findall(r'^        "(.*?)",?$', said, re.MULTILINE)


def test_it_prints_what_the_pair_needs_and_asks_nobody(play):
    code, said = play(PAIR)
    assert code == 0, said
    assert printed(said)[: len(PAIR_ZONE.splitlines())] == PAIR_ZONE.splitlines()
    assert '"openshift_master_default_subdomain": "apps.example.com"' in said
    assert "WARNING" not in said


def test_it_prints_what_the_cluster_needs_and_nothing_for_an_installer(play):
    code, said = play(CLUSTER, "-e", "dns_ttl=60")
    assert code == 0, said
    assert printed(said) == CLUSTER_ZONE.splitlines()
    assert '"msg": {' not in said and "WARNING" not in said


@pytest.mark.parametrize("part", ["lb2", "master1"])
def test_a_limit_makes_no_difference(play, part):
    code, said = play(PAIR + CLUSTER, "--limit", part, "-e", "dns_subdomain=")
    assert code == 0, said
    lines = printed(said)
    assert lines[:2] == ["; example.com.", "*.example.com.         300 IN A    192.0.2.10"]
    assert {"; lab.example.com.", "haproxy-0.example.com. 300 IN A    192.0.2.11"} <= set(lines)
    assert "31.100.51.198.in-addr.arpa. 300 IN PTR  master-0.lab.example.com." in lines


@pytest.mark.parametrize("members", ['["lb2", "lb1"]', '["lb2"]'])
def test_the_members_are_those_of_the_pair_in_its_order(play, members):
    code, said = play(PAIR, "-e", f'{{"pair_members": {members}, "dns_ttl": 9}}')
    assert code == 0, said
    assert "haproxy-0.example.com. 9 IN A    192.0.2.12" in printed(said)
    assert ("haproxy-1.example.com. 9 IN A    192.0.2.11" in printed(said)) == ("lb1" in members)


@pytest.mark.parametrize(
    "form, output, line",
    [
        ("zone", "records.txt", "haproxy.example.com.   300 IN A    192.0.2.10"),
        ("dnsmasq", "~/records.txt", "host-record=haproxy.example.com,192.0.2.10,300"),
        ("nsupdate", "./records.txt", "update add haproxy.example.com. 300 A 192.0.2.10"),
    ],
)
def test_the_file_is_what_was_printed_where_the_user_is_and_the_second_run_leaves_it(
    play, tmp_path, form, output, line
):
    wish = ("-e", f"dns_format={form}", "-e", f"dns_output={output}", "--become")
    code, said = play(PAIR, *wish)
    assert code == 0 and "changed=1" in said, said
    written = tmp_path / "records.txt"
    lines = written.read_text().splitlines()
    assert line in lines and printed(said)[: len(lines)] == lines
    assert written.stat().st_mode & 0o7777 == 0o644
    code, said = play(PAIR, *wish)
    assert code == 0 and "changed=0" in said, said


def test_a_dry_run_shows_the_difference_and_writes_nothing(play, tmp_path):
    written = tmp_path / "records.txt"
    written.write_text(PAIR_ZONE.replace("192.0.2.12", "192.0.2.99"))
    code, said = play(PAIR, "-e", f"dns_output={written}", "--check", "--diff")
    assert code == 0 and "changed=1" in said, said
    assert "-haproxy-1.example.com. 300 IN A    192.0.2.99\n+haproxy-1.example.com. 300 IN A    192.0.2.12" in said
    assert "192.0.2.99" in written.read_text()


def test_every_fault_is_said_and_nothing_is_written(play, tmp_path):
    groups = PAIR.replace("dns_address=", "other=").replace("dns_domain", "other") + CLUSTER.replace("lab", "a.b")
    code, said = play(groups, "-e", "dns_output=records.txt", "-e", "dns_ttl=1h")
    assert code != 0
    assert "The address of lb2 is 'lb2.example': an IPv4 or IPv6 address is wanted, as its dns_address." in said
    assert "dns_domain is empty: give a name, for instance example.com." in said
    assert "ipi_cluster_name is 'a.b', with a dot: give the bare name, without its domain." in said
    assert "dns_ttl is '1h': a number of seconds from 0 to 2147483647 is wanted." in said
    assert not (tmp_path / "records.txt").exists()


@pytest.mark.parametrize(
    "group, faults", [("pair", ["dns_domain", "pair_vips"]), ("ipi_masters", ["ipi_cluster_name"])]
)
def test_a_group_without_a_variable_gets_a_sentence_for_each(play, group, faults):
    code, said = play(f"[{group}]\nlb1 ansible_host=192.0.2.11\n")
    assert code != 0
    assert all(f"{fault} is " in said for fault in faults) and "undefined" not in said


def test_what_it_cannot_do_is_one_sentence(play):
    code, said = play(PAIR, "-e", "dns_format=bind")
    assert code != 0 and "dns_format is 'bind': one of zone, dnsmasq, nsupdate is wanted." in said
    code, said = play("[web]\nweb1\n[pair]\n")
    assert code != 0 and "The inventory has no host in a group pair or ipi_masters" in said
