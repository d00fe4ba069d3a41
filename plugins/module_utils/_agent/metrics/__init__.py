# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Metrics of a host for Prometheus, the same for keepalived and for the agent: `python3 agent.pyz metrics`.

``dumps`` reads what keepalived writes, ``keepalived`` has it written, ``served`` says which certificates haproxy
serves, ``parts`` asks the agent's other daemons and the resolver, ``host`` puts all of it into one text, and ``writer``
keeps a file of it for node_exporter.
"""
