"""Reading what a user wrote."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.config import schema


@pytest.mark.parametrize("value, expected", [("yes", True), ("False", False), (True, True), ("off", False)])
def test_truth_is_read_as_yaml_and_as_ini_write_it(value, expected):
    assert schema.boolean(value) == (expected, None)


@pytest.mark.parametrize(
    "check, value",
    [
        (schema.boolean, "perhaps"),
        (schema.integer(1, 5), True),
        (schema.integer(1, 5), "1.5"),
        (schema.integer(1, 5), 6),
        (schema.number(1, 5), "nan"),
        (schema.number(1, 5), None),
        (schema.address, "300.1.1.1"),
        (schema.text, "two\nlines"),
        (schema.word, "a b"),
        (schema.lines, [1]),
        (schema.list_of(schema.port), "80"),
        (schema.one_of("a", "b"), "c"),
    ],
)
def test_what_is_wrong_is_said(check, value):
    good, wrong = check(value)
    assert good is None and wrong.endswith("required.")


def test_numbers_keep_whole_ones_whole():
    assert schema.number(0, 5)("2.0") == (2, None)
    assert schema.number(0, 5)(0.5) == (0.5, None)


def test_raw_lines_may_be_a_text_or_a_list():
    assert schema.lines("a\nb  \n") == (["a", "b"], None)
    assert schema.lines(["a"]) == (["a"], None)


@pytest.mark.parametrize("text", ["[192.0.2.10]", "['192.0.2.10']", ' ["192.0.2.10"'])
def test_a_text_that_looks_like_a_list_is_told_how_to_become_one(text):
    mend = 'a list is required, and this is a string: put each item into double quotes, as in ["a", "b"].'
    assert schema.list_of(schema.word)(text) == (None, mend)
    faults = []
    assert schema.read_list({}, text, "services", faults) == [] and faults[0].endswith(mend)


@pytest.mark.parametrize("value", ["192.0.2.10", {}, 1])
def test_what_is_no_list_at_all_is_told_that_one_is_wanted(value):
    assert schema.list_of(schema.word)(value) == (None, "a list is required.")
