"""Reading what a user wrote."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils import _schema


@pytest.mark.parametrize("value, expected", [("yes", True), ("False", False), (True, True), ("off", False)])
def test_truth_is_read_as_yaml_and_as_ini_write_it(value, expected):
    assert _schema.boolean(value) == (expected, None)


@pytest.mark.parametrize(
    "check, value",
    [
        (_schema.boolean, "perhaps"),
        (_schema.integer(1, 5), True),
        (_schema.integer(1, 5), "1.5"),
        (_schema.integer(1, 5), 6),
        (_schema.number(1, 5), "nan"),
        (_schema.number(1, 5), None),
        (_schema.address, "300.1.1.1"),
        (_schema.text, "two\nlines"),
        (_schema.word, "a b"),
        (_schema.lines, [1]),
        (_schema.list_of(_schema.port), "80"),
        (_schema.one_of("a", "b"), "c"),
    ],
)
def test_what_is_wrong_is_said(check, value):
    good, wrong = check(value)
    assert good is None and wrong.endswith("wanted.")


def test_numbers_keep_whole_ones_whole():
    assert _schema.number(0, 5)("2.0") == (2, None)
    assert _schema.number(0, 5)(0.5) == (0.5, None)


def test_raw_lines_may_be_a_text_or_a_list():
    assert _schema.lines("a\nb  \n") == (["a", "b"], None)
    assert _schema.lines(["a"]) == (["a"], None)


def test_only_a_nearly_right_variable_counts_as_misspelt():
    found = _schema.misspelt(["pair_vipz", "pair_vips", "pair_of_shoes"], ["pair_vips", "pair_vrid"])
    assert found == ["pair_vipz is no variable of the role: did you mean pair_vips?"]
