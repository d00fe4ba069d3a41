# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""VRIDs as OpenShift computes them, and the choice of one that is free."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._shared import vrid as _vrid
from hypothesis import given
from hypothesis import strategies as st

# As OpenShift's documentation, its issues and the articles show them.
KNOWN = {
    "vmware": (109, 124),
    "cnf10": (147, 2),
    "cnf11": (228, 147),
    "oc2-yw674": (1, 223),
    "ostest": (14, 93),
    "ocp4": (222, 61),
    "test": (13, 28),
    "lab": (51, 146),
    "prod": (2, 33),
    "development": (2, 33),
    "hub": (84, 3),
    "dr": (84, 3),
    "i": (95, 238),
    "x": (95, 238),
    "-": (95, 238),
}

names = st.text(st.characters(codec="utf-8", exclude_characters="."), min_size=1, max_size=30)
vrids = st.sampled_from(sorted({vrid for both in KNOWN.values() for vrid in both})) | st.integers(1, 255)
some_taken = st.lists(st.fixed_dictionaries({"vrid": vrids, "by": st.sampled_from(["a", "b"])}), max_size=40)
some_clusters = st.lists(st.sampled_from(sorted(KNOWN)), max_size=8)
currents = st.none() | st.fixed_dictionaries({"api": vrids, "ingress": vrids})


@pytest.mark.parametrize("name", KNOWN)
def test_known_answers(name):
    assert tuple(_vrid.openshift(name).values()) == KNOWN[name]
    assert list(_vrid.openshift(name)) == ["api", "ingress"]


def test_bytes_count_and_not_characters():
    """Of the bytes only those from 0xf2 on can make the sum overflow its 8 bits."""
    low = high = 0
    for byte in "w\U00100000-api".encode():
        low = (low + byte) % 256 % 15
        high = (high + low) % 256 % 15
    assert _vrid.openshift("w\U00100000")["api"] == high * 16 + low + 1


@given(names)
def test_every_name_has_two_different_vrids_outside_of_the_pool(name):
    api, ingress = _vrid.openshift(name).values()
    assert api != ingress
    assert {api, ingress} <= set(range(1, 240)) - set(_vrid.POOL)


def test_the_pool_is_all_that_no_name_gives():
    results = {vrid for at in range(20000) for vrid in _vrid.openshift(f"c{at}").values()}
    assert sorted(set(range(1, 256)) - results) == list(_vrid.POOL)
    assert len(_vrid.POOL) == 30


@pytest.mark.parametrize(
    "name, sentence",
    [
        ("", "The cluster's name is empty: give the name from its install-config."),
        ("a.example.com", "The cluster's name is 'a.example.com', with a dot: give the bare name, without its domain."),
        (12, "The cluster's name is 12, which is not text: put it in quotes."),
        (None, "The cluster's name is null, which is not text: put it in quotes."),
        ("\ud800", "The name '\\ud800-api' has a character that is not valid Unicode: write it again."),
    ],
)
def test_what_no_cluster_is_called_is_refused_in_one_sentence(name, sentence):
    with pytest.raises(ValueError) as refused:
        _vrid.openshift(name)
    assert str(refused.value) == sentence
    assert _vrid.choose(name, "openshift", []).faults == [sentence]
    assert _vrid.choose("lab", "openshift", [], clusters=[name]).faults == [sentence]


def test_free_vrids_are_those_of_the_name():
    assert _vrid.choose("vmware", "openshift", [{"vrid": 1, "by": "x"}, 2]) == ({"api": 109, "ingress": 124}, [], [])


def test_a_taken_vrid_fails_with_who_has_it():
    heard = "192.0.2.9, heard on eth0 for 192.0.2.10"
    taken = [{"vrid": 124, "by": "lb"}, {"vrid": 124, "by": heard}, {"vrid": 124, "by": "lb"}, "109"]
    choice = _vrid.choose("vmware", "openshift", taken)
    assert choice.vrids == {}
    assert choice.conflicts == [
        "VRID 109 of the API of cluster vmware is taken by somebody else.",
        "VRID 124 of the ingress of cluster vmware is taken by 192.0.2.9, heard on eth0 for 192.0.2.10.",
        "VRID 124 of the ingress of cluster vmware is taken by lb.",
    ]
    assert choice.faults[2] == (
        "VRID 124 of the ingress of cluster vmware is taken by lb: take another name, or set on_conflict to next."
    )
    assert len(choice.faults) == 3


