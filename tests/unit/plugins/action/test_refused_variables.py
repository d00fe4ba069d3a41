# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A variable that cannot be evaluated is told in one sentence with its name, and never with a secret."""

from __future__ import annotations

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.vault import AnsibleVaultError
from ansible.template import Templar
from ansible_collections.onprem.lb.plugins.action import refuse


def faults(tmp_path, text):
    """Return the sentences about the variables in a YAML text, as an inventory gives them."""
    file = tmp_path / "vars.yml"
    file.write_text(text)
    loader = DataLoader()
    given = loader.load_from_file(str(file), trusted_as_template=True)
    templar = Templar(loader=loader, variables=given)
    return refuse.of_variables(given, templar.template)


LITERAL = "write {% raw %} before and {% endraw %} after text that is meant literally."
BRACES = f"has braces that are not a Jinja template: correct them, or {LITERAL}"
ROWS = {
    "cyclic: pair_vips: {{ pair_vips }}": (
        'pair_vips: "{{ pair_vips }}"',
        ["pair_vips refers to itself: give it a value."],
    ),
    "cyclic over two": (
        'pair_vips: "{{ mine }}"\nmine: ["{{ pair_vips }}"]',
        ["pair_vips refers to itself: give it a value."],
    ),
    "syntax error: {{ ": ('pair_down_file: "/run/{{ "', [f"pair_down_file {BRACES}"]),
    "{% in a service name": ("pair_services: [{name: '{% x'}]", [f"pair_services {BRACES}"]),
    "keepalived_config_path: config path undefined Jinja": (
        'keepalived_config_path: "{{ nope }}/x"',
        ["keepalived_config_path refers to nope, which is not set: set it, or correct its name."],
    ),
    "ipi_cluster_name Jinja": (
        'ipi_cluster_name: "{{ nope }}"',
        ["ipi_cluster_name refers to nope, which is not set: set it, or correct its name."],
    ),
    "dns_domain Jinja": (
        'dns_domain: "{{ nope }}"',
        ["dns_domain refers to nope, which is not set: set it, or correct its name."],
    ),
    "a filter that there is not": ('pair_vips: "{{ 1 | nofilter }}"', [f"pair_vips {BRACES}"]),
    "two variables": (
        'haproxy_maxconn: "{{ nope }}"\nagent_retries: "{{ 3 + }}"\npair_vrid: 5',
        [
            f"agent_retries {BRACES}",
            "haproxy_maxconn refers to nope, which is not set: set it, or correct its name.",
        ],
    ),
}


@pytest.mark.parametrize("text, sentences", ROWS.values(), ids=ROWS)
def test_what_cannot_be_evaluated_is_one_sentence(tmp_path, text, sentences):
    assert faults(tmp_path, text) == sentences


def test_what_else_goes_wrong_is_told_in_ansibles_words_with_the_name(tmp_path):
    (fault,) = faults(tmp_path, 'pair_vips: "{{ [] | first }}"\npair_vrid: 5')
    assert fault == "pair_vips cannot be evaluated: No first item, sequence was empty."


@pytest.mark.parametrize("value", ["ab{{cd}}", "ab{{cd ef", "{{ 'cd' | int / 0 }}", "{% cd %}"])
def test_a_secret_with_braces_is_not_shown(tmp_path, value):
    """Its letters would be in Jinja's words."""
    for name in ("pair_auth_pass", "haproxy_stats_password"):
        (fault,) = faults(tmp_path, f'{name}: "{value}"')
        assert fault.startswith(f"{name} ") and fault.endswith(LITERAL) and "cd" not in fault


def test_a_good_template_is_judged_by_its_value(tmp_path):
    text = 'many: lots\nhaproxy_maxconn: "{{ many }}"\nhaproxy_retries: "{{ 1 + 2 }}"\npair_vips: ["{{ many }}"]'
    assert faults(tmp_path, text) == [
        "haproxy_maxconn is 'lots': a whole number from 0 to 10000000 is required.",
    ]


def test_what_has_no_template_is_not_evaluated(tmp_path, monkeypatch):
    """Which would take a second for thousands of servers."""
    evaluated = []
    monkeypatch.setattr(Templar, "template", lambda _self, value: evaluated.append(value))
    faults(tmp_path, "pair_vips: [{address: 192.0.2.10, vrid: 51, first: null, x: 1.5}]\npair_preempt: true")
    assert evaluated == []
    faults(tmp_path, 'pair_vips: [{address: ["{{ x }}"]}]\npair_masters: [{"{{ x }}": 1}]')
    assert len(evaluated) == 2


def test_variables_of_others_are_not_even_evaluated(tmp_path):
    assert faults(tmp_path, 'haproxy_user: "{{ nope }}"\nother: "{{ other }}"') == []


VAULTED = """pair_auth_pass: !vault |
  $ANSIBLE_VAULT;1.1;AES256
  33363965326261303234626463623963633531343539616630613866373063383736383036353163
"""
SEALED = "pair_auth_pass is in a vault that cannot be opened: give its password with --vault-id or --ask-vault-pass."


@pytest.mark.parametrize(
    "text",
    [VAULTED, VAULTED.replace("pair_auth_pass", "mine") + 'pair_auth_pass: "{{ mine }}"'],
    ids=["itself", "other"],
)
def test_a_vault_that_cannot_be_opened_is_called_that(tmp_path, text):
    assert faults(tmp_path, text) == [SEALED]


def test_the_vault_of_an_older_ansible_is_opened_where_its_error_is_told():
    class AnsibleVaultEncryptedUnicode:
        def __str__(self):
            raise AnsibleVaultError("Decryption failed")

    assert refuse.of_variables({"pair_auth_pass": AnsibleVaultEncryptedUnicode()}, lambda value: value) == [SEALED]


@pytest.mark.parametrize("template", ["{{ vault_lb }}", "{{vault_lb | trim}}"])
def test_a_secret_that_refers_to_a_variable_which_is_not_set_names_it(tmp_path, template):
    assert faults(tmp_path, f'pair_auth_pass: "{template}"') == [
        "pair_auth_pass refers to vault_lb, which is not set: set it, or correct its name."
    ]


def test_what_another_variable_has_in_braces_may_be_a_part_of_the_secret(tmp_path):
    (fault,) = faults(tmp_path, 'pair_auth_pass: "{{ mine }}"\nmine: "ab{{cd}}ef"')
    assert "cd" not in fault and fault.endswith(LITERAL)
