"""The commands of haproxy's unit: what is no single command line is refused, and none changes another's meaning."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from support.paths import ROOT
from support.rendering import render

REDIRECT = "/usr/sbin/nft --file /etc/onprem-lb/api-redirect.nft"


def lines(**variables):
    rendered = render("haproxy", "unit.conf.j2", haproxy_down_file="/run/down", **variables)
    return re.findall(r"^(Exec\w+)=(.*)$", rendered, flags=re.MULTILINE)


def of(directive, **variables):
    return [command for name, command in lines(**variables) if name == directive]


def test_a_redirect_is_there_before_the_member_says_that_it_serves():
    first, last = of("ExecStartPost", haproxy_start_commands=[REDIRECT])
    assert first == f"-{REDIRECT}" and "echo 0 >" in last


@pytest.mark.parametrize("directive", ["ExecStop", "ExecStopPost"])
def test_it_is_gone_before_the_member_says_that_it_is_down_and_pauses(directive):
    first, second, last = of(directive, haproxy_stop_commands=["/bin/one", "/bin/two"])
    assert (first, second) == ("-/bin/one", "-/bin/two") and "echo 1 >" in last


def test_a_command_that_fails_keeps_no_other_from_being_run():
    commands = [command for _name, command in lines(haproxy_start_commands=["/a"], haproxy_stop_commands=["/b"])]
    assert [command for command in commands if "/bin/sh" not in command] == ["-/a", "-/b", "-/b"]


def test_percent_and_dollar_signs_mean_themselves_to_systemd():
    first, _last = of("ExecStartPost", haproxy_start_commands=["/bin/sh -c 'echo $HOME 100%'"])
    assert first == "-/bin/sh -c 'echo $$HOME 100%%'"


def faults(start, stop=()):
    """By Ansible's own templating, which reads backslashes otherwise than Jinja."""
    written = yaml.safe_load((ROOT / "roles" / "haproxy" / "vars" / "main.yml").read_text())
    variables = {
        name: trust_as_template(text) for name, text in written.items() if name.startswith("__haproxy_command")
    }
    variables.update(haproxy_start_commands=list(start), haproxy_stop_commands=list(stop))
    return Templar(loader=DataLoader(), variables=variables).template(variables["__haproxy_command_faults"])


@pytest.mark.parametrize("command", ["nft -f x", "-/bin/x", "/bin/x\nUser=bob", "/bin/x\n", "/bin/x \\", "", "/"])
def test_what_is_no_single_command_line_is_refused_wherever_it_stands(command):
    for said in (faults([REDIRECT, command]), faults([REDIRECT], [command])):
        assert [sentence.startswith(json.dumps(command)) for sentence in said] == [True]


def test_commands_with_quotes_and_blanks_are_fine():
    assert faults([REDIRECT], ["/usr/sbin/nft 'add table inet x; delete table inet x'", "/bin/x"]) == []
