# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a host asks its own resolver: ``resolv_conf`` says what /etc/resolv.conf becomes, ``files`` replaces it, and
``keeper`` is the service that keeps it so, whoever writes it and whether the resolver runs.
"""
