# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only privileged code: VRRP's raw sockets, announcements (ARP, NDP), and the kernel's addresses and links."""
