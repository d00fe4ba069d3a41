"""keepalived's exit codes, as the two versions of Debian 12 and 13 really give them."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import keepalived_test

V12 = (2, 2, 7)
V13 = (2, 3, 3)
CONFIG = "/etc/keepalived/keepalived.conf"
CUT = f"({CONFIG}: Line 52) Truncating auth_pass to 8 characters"


def test_the_version_is_read_from_its_own_words():
    said = "Keepalived v2.2.7 (01/16,2022)\n\nCopyright(C) 2001-2022 Alexandre Cassen, <acassen@gmail.com>\n"
    assert keepalived_test.version(said) == V12
    assert keepalived_test.version("nothing of the kind") == ()


@pytest.mark.parametrize(
    "version, code, output",
    [
        (V12, 0, ""),
        (V12, 0, "failed to connect to syslog: Initialization"),
        (V12, 143, "Terminated"),
        (V12, 143, "failed to connect to syslog: Initialization\nTerminated\n"),
        (V13, 0, ""),
    ],
)
def test_a_good_file_is_accepted(version, code, output):
    assert keepalived_test.refusal(version, code, output, CONFIG) is None


@pytest.mark.parametrize(
    "version, code, output",
    [
        (V12, 5, CUT),
        (V13, 5, CUT),
        (V12, 143, CUT + "\nTerminated"),
        (V13, 143, "Terminated"),
        ((2, 2, 8), 143, "Terminated"),
        (V12, 6, ""),
        (V12, 4, ""),
        (V13, 1, ""),
        (V13, 139, ""),
    ],
)
def test_a_bad_file_is_refused(version, code, output):
    assert keepalived_test.refusal(version, code, output, CONFIG)


def test_the_refusal_repeats_its_words_once():
    assert keepalived_test.refusal(V12, 5, f"{CUT}\n{CUT}\n", CONFIG).count("Truncating") == 1


def test_a_script_that_it_takes_for_insecure_is_refused_with_what_makes_it_so():
    """keepalived 2.3 says no more than this, of a path whose folder is a link as well."""
    refusal = keepalived_test.refusal(V13, 5, "Disabling track script storage due to insecure", CONFIG)
    assert "script storage" in refusal and "only root may write" in refusal and "symbolic link" in refusal


def test_of_a_file_that_it_includes_the_first_line_that_it_does_not_take_is_named_and_none_is_repeated():
    shadow = [f"(/etc/shadow: Line {at}) Unknown keyword 'user{at}:secret{at}:'" for at in (1, 2)]
    refusal = keepalived_test.refusal(V12, 5, "\n".join([CUT, *shadow, *shadow]), CONFIG)
    assert "Line 52) Truncating" in refusal and "(/etc/shadow: Line 1) it does not take this line" in refusal
    assert "user" not in refusal and "Line 2" not in refusal
