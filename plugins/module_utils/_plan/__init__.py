# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs on the controller: from variables and facts to a plan, its forecast and the configurations. Opens nothing."""
