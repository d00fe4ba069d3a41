# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A text of digits stays a text, whatever ansible.cfg says of native templating."""

from __future__ import annotations

import pytest
from ansible import template
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.onprem.lb.plugins.plugin_utils import evaluation


@pytest.mark.parametrize("secret", ["12345678", "1234e567", "0x12", "1_000", "[1]x", "None"])
def test_a_password_of_digits_stays_a_text(secret):
    templar = Templar(loader=DataLoader(), variables={"secret": secret})
    assert evaluation.evaluated(trust_as_template("{{ secret }}"), evaluation.evaluator(templar)) == secret


def test_an_older_ansible_evaluates_as_without_native_templating(monkeypatch):
    class Older:
        template = int

        def copy_with_new_env(self, environment_class):
            assert environment_class == "by default"
            return type("Copy", (), {"template": str})

    monkeypatch.setattr(template, "AnsibleEnvironment", "by default", raising=False)
    assert evaluation.evaluated("{{ 12345678 }}", lambda _text: evaluation.evaluator(Older())("12345678")) == "12345678"


class AnsibleVaultEncryptedUnicode:
    """As ansible-core before 2.19 has it: no text until it is used as one."""

    def __str__(self):
        return "opened"


def test_what_is_in_a_vault_is_a_text_wherever_it_is():
    sealed = AnsibleVaultEncryptedUnicode()
    given = [{"name": "web", "tls": {"content": [sealed, "x"]}}, sealed, 5, None]
    found = evaluation.evaluated(given, lambda value: value)
    assert found == [{"name": "web", "tls": {"content": ["opened", "x"]}}, "opened", 5, None]
    assert evaluation.evaluated(sealed, lambda value: value) == "opened"
