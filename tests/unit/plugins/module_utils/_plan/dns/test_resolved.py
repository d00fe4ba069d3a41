# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The name servers in systemd-resolved's configuration, as dnsmasq writes them."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.dns import resolved

OWN = "/etc/systemd/resolved.conf.d/zz-onprem-lb.conf"


def servers(*lines, file="/etc/systemd/resolved.conf"):
    return resolved.servers("\n".join([f"# {file}", "[Resolve]", *lines, ""]), OWN)


@pytest.mark.parametrize(
    "written, servers_of_dnsmasq",
    [
        ("192.0.2.1", ["192.0.2.1"]),
        ("192.0.2.1:5353", ["192.0.2.1#5353"]),
        ("192.0.2.1#dns.example", ["192.0.2.1"]),
        ("192.0.2.1:853%eth0#dns.example", ["192.0.2.1#853"]),
        ("2001:db8::1", ["2001:db8::1"]),
        ("2001:db8::1#dns.example", ["2001:db8::1"]),
        ("[2001:db8::1]:5353", ["2001:db8::1#5353"]),
        ("192.0.2.1 192.0.2.2 192.0.2.1", ["192.0.2.1", "192.0.2.2"]),
        ("dns.example", []),
        ("", []),
    ],
)
def test_each_form_of_a_server_is_read(written, servers_of_dnsmasq):
    assert servers(f"DNS={written}") == servers_of_dnsmasq


def test_an_empty_setting_forgets_those_before():
    assert servers("DNS=192.0.2.1", "DNS=", "DNS=192.0.2.2") == ["192.0.2.2"]


def test_comments_and_other_settings_name_no_server():
    assert servers("#DNS=192.0.2.1", "FallbackDNS=192.0.2.2", "DNSSEC=no") == []


def test_the_drop_in_of_this_collection_neither_names_nor_forgets_any():
    config = "# /etc/systemd/resolved.conf\nDNS=192.0.2.1\n\n"
    assert resolved.servers(f"{config}# {OWN}\n{resolved.drop_in('# M', '192.0.2.9', ['a'])}", OWN) == ["192.0.2.1"]
