# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of the host: what fails is one line."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.runtime import commands


@pytest.mark.parametrize(
    "command, complaint",
    [
        (("/bin/true",), ""),
        (("/bin/false",), "exit code 1."),
        (("/bin/sh", "-c", "echo one; echo '[ALERT] two' >&2; exit 2"), "[ALERT] two."),
        (("/nonexistent",), "/nonexistent cannot be run: no such file or directory."),
    ],
)
def test_a_program_that_fails_has_a_complaint(command, complaint):
    assert commands.run(*command) == complaint


def test_a_program_that_does_not_end_is_a_complaint(monkeypatch):
    monkeypatch.setattr(commands, "TIMEOUT", 0.1)
    assert commands.run("/bin/sleep", "9") == "/bin/sleep has not ended within 0.1 s."
