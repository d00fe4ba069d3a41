"""Both engines judge RKE2's servers alike: by the API and by the supervisor, whose healthy answers are 401 and 403."""

from __future__ import annotations

import contextlib

import pytest
from support.lab import fetch
from support.waiting import happens

API, JOIN = 6443, 9345
BOTH, OTHER = {"node1", "node2"}, {"node2"}


def serving(hosts, vip, port):
    """Return which servers answer through a VIP."""
    answers = [fetch(hosts["client"], vip, port, "https") for _try in range(6)]
    return {answer.stdout.strip() for answer in answers}


@pytest.fixture(params=["lab_vip", "lab_vip2"], ids=["haproxy", "agent"])
def comes_to(request, hosts, variables):
    """Return a function that says whether a port is served by some servers before long."""
    vip = variables[request.param]
    return lambda port, servers: happens(lambda: serving(hosts, vip, port) == servers)


@contextlib.contextmanager
def meanwhile(host, inject, revert):
    host.check_output(inject)
    try:
        yield
    finally:
        host.check_output(revert)


def test_a_server_that_answers_401_and_403_is_healthy(comes_to):
    assert comes_to(API, BOTH) and comes_to(JOIN, BOTH)


def test_no_node_joins_at_a_supervisor_whose_api_server_is_down(hosts, comes_to):
    assert comes_to(JOIN, BOTH)
    with meanwhile(hosts["node1"], "systemctl stop standin-rke2-api", "systemctl start standin-rke2-api"):
        assert comes_to(API, OTHER) and comes_to(JOIN, OTHER)
    assert comes_to(API, BOTH) and comes_to(JOIN, BOTH)


def test_no_node_joins_at_a_supervisor_that_cannot_authenticate_it_yet(hosts, comes_to):
    assert comes_to(JOIN, BOTH)
    with meanwhile(hosts["node1"], "touch /run/supervisor.starting", "rm /run/supervisor.starting"):
        assert comes_to(JOIN, OTHER) and comes_to(API, BOTH)
    assert comes_to(JOIN, BOTH)


def test_the_api_goes_on_while_a_supervisor_is_down(hosts, comes_to):
    unit = "standin-rke2-supervisor"
    with meanwhile(hosts["node1"], f"systemctl stop {unit}", f"systemctl start {unit}"):
        assert comes_to(JOIN, OTHER) and comes_to(API, BOTH)
    assert comes_to(JOIN, BOTH)
