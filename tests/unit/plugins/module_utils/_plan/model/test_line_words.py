# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HAProxy reads 64 words of a line: whatever list is longer is on several, and nothing of it is lost."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from support.rendering import haproxy as rendered

NETWORKS = [f"10.{at}.0.0/16" for at in range(130)]
NAMES, BELOW = [f"h{at}.example" for at in range(130)], [f"*.d{at}.example" for at in range(130)]
PATHS = [f"/p{at}" for at in range(130)]
WEB = {"name": "web", "port": 8080, "mode": "http", "servers": ["192.0.2.31"]}
LIMIT = {"requests": 5}


def routed(hosts=(), paths=(), mode="http", **changes):
    route = {"name": "shop", "hosts": [*hosts], "paths": [*paths], "servers": ["192.0.2.32"], **changes}
    return {**WEB, "mode": mode, "routes": [route]}


LONG = {
    "who is not limited": {**WEB, "rate_limit": {**LIMIT, "except": NETWORKS}},
    "who is not limited, by connections": {**WEB, "rate_limit": {"connections": 5, "except": NETWORKS}},
    "who is let in": {**WEB, "allow": NETWORKS, "accept_proxy": NETWORKS},
    "hosts": routed(NAMES + BELOW),
    "hosts by TLS": routed(NAMES + BELOW, mode="tcp"),
    "paths": routed(paths=PATHS),
    "paths of a host": routed(["h0.example"], PATHS),
    "hosts of a path": routed(NAMES + BELOW, ["/p0"]),
    "hosts and paths": routed(NAMES + BELOW, PATHS, check={"type": "tcp"}),
    "hosts and paths without a fallback": routed(NAMES + BELOW, PATHS, backend_lines=["timeout check 1s"]),
}


def words_of(service, folder):
    """Have haproxy judge a configuration; return the words of its lines."""
    file, text = folder / "haproxy.cfg", rendered([service])
    file.write_text(text)
    done = subprocess.run(["haproxy", "-c", "-f", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    return [shlex.split(line, comments=True) for line in text.splitlines()]


@pytest.mark.parametrize("kind", LONG)
def test_no_line_has_more_words_than_haproxy_reads(tmp_path, kind):
    lines, few = words_of(LONG[kind], tmp_path), words_of(WEB, tmp_path)
    assert max(map(len, lines)) <= 64
    there = {word for line in lines for word in line} - {word for line in few for word in line}
    said = f"{LONG[kind]}"
    for word in [*NETWORKS, *NAMES, *BELOW, *PATHS]:
        assert (word.lstrip("*") in there) == (f"'{word}'" in said), word


@pytest.mark.parametrize(
    "route",
    [
        routed(NAMES[:51]),
        routed(BELOW[:49]),
        routed(paths=PATHS[:53]),
        routed(NAMES[:1], PATHS[:48]),
        routed(NAMES[:48], PATHS[:1]),
        routed(NAMES[:57], backend_lines=["timeout check 1s"]),
    ],
)
def test_what_one_line_has_room_for_stays_on_it(tmp_path, route):
    lines = [
        line
        for line in words_of(route, tmp_path)
        if line[:2] in (["use_backend", "shop"], ["use_backend", "shop-fallback"])
    ]
    assert len({line[1] for line in lines}) == len(lines)
    assert max(map(len, lines)) in (62, 63, 64)
