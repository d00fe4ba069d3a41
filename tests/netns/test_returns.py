# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services without servers: what a client of a real HAProxy gets, byte by byte."""

from __future__ import annotations

import http.client
import shutil
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import balancer
from support.netns.links import PORT, temporary_link
from support.netns.namespaces import inside
from support.netns.two_servers import ELSEWHERE
from support.rendering import haproxy as render
from support.waiting import LIMIT_S, until

TEXT = '<p>Back at 18:00: it\'s 100% "planned" # not a comment \\n $HOME %[path] äöü</p>\n\n\tend\n'
SERVICES = [
    {
        "name": "front",
        "port": PORT,
        "mode": "http",
        "return": {"status": 404},
        "routes": [
            {"name": "old", "hosts": ["old.example"], "return": {"status": 308, "prefix": "https://new.example"}},
            {"name": "one", "paths": ["/one"], "return": {"status": 302, "location": "/other%20place?a=%[src]"}},
            {
                "name": "closed",
                "paths": ["/closed"],
                "return": {"status": 503, "content": TEXT, "content_type": "text/html; charset=utf-8"},
            },
            {"name": "long", "paths": ["/long"], "return": {"status": 200, "content": "x'y\n" * 2000}},
        ],
    }
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("haproxy")


@pytest.fixture(scope="module")
def link(folder):
    with temporary_link(2) as made:
        text = render(SERVICES, haproxy_stats_enabled=False)
        lines = [line for line in text.splitlines() if line.split()[:1] and line.split()[0] not in ELSEWHERE]
        lines += ["global", f"    stats socket {folder / 'sock'}", ""]
        (folder / "haproxy.cfg").write_text("\n".join(lines))
        command = [shutil.which("haproxy"), "-db", "-f", str(folder / "haproxy.cfg")]
        process = subprocess.Popen(["ip", "netns", "exec", made.lb1.namespace, *command])
        try:
            until(lambda: f":{PORT}" in made.lb1.output("ss", "-Hltn"))
            yield made
        finally:
            process.terminate()
            process.wait(LIMIT_S)


def ask(link, path, host="www.example"):
    with inside(link.client.namespace):
        client = http.client.HTTPConnection(link.lb1.addresses[0], PORT, timeout=LIMIT_S)
        client.request("GET", path, headers={"Host": host})
        answer = client.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def test_what_no_route_takes_is_answered_by_the_service(link):
    assert ask(link, "/anything")[0] == 404


def test_a_redirect_by_prefix_keeps_what_was_asked_for(link):
    status, headers, _text = ask(link, "/a/b?c=d%20e", "old.example")
    assert (status, headers["location"]) == (308, "https://new.example/a/b?c=d%20e")


def test_a_redirect_to_a_location_is_that_one_as_it_is_written(link):
    status, headers, _text = ask(link, "/one/more")
    assert (status, headers["location"]) == (302, "/other%20place?a=%[src]")


def test_a_text_arrives_as_it_is_written(link):
    status, headers, text = ask(link, "/closed")
    assert (status, headers["content-type"], text) == (503, "text/html; charset=utf-8", TEXT)
    status, headers, text = ask(link, "/long")
    assert (status, headers["content-type"], text) == (200, "text/plain; charset=utf-8", "x'y\n" * 2000)


def test_the_status_counts_no_server_and_misses_none(link, folder):
    found = balancer.of_statistics(balancer.ask(str(folder / "sock")), (folder / "haproxy.cfg").read_text())
    assert found == balancer.unserved(found) == []
    assert balancer.is_known(found) and balancer.summary(found)["others"] == []
