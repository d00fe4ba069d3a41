# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filters with which templates write what a user wrote. The .yml of each describes it."""

from __future__ import annotations

import functools

from ansible.errors import AnsibleFilterError
from ansible_collections.onprem.lb.plugins.module_utils._shared import quoting


def raising_for_ansible(function):
    """Raise Ansible's error for a text that cannot be quoted."""

    @functools.wraps(function)
    def guarded(text):
        try:
            return function(text)
        except quoting.Unquotable as error:
            raise AnsibleFilterError(str(error)) from error  # without the text, which may be a password

    return guarded


class FilterModule:
    """The class that Ansible loads from this file."""

    def filters(self):
        return {
            "haproxy_quote": raising_for_ansible(quoting.haproxy),
            "haproxy_words": raising_for_ansible(quoting.haproxy_words),
            "keepalived_command": raising_for_ansible(quoting.keepalived_command),
            "keepalived_quote": raising_for_ansible(quoting.keepalived),
            "systemd_command": raising_for_ansible(quoting.systemd_command),
        }
