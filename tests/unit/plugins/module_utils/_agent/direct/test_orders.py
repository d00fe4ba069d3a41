# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of orders: what is read is what was written, and what is no order is none."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.orders import NAME, OrdersFile


class Log:
    def __init__(self):
        self.faults, self.cures = [], []

    def fault(self, _key, text):
        self.faults.append(text)

    def cured(self, _key, text):
        self.cures.append(text)


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def file(tmp_path, log):
    return OrdersFile(str(tmp_path / "status.sock"), log)


def test_what_was_ordered_is_read_again(file, tmp_path):
    assert file.read() == {}
    file.write({"api/a": "drain", "api/b": "maint"})
    assert file.read() == {"api/a": "drain", "api/b": "maint"}
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


@pytest.mark.parametrize("text", ["", "[]", "nonsense", '{"api/a": "ready", "api/b": "stop", "api/c": ["drain"]}'])
def test_what_is_no_order_is_left_out(file, tmp_path, text):
    (tmp_path / NAME).write_text(text)
    assert file.read() == {}


def test_a_file_that_cannot_be_written_is_a_fault_in_the_log(tmp_path, log):
    OrdersFile(str(tmp_path / "missing" / "status.sock"), log).write({"api/a": "drain"})
    (fault,) = log.faults
    assert "Orders will not survive a restart" in fault and "missing" in fault
