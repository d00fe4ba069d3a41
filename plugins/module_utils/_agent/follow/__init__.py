# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The balancer follows the cluster: `python3 agent.pyz follow`.

``nodes`` reads what the API server says of a node, ``membership`` decides which nodes are servers, and ``watching`` is
the protocol of lists and watches: all three are pure. ``api`` speaks HTTP, and ``follower`` drives it in a thread.
``lifecycle`` keeps each new list in ``state``, and ``balancers`` applies it: to ``haproxy`` by its runtime API, to the
agent's ``proxy`` by its control socket, to both by their file, which outlives a restart.
"""
