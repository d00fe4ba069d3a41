# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""VIPs by BGP: what each member announces to which routers, when, and what becomes of it in a failure. Pure."""
