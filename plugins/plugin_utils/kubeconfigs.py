# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads kubeconfigs, on the controller."""

from __future__ import annotations

import base64
from typing import Optional, Tuple

import yaml
from ansible_collections.onprem.lb.plugins.module_utils._agent.config.schema import Faults
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import kubeconfig
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.kubeconfig import Credentials

NO_YAML = "it is not YAML: write it again, for example with `kubectl config view --raw --minify --flatten`."
UNREADABLE = "it cannot be read on this member, or is empty: name a kubeconfig that every member has."


def read(text: str, path: str) -> Tuple[Optional[Credentials], Faults]:
    """Return what a kubeconfig says, or what is wrong with it. What YAML says of it may quote a secret."""
    try:
        return kubeconfig.read(yaml.safe_load(text), path)
    except (RecursionError, yaml.YAMLError):
        return None, [f"{path}: {NO_YAML}"]


def read_slurped(content: str, path: str) -> Tuple[Optional[Credentials], Faults]:
    """Return the same for a file of a member, which `ansible.builtin.slurp` has read.

    :param content: '' if it could not be read
    """
    if not content:
        return None, [f"{path}: {UNREADABLE}"]
    try:
        text = base64.b64decode(content).decode()
    except ValueError:
        return None, [f"{path}: {NO_YAML}"]
    return read(text, path)
