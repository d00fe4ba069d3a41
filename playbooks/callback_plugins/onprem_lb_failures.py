# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible loads what is here with each playbook beside it."""

from __future__ import annotations

from ansible_collections.onprem.lb.plugins.callback.failures import CallbackModule

__all__ = ("CallbackModule",)
