# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The embedded agent: pure Python, standard library only, nothing of Ansible. Imports within it are relative."""

from __future__ import annotations

VERSION = "1.1.0-dev"  # the collection's
