# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of outcomes."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks.outcome import lower


@pytest.mark.parametrize(
    ("sentence", "part"),
    [
        ("Connection refused", "connection refused"),
        ("IP address mismatch, certificate is not valid.", "IP address mismatch, certificate is not valid"),
        ("A certificate is missing", "a certificate is missing"),
        ("", ""),
    ],
)
def test_a_sentence_becomes_a_part_of_another_one(sentence, part):
    assert lower(sentence) == part
