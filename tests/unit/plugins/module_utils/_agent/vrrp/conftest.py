# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A case for each test of the daemon's life."""

from __future__ import annotations

import signal

import pytest
from support.vrrp.lifecycles import LifecycleCase


@pytest.fixture
def case(tmp_path, monkeypatch):
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
    before = [signal.getsignal(number) for number in numbers]
    yield LifecycleCase(tmp_path, monkeypatch)
    signal.set_wakeup_fd(-1)
    for number, handler in zip(numbers, before):
        signal.signal(number, handler)
