# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one version leaves to the next, and what becomes of it."""

from __future__ import annotations

import os
import socket
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import upgrade_state
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime.loop import Loop
from support.agent.loops import run_until
from support.agent.programs import is_there


@pytest.fixture
def loop():
    found = Loop()
    yield found
    found.close()


def child(program):
    return os.posix_spawn(sys.executable, [sys.executable, "-S", "-c", program], {})


def test_a_child_that_ends_later_is_reaped(loop, tmp_path):
    sign = tmp_path / "sign"
    pid = child(f"import os, time\nwhile not os.path.exists({str(sign)!r}): time.sleep(0.01)")
    upgrade_state.reap(loop, pid)
    assert is_there(pid)
    sign.touch()
    run_until(loop, lambda: not is_there(pid))


def test_a_child_that_was_reaped_elsewhere_is_no_fault(loop):
    pid = child("")
    os.waitpid(pid, 0)
    upgrade_state.reap(loop, pid)


def test_what_is_left_is_taken_once():
    memory = upgrade_state.save({"since": 1.5})
    environ = {upgrade_state.VARIABLE: str(memory), "HOME": "/"}
    assert upgrade_state.load(environ) == {"since": 1.5}
    assert environ == {"HOME": "/"} and upgrade_state.load(environ) is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(memory)


def test_a_socket_that_was_handed_over_is_not_inherited_by_accident():
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    number = one.detach()
    os.set_inheritable(number, True)
    with other, upgrade_state.socket_of(number) as found:
        assert (found.family, found.type, found.getblocking()) == (socket.AF_UNIX, socket.SOCK_SEQPACKET, False)
        assert not os.get_inheritable(number)
