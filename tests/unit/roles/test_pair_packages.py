# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which packages a member of a pair needs, whatever its variables are: a drill looks for them before it judges."""

from __future__ import annotations

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from support.roles import defaults, variables_of

USUAL = ["haproxy", "keepalived", "psmisc"]


@pytest.mark.parametrize(
    "checks, more",
    [
        ([], []),
        ([{"gateway": "192.0.2.254"}, {"interface": "eth1"}], []),
        ([{"gateway": "192.0.2.254"}, {"url": "http://localhost/up"}], ["curl"]),
        ("eth1", []),
        ({"url": "http://localhost/up"}, ["curl"]),
        (None, []),
    ],
)
def test_curl_is_one_of_them_where_a_url_is_checked(checks, more):
    known = {**defaults("pair"), **variables_of("pair"), "pair_checks": checks, "pair_members": [], "pair_vips": []}
    found = Templar(loader=DataLoader(), variables=known).template(known["__pair_layout"])
    assert found["packages"] == [*USUAL, *more]


@pytest.mark.parametrize(
    "services, more",
    [
        ([{"name": "api", "plane": "direct"}, {"name": "web"}], ["nftables"]),
        ([{"name": "api", "plane": "proxy"}], []),
        ("api", []),
        (None, []),
    ],
)
def test_nft_is_one_of_them_where_a_service_is_direct(services, more):
    known = {**defaults("pair"), **variables_of("pair"), "pair_services": services, "pair_members": [], "pair_vips": []}
    found = Templar(loader=DataLoader(), variables=known).template(known["__pair_layout"])
    assert found["packages"] == [*USUAL, *more]
