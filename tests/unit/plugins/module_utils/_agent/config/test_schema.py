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
    assert good is None and " required" in wrong


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


@pytest.mark.parametrize(
    "value, mend",
    [
        (1, "."),
        ({}, "."),
        ("192.0.2.10", ', such as ["a", "b"].'),
        ({"name": "web"}, ": write [ ] around it."),
        (
            {"web": {"port": 80}},
            ": write [ ] around the items, and move each key into its item.",
        ),
    ],
)
def test_what_is_no_list_is_told_how_to_become_one(value, mend):
    assert schema.list_of(schema.word)(value) == (None, f"a list is required{mend}")


@pytest.mark.parametrize("value, mend", [("httpchk", ": did you mean http?"), ("udp", "."), (["http"], ".")])
def test_a_word_that_is_not_one_of_the_known_is_told_the_nearest(value, mend):
    assert schema.one_of("tcp", "http")(value) == (None, f"one of tcp, http is required{mend}")


@pytest.mark.parametrize("value, mend", [("3s", ", without a unit: write 3."), ("0.0s", "."), ("9ms", "."), ("s", ".")])
def test_seconds_are_written_without_their_unit(value, mend):
    assert schema.number(0.1, 60, " seconds")(value) == (None, f"a number from 0.1 to 60 seconds is required{mend}")
    assert schema.number(0.1, 60)(value) == (None, "a number from 0.1 to 60 is required.")


@pytest.mark.parametrize(
    "value, mend", [(12345678, ": put it into quotes."), (True, ": put it into quotes."), ([], ".")]
)
def test_a_text_of_digits_is_told_to_stand_in_quotes(value, mend):
    assert schema.text(value) == (None, f"one line of text is required{mend}")


@pytest.mark.parametrize("given, mend", [("smtp", ": write {type: smtp}."), ("icmp", "."), (5, ".")])
def test_the_type_alone_is_told_to_become_the_whole_mapping(given, mend):
    kinds = {"type": schema.Field(schema.one_of("tcp", "smtp")), "port": schema.Field(schema.port)}
    faults = []
    assert schema.read(kinds, given, "check", faults) == {"type": None, "port": None}
    assert faults == [f"check is {given!r}: a mapping with the keys type, port is required{mend}"]
