# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The balancer, the router and `follow` of a member as static pods: what the kubelet and they read. Pure."""
