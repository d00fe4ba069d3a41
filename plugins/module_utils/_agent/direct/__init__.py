# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Direct return: the balancer passes frames on to the servers, and the servers answer the clients: `agent.pyz direct`.

``buckets`` says which server gets which connections. ``rulesets`` says it to nftables: on a balancer, which rewrites
frames, and on a server, which hands on what belongs to a connection of another one. Both are pure.

``plane`` puts together what the proxy's health checks and ``macs`` find, and ``writer`` keeps the kernel's table as
that wants it, through ``nft``. ``lifecycle`` is the daemon around them.
"""
