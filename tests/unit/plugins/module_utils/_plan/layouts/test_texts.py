# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A text that a configuration file cannot have, and a file that cannot be used, get one sentence before any change."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import nft_guard
from support.plans import pairs, refusals
from support.rendering import haproxy_model, keepalived_model

SPACES = "a URL path is required: it begins with / and has neither spaces nor #."
PLAIN = "an absolute path of letters, digits and . _ - / is required."
PRINTABLE = "one line of printable characters is required."
SERVICE = {"name": "web", "port": 443, "servers": ["192.0.2.21"]}


def of_haproxy(**variables):
    return haproxy_model(**{f"haproxy_{name}": value for name, value in variables.items()})["faults"]


def of_haproxys_service(**service):
    return haproxy_model([{**SERVICE, **service}])["faults"]


def of_keepalived(**variables):
    settings = {"instances": [], **{name: variables.pop(name) for name in ("scripts",) if name in variables}}
    return keepalived_model(settings, **{f"keepalived_{name}": value for name, value in variables.items()})["faults"]


PATHS = {
    "check path with carriage return": "/a\rb",
    "check path with blanks": "/health check",
    "check path without /": "healthz",
    "check path with a newline": "/a\nb",
}
ZONES = {
    "server {name, address: ::1%x]:80 init-addr none disabled NEWLINE server evil #}": (
        "::1%x]:80 init-addr none disabled\nserver evil #"
    ),
    "server ::1%x]:80 init-addr none then CR-free same line: backup #": "::1%x]:80 init-addr none backup #",
}
HAPROXY = {
    **{
        row: (
            of_haproxys_service(check={"type": "http", "path": path}),
            f"haproxy_services[0] (web).check.path is {path!r}: {SPACES}",
        )
        for row, path in PATHS.items()
    },
    "path of 100,000 letters": (
        of_haproxys_service(check={"type": "http", "path": "/" + "x" * 99_999}),
        f"haproxy_services[0] (web).check.path is '/{'x' * 198}...: a path of at most 8000 characters is required.",
    ),
    "frontend_lines with a new section": (
        of_haproxys_service(frontend_lines=["backend other"]),
        "haproxy_services[0] (web).frontend_lines is ['backend ...']: line 1 begins a section, and what "
        "follows would be in it: use haproxy_extra_lines.",
    ),
    "frontend_lines unclosed quote": (
        of_haproxys_service(frontend_lines=["description 'open"]),
        "haproxy_services[0] (web).frontend_lines is ['description ...']: line 1 has a quote or a "
        "backslash without its other half: complete it.",
    ),
    "server {name, address: zone + newline + directive}": (
        of_haproxys_service(servers=[{"name": "one", "address": "::1%x]:80\nserver evil"}]),
        r"haproxy_services[0] (web).servers[0].address is '::1%x]:80\nserver evil': "
        "leave out the % and what follows, the interface is known.",
    ),
    **{
        row: (
            of_haproxys_service(servers=[address]),
            f"haproxy_services[0] (web).servers[0].address is {address!r}: "
            "leave out the % and what follows, the interface is known.",
        )
        for row, address in ZONES.items()
    },
    "check path Jinja braces raw": (
        of_haproxys_service(check={"type": "http", "path": "/{{ x }}"}),
        f"haproxy_services[0] (web).check.path is '/{{{{ x }}}}': {SPACES}",
    ),
    "haproxy_config_path: config path relative": (
        of_haproxy(config_path="haproxy.cfg"),
        f"haproxy_config_path is 'haproxy.cfg': {PLAIN}",
    ),
    "haproxy_config_path: a folder above": (
        of_haproxy(config_path="/etc/../haproxy.cfg"),
        f"haproxy_config_path is '/etc/../haproxy.cfg': {PLAIN}",
    ),
    "haproxy_stop_pause: stop_pause with a command": (
        of_haproxy(stop_pause="1; reboot"),
        "haproxy_stop_pause is '1; reboot': a number from 0 to 60 seconds is required.",
    ),
    "haproxy_stop_pause: stop_pause -1": (
        of_haproxy(stop_pause=-1),
        "haproxy_stop_pause is -1: a number from 0 to 60 seconds is required.",
    ),
    "haproxy_hard_stop_after: newline": (
        of_haproxy(hard_stop_after="1h\nuser root"),
        r"haproxy_hard_stop_after is '1h\nuser root': a time such as 500ms, 30s or 1h is required.",
    ),
    "haproxy_start_commands: a semicolon": (of_haproxy(start_commands=["/bin/true ; /bin/false"]), None),
    "haproxy_stats_password with CR": (
        of_haproxy(stats_user="ops", stats_password="a\rb"),
        "haproxy_stats_password is a secret (text): one line of text is required.",
    ),
    "haproxy_stats_password with a blank": (
        of_haproxy(stats_user="ops", stats_password="a b"),
        "haproxy_stats_password has a space or a control character: use letters, digits and signs.",
    ),
    "haproxy_stats_password with a quote": (of_haproxy(stats_user="ops", stats_password='a"b'), None),
    "haproxy_stats_password with single quote": (of_haproxy(stats_user="ops", stats_password="a'b"), None),
    "haproxy_stats_password: a#b": (of_haproxy(stats_user="ops", stats_password="a#b"), None),
    "haproxy_metrics_path: metrics path with brace": (of_haproxy(metrics_path="/a}b"), None),
    "check path with one quote": (of_haproxys_service(check={"type": "http", "path": "/a'b"}), None),
    'check path with $HOME and "${HOME}"': (of_haproxys_service(check={"type": "http", "path": '/"${HOME}"'}), None),
}
KEEPALIVED = {
    "keepalived_router_id: router_id newline": (
        of_keepalived(router_id="lb1\nvrrp_strict"),
        rf"keepalived_router_id is 'lb1\nvrrp_strict': {PRINTABLE}",
    ),
    "keepalived_router_id: a quote": (
        of_keepalived(router_id='l"b'),
        """keepalived_router_id is 'l"b': keepalived.conf cannot have the character " there, leave it out.""",
    ),
    "keepalived_script_user: script_user with a group": (
        of_keepalived(script_user="nobody nogroup"),
        "keepalived_script_user is 'nobody nogroup': a name of letters, digits and . : _ - is required.",
    ),
    "keepalived_extra_lines: an open block": (
        of_keepalived(extra_lines=["vrrp_script x {"]),
        "keepalived_extra_lines is ['vrrp_script ...']: a block in it is not closed: add a }.",
    ),
    "keepalived_extra_lines: a backslash at the end": (
        of_keepalived(extra_lines=["! x\\"]),
        "keepalived_extra_lines is ['! ...']: line 1 ends with a backslash, which joins the next line to it: "
        "leave it out.",
    ),
    "keepalived_global_lines: a brace too many": (
        of_keepalived(global_lines=["}"]),
        "keepalived_global_lines is ['}']: line 1 closes a block that these lines have not opened: leave it out.",
    ),
    "keepalived_scripts: a backslash, which versions read differently": (
        of_keepalived(scripts=[{"name": "x", "command": "/bin/x 'a\\b'"}]),
        r"keepalived_scripts (x).command is '/bin/x ...': keepalived.conf cannot have the character \ inside a "
        "word: write a script.",
    ),
    "keepalived_scripts: a variable of keepalived": (
        of_keepalived(scripts=[{"name": "x", "command": "/bin/x ${_PWD}"}]),
        "keepalived_scripts (x).command is '/bin/x ...': keepalived would replace what begins with ${_, leave it out.",
    ),
    "keepalived_scripts: longer than keepalived's line": (
        of_keepalived(scripts=[{"name": "x", "command": "/bin/" + "x" * 1000}]),
        f"keepalived_scripts (x).command is '/bin/{'x' * 194}...: keepalived reads 960 bytes at most, shorten it.",
    ),
}
LAYOUTS = {
    "interface 20 letters": (
        refusals.of_forecast("192.0.2.1", "192.0.2.2", interface="e" * 20),
        f"pair_interface is '{'e' * 20}': an interface's name has at most 15 characters.",
    ),
    "pair_down_file: down_file with a blank": (
        refusals.of_pair(down_file="/run/my file"),
        f"pair_down_file is '/run/my file': {PLAIN}",
    ),
    "pair_down_file: down_file with a quote": (
        refusals.of_pair(down_file="/run/a'b"),
        f"""pair_down_file is "/run/a'b": {PLAIN}""",
    ),
    "pair_down_file: down_file with % and $": (
        refusals.of_pair(down_file="/run/%n$HOME"),
        f"pair_down_file is '/run/%n$HOME': {PLAIN}",
    ),
    "pair_down_file: down_file ~": (refusals.of_pair(down_file="~/down"), f"pair_down_file is '~/down': {PLAIN}"),
    "pair_down_file: a folder that a reboot removes": (
        refusals.of_pair(down_file="/run/mine/down"),
        "pair_down_file is '/run/mine/down': a reboot removes /run/mine, without which the balancer cannot start: "
        "name a file in /run itself.",
    ),
    "pair_down_file: a folder of everybody": (
        refusals.of_pair(down_file="/tmp/down"),
        "pair_down_file is '/tmp/down': every user may create files in /tmp: name a file in /run.",
    ),
    "pair_notify: a quote in a word": (
        refusals.of_pair(notify="""/bin/tell 'a"b'"""),
        """pair_notify is '/bin/tell ...': keepalived.conf cannot have the character " inside a word: """
        "write a script.",
    ),
    "ipi_down_file: a folder that a reboot removes": (
        refusals.of_cluster(down_file="/var/run/x/down"),
        "ipi_down_file is '/var/run/x/down': a reboot removes /var/run/x, without which the balancer cannot start: "
        "name a file in /run itself.",
    ),
    "ipi_machine_networks: a zone": (
        nft_guard.faults(["fd00::%x accept\n#/64"], "ipi_machine_networks"),
        r"ipi_machine_networks[0] is 'fd00::%x accept\n#/64': a network such as 192.0.2.0/24 is required.",
    ),
}


@pytest.mark.parametrize(
    "faults, sentence",
    [*HAPROXY.values(), *KEEPALIVED.values(), *LAYOUTS.values()],
    ids=[*HAPROXY, *KEEPALIVED, *LAYOUTS],
)
def test_a_text_is_refused_in_one_sentence_or_quoted(faults, sentence):
    assert faults == ([] if sentence is None else [sentence])


NAMED = {
    "pair_notify: notify not there": ("notify", "/usr/local/bin/tell", "it cannot be run: No such file or directory."),
    "pair_down_file: down_file in a missing folder": ("down_file", "/srv/x/down", "there is no folder /srv/x."),
}


@pytest.mark.parametrize("key, value, wrong", NAMED.values(), ids=NAMED)
def test_what_a_host_says_of_a_file_that_a_variable_names_refuses_the_plan(key, value, wrong):
    members = pairs.pair(**{key: value})
    members[1]["host"]["unfit"] = [{"key": key, "value": value, "wrong": wrong}]
    assert refusals.of(members) == [f"lb2: pair_{key} is {value!r}: {wrong}"]
