# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VRRP, version 2 (RFC 3768) and version 3 (RFC 5798, RFC 9568)."""
