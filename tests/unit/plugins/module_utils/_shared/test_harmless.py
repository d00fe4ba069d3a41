# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._shared.harmless import is_harmless

HARMLESS = ["--max-time", "-c", "5", "500ms", "1h", "192.0.2.1:443", "!192.0.2.0/24", "2001:db8::1", "haproxy"]
HARMLESS += ["/etc/ssl/a.pem", "/run/onprem-lb-vrrp/changes", "http://localhost:1936/healthz"]


@pytest.mark.parametrize("word", HARMLESS)
def test_a_number_an_address_a_file_or_the_name_of_an_option_is_no_secret(word):
    assert is_harmless(word)


@pytest.mark.parametrize(
    "word", ["hunter2", "40714071", "--token=x", "/c2VjcmV0", "http://a/b?token=x", "http://ops:x@a/", "Bearer"]
)
def test_what_a_user_may_have_made_up_is_none_of_these(word):
    assert not is_harmless(word)
