# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user writes stands in haproxy.cfg as one word, whatever characters it has: haproxy quotes as a shell does."""

from __future__ import annotations

import shlex

import pytest
from support.rendering import haproxy

ODD = ["#", "'", '"', "\\", "$HOME", "%[src]", "a,b", "{", "it's#1"]


def service(**check):
    return {"name": "web", "port": 443, "servers": ["192.0.2.31"], "check": check}


def words(begin, *services, **variables):
    """The words of the last line that begins with some words."""
    lines = [line.strip() for line in haproxy(list(services), **variables).splitlines()]
    return shlex.split([line for line in lines if line.startswith(begin)][-1])


@pytest.mark.parametrize("odd", ODD)
def test_a_user_and_a_password_are_one_word_each(odd):
    found = words("user ", haproxy_stats_user=f"ops{odd}", haproxy_stats_password=f"{odd}Vq8")[-3:]
    assert found == [f"ops{odd}", "insecure-password", f"{odd}Vq8"]


@pytest.mark.parametrize("odd", ODD)
def test_paths_are_one_word_each(odd):
    ca = f"/a{odd}b c"
    path = f"/a{odd}b".replace("#", "$")  # no client asks for a path with #
    assert words("stats uri", haproxy_stats_uri=path)[2] == path
    assert words("http-request use-service", haproxy_metrics_path=path)[-2:] == [path, "}"]
    assert words("option httpchk", service(type="http", path=path))[-1] == path
    assert words("http-check send", service(type="http", path=path, host="web.example"))[5] == path
    checked = service(type="https", verify=True, host="web.example", ca=ca)
    assert words("default-server check", checked)[-3] == ca
    assert words("monitor-uri", monitors=[{"name": "ready", "port": 9444, "path": path}])[1] == path


def test_an_ordinary_word_has_no_quotes():
    written = haproxy([], haproxy_stats_user="ops", haproxy_stats_password="Vq8-not-known")
    assert "    user ops insecure-password Vq8-not-known\n" in written and "    stats uri /haproxy_stats\n" in written
