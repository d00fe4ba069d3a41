# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which member holds each VIP in every failure, and for how long none does: the agent's state machine, simulated."""
