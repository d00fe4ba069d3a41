"""A check that asks URLs is the same question for curl and for the agent."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import url_checks

READY, API = "http://localhost:9444/ready", "https://localhost:6443/readyz"


def test_a_bare_url_is_a_list_of_one():
    assert url_checks.any_of([READY, [API, READY]]) == ([[READY], [API, READY]], None)


@pytest.mark.parametrize(
    "given",
    [READY, [[]], [5], ["localhost:80"], ["ftp://localhost/"], ["http://a b/"], ["http://a/$x"], ["http://a/'"]]
    + [["http://a/;x"], ["http://a:0/"], ["http://a:99999/"], ["http://[::/"], [f"{READY}\n"], ["http://a/&b"]],
)
def test_what_a_shell_or_keepalived_would_read_otherwise_is_refused(given):
    found, wrong = url_checks.any_of(given)
    assert found is None and "such as http://localhost:1936/healthz" in wrong


def test_curl_asks_all_of_a_list_and_ends_with_the_first_that_fails():
    assert url_checks.command([[READY]], 2) == f"/usr/bin/curl --max-time 2 -kLfs -o /dev/null {READY}"
    both = url_checks.command([[API, READY]], 0.5)
    assert both == f"/usr/bin/curl --fail-early --max-time 0.5 -kLfs -o /dev/null {API} -o /dev/null {READY}"


def test_one_of_several_lists_is_enough():
    either = url_checks.command([[READY], [API]], 2)
    assert either.startswith("/usr/bin/sh -c '/usr/bin/curl ") and f"{READY} || /usr/bin/curl" in either


@pytest.mark.parametrize(
    "url, question",
    [
        (READY, ("http", "127.0.0.1", 9444, "/ready", "localhost")),
        (API, ("https", "127.0.0.1", 6443, "/readyz", "localhost")),
        ("http://192.0.2.1", ("http", "192.0.2.1", 80, "/", None)),
        ("https://[2001:db8::1]:8443/a?b=1", ("https", "2001:db8::1", 8443, "/a?b=1", None)),
    ],
)
def test_one_url_is_a_check_of_the_agents_own(url, question):
    found = url_checks.agent_check([[url]])
    assert tuple(found.get(key) for key in ("type", "address", "port", "path", "host")) == question


@pytest.mark.parametrize("asked", [[[READY, API]], [[READY], [API]], [["http://router.example/healthz"]], []])
def test_several_urls_and_names_take_curl(asked):
    assert url_checks.agent_check(asked) is None
