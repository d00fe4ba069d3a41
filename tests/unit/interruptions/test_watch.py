# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a watch of the members' addresses tells: two holders, or none, for too long."""

from __future__ import annotations

import pytest
from interruptions.watch import judge, watching
from support.waiting import until

VIP = "192.0.2.10"


def member(*holds, every=0.2):
    """The samples of a member: for each (seconds, holds) in a row."""
    samples, when = [], 0.0
    for seconds, is_holder in holds:
        for _each in range(round(seconds / every)):
            samples.append((when, ["127.0.0.1/8", "192.0.2.1/24", *([f"{VIP}/32"] if is_holder else [])]))
            when += every
    return samples


@pytest.mark.parametrize(
    "lb1, lb2, faults",
    [
        ([(20, True)], [(20, False)], []),
        ([(10, True), (10, False)], [(10, False), (10, True)], []),
        ([(10, True), (10, False)], [(9.4, False), (10.6, True)], []),
        (
            [(20, True)],
            [(10, False), (3, True), (7, False)],
            [f"two members held {VIP} for 3.0 s (lb1 from 0.0, lb2 from 10.0 to 13.0)"],
        ),
        ([(10, True), (10, False)], [(14, False), (6, True)], []),
        (
            [(10, True), (10, False)],
            [(18, False), (2, True)],
            [f"no member held {VIP} for 8.0 s (lb1 from 0.0 to 10.0, lb2 from 18.0)"],
        ),
        ([(20, False)], [(20, False)], [f"no member held {VIP} for 19.8 s (no member did)"]),
        ([(20, True)], [(20, True)], [f"two members held {VIP} for 19.8 s (lb1 from 0.0, lb2 from 0.0)"]),
        ([], [(20, True)], ["lb1 was not watched"]),
        ([(20, False)], [(10, True)], ["lb2 was not watched for 10.0 s"]),
    ],
)
def test_two_holders_or_none_for_too_long_are_told(lb1, lb2, faults):
    assert judge({"lb1": member(*lb1), "lb2": member(*lb2)}, [VIP]) == faults


def test_a_break_in_a_members_samples_is_told():
    samples = member((20, True))
    broken = [(when, addresses) for when, addresses in samples if not 5 <= when < 8]
    assert judge({"lb1": samples, "lb2": [(when, []) for when, _each in broken]}, [VIP]) == [
        "lb2 was not watched for 3.2 s"
    ]


def test_an_address_that_only_begins_like_the_vip_is_not_the_vip():
    assert judge({"lb1": [(at, ["192.0.2.100/32"]) for at in range(10)]}, [VIP])


def test_the_loop_lists_this_hosts_addresses_until_the_watch_ends(tmp_path):
    copy = tmp_path / "copy"
    with watching({"here": ["bash", "-c", f'exec > >(tee {copy}); eval "$0"']}) as seen:
        until(lambda: copy.exists() and copy.read_text().count("\n") > 2)
    samples = seen.samples["here"]
    assert len(samples) > 1 and all("127.0.0.1/8" in addresses for _when, addresses in samples)
    assert samples == sorted(samples, key=lambda sample: sample[0])


def test_no_sample_is_lost_however_many_there_are(tmp_path):
    """A pipe holds 64 KiB, some 700 such samples."""
    done = tmp_path / "done"
    sample = "192.0.2.1/24 2001:db8::1/64 fe80::1/64 192.0.2.10/32 2001:db8::10/128 "
    write = f'for i in $(seq 2000); do echo "$i.0 {sample}"; done; touch {done}; sleep 60'
    with watching({"here": ["bash", "-c", write]}) as seen:
        until(done.exists, "the samples were not written")
    assert len(seen.samples["here"]) == 2000