def test_a_cluster_fails_for_another_ones_api_or_ingress_but_not_for_itself():
    assert _vrid.choose("cnf11", "openshift", [], clusters=["cnf11", "vmware"]).faults == []
    assert _vrid.choose("cnf11", "openshift", [], clusters=["cnf10", "vmware"]).conflicts == [
        "VRID 147 of the ingress of cluster cnf11 is taken by the API of cluster cnf10."
    ]


@pytest.mark.parametrize(
    "taken, vrids",
    [
        ([109], (110, 124)),
        ([109, 110, 111], (112, 124)),
        ([124], (109, 125)),
        ([109, 124], (110, 125)),
        # The ingress VRID is not given away while the API's is replaced.
        (range(109, 124), (125, 124)),
        (range(109, 125), (125, 126)),
        # From 255 it goes on with 1.
        (range(109, 255), (255, 1)),
        ([*range(109, 256), 1], (2, 3)),
        ([*range(109, 256), *range(1, 107)], (107, 108)),
    ],
)
def test_next_is_the_next_free_one_upwards_the_api_first(taken, vrids):
    choice = _vrid.choose("vmware", "openshift", list(taken), on_conflict="next")
    assert (tuple(choice.vrids.values()), choice.faults) == (vrids, [])
    assert choice.conflicts


def test_when_all_are_taken_it_says_so():
    choice = _vrid.choose("vmware", "openshift", [*range(1, 109), *range(110, 256)], on_conflict="next")
    assert choice == ({}, [], ["Every VRID is taken, and the ingress of cluster vmware needs one: use another link."])


def test_of_two_that_clash_only_the_later_in_the_alphabet_moves():
    def together(name, current=None):
        both = ["prod", "development"]
        return _vrid.choose(name, "openshift", [], current, on_conflict="next", clusters=both).vrids

    assert together("development") == {"api": 2, "ingress": 33}
    assert together("prod") == {"api": 3, "ingress": 34}
    assert together("prod", current={"api": 2, "ingress": 33}) == {"api": 2, "ingress": 33}


@given(st.lists(st.sampled_from(sorted(KNOWN)), min_size=2, unique=True), some_taken)
def test_clusters_that_all_take_the_next_do_not_meet_again(clusters, taken):
    found = [
        vrid
        for name in clusters
        for vrid in _vrid.choose(name, "openshift", taken, on_conflict="next", clusters=clusters).vrids.values()
    ]
    assert len(set(found)) == 2 * len(clusters)
    assert not set(found) & {item["vrid"] for item in taken}


def test_the_vrid_in_use_is_kept_while_no_other_router_has_it():
    current = {"api": 7, "ingress": 8}
    assert _vrid.choose("vmware", "openshift", [109, 124], current).vrids == current
    choice = _vrid.choose("vmware", "openshift", [{"vrid": 8, "by": "x"}], current)
    assert choice.faults == [
        "VRID 8 of the ingress of cluster vmware is taken by x: free it there, or set on_conflict to next."
    ]
    moved = _vrid.choose("vmware", "openshift", [8], current, on_conflict="next")
    assert moved.vrids == {"api": 7, "ingress": 9}


def test_what_is_in_use_for_one_role_may_not_be_the_other_ones():
    assert _vrid.choose("vmware", "openshift", [], {"api": 124}).conflicts == [
        "VRID 124 of the API of cluster vmware is taken by the ingress of cluster vmware.",
        "VRID 124 of the ingress of cluster vmware is taken by the API of cluster vmware.",
    ]
    moved = _vrid.choose("vmware", "openshift", [], {"api": 124}, on_conflict="next").vrids
    assert moved == {"api": 124, "ingress": 125}


@given(st.sampled_from(sorted(KNOWN)), some_taken, some_clusters, currents, st.randoms())
def test_the_order_in_which_others_are_listed_changes_nothing(name, taken, clusters, current, random):
    shuffled, others = list(taken), list(clusters)
    random.shuffle(shuffled)
    random.shuffle(others)
    for on_conflict in _vrid.ON_CONFLICT:
        for strategy, in_use in (("openshift", current), ("pool", current and current["api"])):
            one = _vrid.choose(name, strategy, taken, in_use, on_conflict, clusters)
            assert one == _vrid.choose(name, strategy, shuffled, in_use, on_conflict, others)


