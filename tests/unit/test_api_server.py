# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in API server, held against Kubernetes' own Python client."""

from __future__ import annotations

import threading

import pytest
from kubernetes import client, watch
from support.agent.certificates import Certificate
from support.follow.api_server import TOKEN, ApiServer
from support.follow.nodes import LABEL, node
from support.waiting import LIMIT_S, until

SELECTOR = f"{LABEL}="


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return Certificate(tmp_path_factory.mktemp("api"), "IP:127.0.0.1")


@pytest.fixture
def server(certificate):
    with ApiServer(certificate) as found:
        yield found


@pytest.fixture
def nodes(server, certificate):
    """Kubernetes' client for nodes."""
    about = client.Configuration()
    about.host, about.ssl_ca_cert = server.url, certificate.file
    about.api_key, about.api_key_prefix = {"authorization": TOKEN}, {"authorization": "Bearer"}
    about.retries = False
    with client.ApiClient(about) as api:
        yield client.CoreV1Api(api)


def names(listed):
    return [each.metadata.name for each in listed.items]


def test_a_list_has_the_nodes_with_the_label_and_their_fields(server, nodes):
    server.put(node("a", "10.0.0.1"), node("worker", "10.0.0.2", labels=()), node("b", "10.0.0.3", ready=False))
    found = nodes.list_node(label_selector=SELECTOR)
    assert names(found) == ["a", "b"]
    assert found.items[0].status.addresses[1].address == "10.0.0.1"
    assert [each.status.conditions[1].status for each in found.items] == ["True", "Unknown"]
    assert int(found.metadata.resource_version) >= int(found.items[1].metadata.resource_version)


def test_pages_are_of_one_moment(server, nodes):
    server.put(*(node(name, "10.0.0.1") for name in "abc"))
    first = nodes.list_node(limit=2)
    server.put(node("d", "10.0.0.4"))
    second = nodes.list_node(limit=2, _continue=first.metadata._continue)
    assert names(first) + names(second) == ["a", "b", "c"] and not second.metadata._continue
    assert first.metadata.resource_version == second.metadata.resource_version


def test_a_page_expires(server, nodes):
    server.put(*(node(name, "10.0.0.1") for name in "abc"))
    first = nodes.list_node(limit=2)
    server.expire()
    with pytest.raises(client.ApiException) as refused:
        nodes.list_node(limit=2, _continue=first.metadata._continue)
    assert refused.value.status == 410


def test_a_watch_says_what_changes_since_a_version_and_ends_in_time(server, nodes):
    server.put(node("a", "10.0.0.1"))
    version = nodes.list_node().metadata.resource_version
    server.put(node("b", "10.0.0.2"), node("a", "10.0.0.9"), node("c", "10.0.0.3", labels=()))
    server.put(node("b", "10.0.0.2", labels=()))
    server.remove("a")
    seen = watch.Watch().stream(nodes.list_node, label_selector=SELECTOR, resource_version=version, timeout_seconds=1)
    events = [(event["type"], event["object"].metadata.name) for event in seen]
    assert events == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b"), ("DELETED", "a")]


def test_a_watch_hears_of_changes_and_bookmarks_while_it_is_open(server, nodes):
    version = nodes.list_node().metadata.resource_version
    follower, events = watch.Watch(), []

    def follow():
        for event in follower.stream(
            nodes.list_node, resource_version=version, allow_watch_bookmarks=True, timeout_seconds=10
        ):
            events.append(event["type"])
            if event["type"] == "ADDED":
                follower.stop()

    thread = threading.Thread(target=follow)
    thread.start()
    until(lambda: server.watches)
    server.bookmark()
    until(lambda: events)
    server.put(node("a", "10.0.0.1"))
    thread.join(LIMIT_S)
    assert events == ["BOOKMARK", "ADDED"] and not thread.is_alive()


@pytest.mark.parametrize("as_status", [False, True])
def test_a_watch_from_an_expired_version_is_410(as_status, server, nodes):
    server.expired_as_status = as_status
    server.put(node("a", "10.0.0.1"))
    version = nodes.list_node().metadata.resource_version
    server.expire()
    with pytest.raises(client.ApiException) as refused:
        list(watch.Watch().stream(nodes.list_node, resource_version=version, timeout_seconds=1))
    assert refused.value.status == 410


def test_a_token_that_it_does_not_know_is_401(server, nodes):
    server.tokens = {"another"}
    with pytest.raises(client.ApiException) as refused:
        nodes.list_node()
    assert refused.value.status == 401 and "Unauthorized" in refused.value.body


def test_it_refuses_as_a_test_wants_it(server, nodes):
    server.refusing = [(429, {"Retry-After": "1"})]
    with pytest.raises(client.ApiException) as refused:
        nodes.list_node()
    assert refused.value.status == 429 and refused.value.headers["Retry-After"] == "1"
    assert names(nodes.list_node()) == []
