"""The commands of haproxy's unit: what is no single command line is refused, and none changes another's meaning."""

from __future__ import annotations

import re

import pytest
from support.rendering import haproxy_model, haproxy_unit

REDIRECT = "/usr/sbin/nft --file /etc/onprem-lb/api-redirect.nft"


def lines(**variables):
    rendered = haproxy_unit(haproxy_down_file="/run/down", **variables)
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
    return haproxy_model(haproxy_start_commands=list(start), haproxy_stop_commands=list(stop))["faults"]


@pytest.mark.parametrize(
    "command, shown",
    [
        ("nft -f x", "nft ..."),
        ("-/bin/x", "-/bin/x"),
        ("/bin/x\nUser=bob", "/bin/x ..."),
        ("/bin/x\n", "/bin/x\n"),
        ("/bin/x \\", "/bin/x ..."),
        ("", ""),
        ("/", "/"),
        ("/a '", "/a ..."),
    ],
)
def test_what_is_no_single_command_line_is_refused_wherever_it_stands(command, shown):
    for said, name in (faults([REDIRECT, command]), "start"), (faults([REDIRECT], [command]), "stop"):
        assert [sentence.startswith(f"haproxy_{name}_commands is [") for sentence in said] == [True]
        assert f"in it {shown!r} is wrong: " in said[0]


def test_commands_with_quotes_and_blanks_are_fine():
    assert faults([REDIRECT], ["/usr/sbin/nft 'add table inet x; delete table inet x'", "/bin/x"]) == []