@given(st.text(min_size=1).filter(lambda text: text.isprintable()), some_taken)
def test_a_pair_gets_a_free_vrid_of_the_pool_and_the_same_again(name, taken):
    choice = _vrid.choose(name, "pool", taken)
    assert choice == _vrid.choose(name, "pool", taken)
    assert choice.vrids["pair"] in set(_vrid.POOL) - {item["vrid"] for item in taken}
    kept = _vrid.choose(name, "pool", [], current=choice.vrids["pair"])
    assert kept == (choice.vrids, [], [])


def test_a_name_has_its_place_in_the_pool():
    """For good: another one after an update would move living pairs."""
    assert [_vrid.choose(name, "pool", []).vrids["pair"] for name in ("lb", "pair", "été")] == [250, 160, 208]


def test_pairs_start_all_over_the_pool():
    assert {_vrid.choose(f"pair{at}", "pool", []).vrids["pair"] for at in range(400)} == set(_vrid.POOL)


def test_a_taken_place_in_the_pool_leads_to_the_next_and_says_why():
    assert _vrid.choose("lb", "pool", [{"vrid": 250, "by": "x"}, 252]) == (
        {"pair": 251},
        ["VRID 250 of the pair lb is taken by x."],
        [],
    )
    assert len(_vrid.choose("lb", "pool", [250, 251, 253]).conflicts) == 2
    assert _vrid.choose("lb", "pool", list(range(250, 256))).vrids == {"pair": 16}


def test_a_full_pool_is_said():
    choice = _vrid.choose("lb", "pool", list(_vrid.POOL))
    assert choice.faults == ["All 30 VRIDs of the pool are taken, and the pair lb needs one: give it a VRID."]
    assert _vrid.choose("lb", "pool", list(_vrid.POOL[:-1])).vrids == {"pair": 255}


def test_a_pair_keeps_its_vrid_even_outside_the_pool_until_another_router_has_it():
    assert _vrid.choose("lb", "pool", [250], current=51).vrids == {"pair": 51}
    assert _vrid.choose("lb", "pool", [250], current={"pair": 51}).vrids == {"pair": 51}
    lab = _vrid.choose("lb", "pool", [], current=51, clusters=["lab"])
    assert lab.faults == [
        "VRID 51 of the pair lb is taken by the API of cluster lab: free it there, or set on_conflict to next."
    ]
    moved = _vrid.choose("lb", "pool", [], current=51, clusters=["lab"], on_conflict="next")
    assert (moved.vrids, len(moved.conflicts)) == ({"pair": 250}, 1)


def test_a_pair_may_be_called_like_a_cluster():
    assert _vrid.choose("lab", "pool", [], current=51, clusters=["lab"]).faults


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ({"strategy": "random"}, "strategy is 'random': one of openshift, pool is required."),
        ({"on_conflict": "ask"}, "on_conflict is 'ask': one of fail, next is required."),
        ({"taken": "51"}, "taken is '51': a list is required."),
        ({"taken": [1, 256]}, "taken[1].vrid is 256: a VRID from 1 to 255 is required."),
        ({"taken": [{"by": "x"}]}, "taken[0] lacks 'vrid': add it."),
        ({"current": 51}, "current is 51: a mapping with the keys api, ingress is required."),
        ({"current": {"api": 0}}, "current.api is 0: a VRID from 1 to 255 is required."),
        ({"strategy": "pool", "current": "x"}, "current.pair is 'x': a VRID from 1 to 255 is required."),
        ({"strategy": "pool", "name": ""}, "The pair's name is '': a string that is not empty is required."),
        ({"strategy": "pool", "name": 5}, "The pair's name is 5: a string that is not empty is required."),
    ],
)
def test_bad_input_gets_one_sentence(arguments, sentence):
    given_arguments = {"name": "vmware", "strategy": "openshift", "taken": [], **arguments}
    assert _vrid.choose(**given_arguments) == ({}, [], [sentence])
