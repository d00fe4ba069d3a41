# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What several modules say of themselves in the same words."""

from __future__ import annotations


class ModuleDocFragment:
    """What Ansible looks for in this file."""

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
