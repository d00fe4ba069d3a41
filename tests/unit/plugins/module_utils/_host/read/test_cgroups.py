# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process is told by the unit, container or pod that it runs in, whatever writes the paths of cgroups."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import cgroups

ID = "4f2a1b3c9d0e" + "0" * 52
UID = "0c2b7e54-61a0-4d6e-9a51-2f6d1a3b4c5d"
SLICE = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice"
CHECKSUM = "d41d8cd98f00b204e9800998ecf8427e"
STATIC = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{CHECKSUM}.slice"


@pytest.mark.parametrize(
    "path, words",
    [
        ("/system.slice/haproxy.service", "haproxy.service"),
        ("/system.slice/system-haproxy.slice/haproxy@two.service/workers", "haproxy@two.service"),
        ("/user.slice/user-0.slice/session-3.scope", "session-3.scope"),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/haproxy.service", "user@1000.service"),
        (f"/system.slice/docker-{ID}.scope", "the docker container 4f2a1b3c9d0e"),
        (f"/docker/{ID}", "the container 4f2a1b3c9d0e"),
        (f"/machine.slice/libpod-{ID}.scope/container", "the podman container 4f2a1b3c9d0e"),
        (f"/system.slice/haproxy.service/libpod-payload-{ID}", "the podman container 4f2a1b3c9d0e"),
        ("/lxc.payload.web/system.slice/haproxy.service", "the LXC container web"),
        (f"/machine.slice/libpod-{ID}.scope/system.slice/haproxy.service", "the podman container 4f2a1b3c9d0e"),
        (f"/{SLICE}/cri-containerd-{ID}.scope", f"the pod {UID}"),
        (f"/{SLICE}/crio-{ID}.scope", f"the pod {UID}"),
        (f"/kubepods/burstable/pod{UID}/{ID}", f"the pod {UID}"),
        (f"/{STATIC}/crio-{ID}.scope", f"the static pod {CHECKSUM}"),
        ("/", ""),
    ],
)
def test_the_path_tells(path, words):
    assert str(cgroups.runs_in(f"0::{path}\n")) == words


@pytest.mark.parametrize(
    "text, words",
    [
        ("9:name=systemd:/system.slice/haproxy.service\n0::/system.slice/haproxy.service\n", "haproxy.service"),
        ("4:memory:/system.slice\n1:name=systemd:/system.slice/haproxy.service\n0::/\n", "haproxy.service"),
        (f"8:pids:/\n1:name=systemd:/\n0::/system.slice/docker-{ID}.scope\n", "the docker container 4f2a1b3c9d0e"),
        ("4:memory:/a.service\n", ""),
        ("", ""),
        ("nonsense", ""),
    ],
)
def test_systemds_own_hierarchy_counts_in_every_version(text, words):
    assert str(cgroups.runs_in(text)) == words


@pytest.mark.parametrize(
    "inside, words", [("haproxy.service", "haproxy.service"), (f"docker-{ID}.scope", "the docker")]
)
def test_on_a_host_that_is_a_container_itself_that_container_does_not_count(inside, words):
    host = f"0::/machine.slice/libpod-{'1' * 64}.scope"
    found = cgroups.runs_in(f"{host}/system.slice/{inside}\n", f"{host}/init.scope\n")
    assert str(found).startswith(words)
