# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an operator asks of a pair or a cluster that runs: its status, a switchover, and a maintenance."""
