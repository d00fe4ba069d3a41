# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Documentation that several modules share."""

from __future__ import annotations


class ModuleDocFragment:
    """The class that Ansible loads from this file."""

    # A module that only reads.
    READS_ONLY = r"""
options: {}
attributes:
  check_mode:
    description: Changes nothing in either mode.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
  platform:
    description: Linux.
    platforms: linux
    support: full
"""
