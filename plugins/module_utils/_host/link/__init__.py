# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is heard and asked on a link: VRRP routers, and who answers for an address."""

from __future__ import annotations
