"""Other programs, and their absence."""

from __future__ import annotations

from lab import shell


def test_a_program_that_is_not_there_does_not_succeed():
    assert shell.succeeds(["true"])
    assert not shell.succeeds(["false"])
    assert not shell.succeeds(["no-such-program-anywhere"])
