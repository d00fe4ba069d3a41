# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Raw lines for `global` that haproxy.cfg has already: refused where they take the runtime socket away."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import components

SOCKET = "has the path of haproxy's runtime socket: choose another path, or leave it out."


def faults(**given):
    return components.faults({f"haproxy_{key}": value for key, value in given.items()})


@pytest.mark.parametrize("path", ["/run/haproxy/admin.sock", "/var/run/haproxy/admin.sock", "/var/lib/haproxy/stats"])
def test_the_runtime_socket_is_one_on_each_distribution(path):
    (found,) = faults(global_lines=[f"stats socket {path} mode 600"])
    assert found.endswith(f"line 1 {SOCKET}")


@pytest.mark.parametrize(
    "line", ["stats socket unix@/run/haproxy/admin.sock", "  stats socket /run/haproxy/admin.sock"]
)
def test_a_section_global_in_extra_lines_is_the_same_section(line):
    (found,) = faults(extra_lines=["frontend x", "  bind :81", "global", line])
    assert "haproxy_extra_lines is" in found and found.endswith(f"line 4 {SOCKET}")
    assert faults(extra_lines=["userlist x", line]) == []


@pytest.mark.parametrize("line", ["user haproxy", "chroot /srv", "maxconn 5", "stats socket /run/haproxy/mine.sock"])
def test_what_haproxy_goes_on_without_is_taken(line):
    assert faults(global_lines=[line], maxconn=100) == []


@pytest.mark.parametrize("lines", [None, 5, {"a": 1}, [5], [None], "", [], [""], ["   "], "a\n\nb", ["{{ x }}"]])
def test_odd_lines_are_judged_as_before(lines):
    assert len(faults(global_lines=lines)) == (lines in (None, 5, {"a": 1}, [5], [None]))
