# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The states of a member: saves them, returns to one, and does that by itself unless a run confirms its change."""
