# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No run prints a password, whatever its type, also with -vvv and --diff: the whole output is searched."""

from __future__ import annotations

import json

import pytest
from support.playbooks import PAIR, play

TALKATIVE = ("-vvv", "--diff")
LINE = "pair_auth_pass is a secret ({}): one line of text is required."
# By its kind: the password, the part of it to look for, and what is said of it.
PASSWORDS = {
    "a good one": ("Zq7Zq7Zq", "Zq7Zq7Zq", None),
    "a number": (40714071, "40714071", LINE.format("a number")[:-1] + ": put it into quotes."),
    "a list": (["Zq7Zq7Zq"], "Zq7Zq7Zq", LINE.format("a list")),
    "a mapping": ({"Zq7Zq7Zq": "Zq8Zq8Zq"}, "Zq", LINE.format("a mapping")),
    "two lines": ("Zq7\nZq8", "Zq", LINE.format("text")),
    "too long": ("Zq7Zq7Zq7Zq", "Zq7", "pair_auth_pass has 11 characters: VRRP compares the first 8 only, shorten it."),
}


def variables(**given):
    return ("--extra-vars", json.dumps(given))


@pytest.mark.parametrize("password, part, sentence", PASSWORDS.values(), ids=PASSWORDS)
def test_a_forecast_prints_no_password(tmp_path, password, part, sentence):
    code, said = play(tmp_path, PAIR, "onprem.lb.forecast", *TALKATIVE, *variables(pair_auth_pass=password))
    assert part not in said and (sentence or "host cut") in said
    assert (code == 0) == (sentence is None)


ROLES = ["onprem.lb.haproxy", "onprem.lb.keepalived", "onprem.lb.agent", "onprem.lb.pair"]
INSTANCE = {"name": "front", "interface": "eth0", "vrid": 51, "addresses": ["192.0.2.10"], "multicast": True}
SERVICE = {"name": "web", "port": 443, "servers": ["192.0.2.31"]}


GIVEN = {"a-good-one": "Zq7Zq7Zq", "a-list": ["Zq7Zq7Zq"], "a-number": 40714071}


def with_password(password):
    """Return every variable of the roles that holds a password."""
    return {
        **{f"{name}_auth_pass": password for name in ("keepalived", "agent", "pair")},
        **{f"{name}_stats_password": password for name in ("haproxy", "agent")},
        **{f"{name}_instances": [{**INSTANCE, "auth_pass": password}] for name in ("keepalived", "agent")},
        **{f"{name}_services": [{**SERVICE, "tls": {"content": password}}] for name in ("haproxy", "agent", "pair")},
    }


def test_no_role_prints_a_password_before_it_has_read_the_host(tmp_path):
    """Ansible validates the argument specs first, in its own words. Each password is on a host of its own."""
    (tmp_path / "host_vars").mkdir()
    for host, password in GIVEN.items():
        (tmp_path / "host_vars" / f"{host}.json").write_text(json.dumps(with_password(password)))
    playbook = tmp_path / "roles.yml"
    plays = [{"hosts": "one", "gather_facts": False, "ignore_unreachable": True, "roles": [role]} for role in ROLES]
    playbook.write_text(json.dumps([{**each, "ignore_errors": True} for each in plays]))
    _code, said = play(tmp_path, "\n".join(["[one]", *GIVEN, ""]), str(playbook), *TALKATIVE)
    assert [role for role in ROLES if f"TASK [{role} : Validating arguments against arg spec" not in said] == []
    assert all(said.count(f"[{host}]") >= len(ROLES) for host in GIVEN)
    assert "Zq7Zq7Zq" not in said and "40714071" not in said


def test_the_password_of_a_component_is_refused_beside_a_layouts_own_and_is_not_printed(tmp_path):
    """The row `keepalived_auth_pass set beside the pair's own`: it had no effect."""
    overruled = {"pair_auth_pass": "Zq7Zq7Zq", "keepalived_auth_pass": "Zq8Zq8Zq"}
    code, said = play(tmp_path, PAIR, "onprem.lb.site", *TALKATIVE, *variables(**overruled))
    assert code != 0 and "keepalived_auth_pass has no effect here: set pair_auth_pass instead." in said
    assert "Zq" not in said
