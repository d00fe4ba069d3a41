# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Raw lines for `global` that haproxy.cfg has already: refused where HAProxy itself says so, and nothing else."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import components
from support.rendering import haproxy

# What distributions' own files and guides have in `global`, the role's own lines among them.
PASTED = """
log /dev/log local0
chroot /var/lib/haproxy
stats socket /run/haproxy/admin.sock mode 660 level admin
stats socket /run/haproxy/mine.sock mode 660 level admin
stats socket unix@/run/haproxy/admin.sock
stats socket /var/run/haproxy/admin.sock
stats timeout 30s
user haproxy
group haproxy
uid 0
gid 0
daemon
maxconn 4000
hard-stop-after 1h
nbthread 2
ca-base /etc/ssl/certs
tune.bufsize 16384
# user haproxy
description user of chroot
""".strip().splitlines()
REFUSED = ("chroot", "user", "uid", "group", "gid")
SOCKET = "has the path of haproxy's runtime socket: choose another path, or leave it out."


def faults(**given):
    return components.faults({f"haproxy_{key}": value for key, value in given.items()})


def is_refused(line, **others):
    return bool(faults(global_lines=[line], **others))


def said(line, folder, **others):
    """Return what the installed HAProxy says of a line behind those of the role."""
    text = haproxy([], **others)
    own = "    hard-stop-after 1h\n"
    assert own in text
    file = folder / "haproxy.cfg"
    file.write_text(text.replace(own, f"{own}    {line}\n"))
    return subprocess.run(["haproxy", "-c", "-f", file], check=False, capture_output=True, text=True).stderr


@pytest.mark.skipif(not shutil.which("haproxy"), reason="haproxy is not installed")
@pytest.mark.parametrize("maxconn", [0, 5000])
@pytest.mark.parametrize("line", PASTED)
def test_what_haproxy_calls_already_specified_is_refused_and_nothing_else(tmp_path, line, maxconn):
    others = {"maxconn": maxconn} if maxconn else {}
    is_again = "already specified" in (words := said(line, tmp_path, **{f"haproxy_{k}": v for k, v in others.items()}))
    is_socket = "stats socket" in line and "admin.sock" in line  # of which HAProxy says nothing
    assert is_refused(line, **others) == (is_again or is_socket), words


def test_one_sentence_names_the_line_and_the_mend_and_shows_no_argument():
    (found,) = faults(global_lines=["daemon", "chroot /srv/secret"])
    assert found == (
        "haproxy_global_lines is ['daemon', 'chroot ...']: line 2 has chroot, of which HAProxy keeps the first, the "
        "role's own: leave it out."
    )


@pytest.mark.parametrize("path", ["/run/haproxy/admin.sock", "/var/run/haproxy/admin.sock", "/var/lib/haproxy/stats"])
def test_the_runtime_socket_is_one_on_each_distribution(path):
    (found,) = faults(global_lines=[f"stats socket {path} mode 600"])
    assert found.endswith(f"line 1 {SOCKET}")


def test_a_section_global_in_extra_lines_is_the_same_section():
    (found,) = faults(extra_lines=["frontend x", "  bind :81", "  description user", "global", "  user haproxy"])
    assert "haproxy_extra_lines is" in found and "line 5 has user" in found
    assert faults(extra_lines=["userlist x", "  user a insecure-password b", "  group g users a"]) == []
    assert faults(extra_lines=["global", "  daemon", "userlist x", "  user a insecure-password b"]) == []


@pytest.mark.parametrize("key, lines", [("global_lines", ["maxconn 5"]), ("extra_lines", ["global", "maxconn 5"])])
def test_a_second_limit_of_connections_is_refused_beside_the_variable_alone(key, lines):
    assert faults(**{key: lines}) == []
    assert faults(maxconn="0", **{key: lines}) == []
    for services in ({}, {"services": [{"name": "web", "port": 80, "servers": ["192.0.2.31"]}]}):
        (found,) = faults(maxconn=100, **{key: lines}, **services)
        assert found == (
            f"haproxy_{key}: line {len(lines)} has maxconn, and haproxy_maxconn is set: leave one of them out."
        )


@pytest.mark.parametrize("lines", [None, 5, {"a": 1}, [5], [None], "", [], [""], ["   "], "a\n\nb", ["{{ x }}"]])
def test_odd_lines_are_judged_as_before(lines):
    assert len(faults(global_lines=lines)) == (lines in (None, 5, {"a": 1}, [5], [None]))
