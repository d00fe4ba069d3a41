# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables are named as the user has written them."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.module_utils._plan.model import variables


def test_only_a_nearly_right_name_counts_as_a_misspelt_variable():
    found = variables.unknown_variables(["pair_vipz", "pair_vips", "pair_of_shoes"], ["pair_vips", "pair_vrid"])
    assert found == ["pair_vipz is no variable of the role: did you mean pair_vips?"]


def test_a_key_of_the_settings_is_shown_as_the_roles_variable_and_a_nested_key_as_it_is():
    assert variables.as_role_variables("pair.vrid is 0: ...", "pair") == "pair_vrid is 0: ..."
    assert variables.as_role_variables("pair_vips[0].vrid is 0: ...", "pair") == "pair_vips[0].vrid is 0: ..."
