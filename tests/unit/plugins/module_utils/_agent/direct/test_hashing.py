# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hash of the kernel. tests/netns/test_direct.py compares it with the kernel itself."""

from __future__ import annotations

import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import hashing


@pytest.mark.skipif(sys.byteorder == "big", reason="the kernel reads whole blocks in its own order of bytes")
@pytest.mark.parametrize(
    "data, seed, hashed",
    [  # of lookup3.c's own test, whose seed has the same effect
        (b"Four score and seven years ago", 0, 0x17770551),
        (b"Four score and seven years ago", 1, 0xCD628161),
    ],
)
def test_the_hash_is_that_of_lookup3(data, seed, hashed):
    assert hashing.jhash(data, seed) == hashed


def test_a_bucket_is_one_of_those_that_there_are():
    found = {hashing.bucket("192.0.2.1", port, 256, 7) for port in range(1024, 65536, 7)}
    assert (min(found), max(found), len(found)) == (0, 255, 256)
