# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a state has of a member, and how it is saved."""

from __future__ import annotations

import itertools
import json
import os
import stat

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.states import snapshot, store
from ansible_collections.onprem.lb.plugins.module_utils._shared import state_ids
from support.damages import damaged, deep
from support.states import CONFIGS, HAPROXY_UNIT, INSTANCE, KEEPALIVED_UNIT, STOPPED, Systemd, file, native

RUN = "20260131T120000Z"
KEEPALIVED = """
vrrp_instance vip {
    interface eth0
    virtual_router_id 51
    authentication {
        auth_type PASS
        auth_pass secret
    }
    virtual_ipaddress {
        192.0.2.10/24
    }
    unicast_peer {
        192.0.2.12
    }
}
"""


def write(root, path, text="x", mode=0o644):
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    target.chmod(mode)


def test_it_has_every_file_of_this_collection_and_none_of_others(tmp_path):
    own = [
        CONFIGS["haproxy"],
        "/etc/onprem-lb-agent/vrrp.json",
        "/etc/onprem-lb-pair-members.json",
        "/etc/onprem-lb-resolver/dnsmasq.conf",
        "/etc/onprem-lb-resolver/names",
        "/etc/onprem-lb/open-firewall",
        "/etc/sysctl.d/90-onprem-lb.conf",
        "/etc/systemd/system/haproxy.service.d/onprem-lb.conf",
        "/etc/systemd/system/onprem-lb-down-file.path",
        "/usr/local/lib/onprem-lb-agent/agent-1.pyz",
        "/usr/local/lib/onprem-lb-keepalived/hook",
    ]
    others = [
        "/etc/haproxy/errors.http",
        "/etc/onprem-lb-packages.json",  # packages stay installed
        "/etc/systemd/system/haproxy.service.d/limits.conf",
        "/etc/systemd/system/onprem-lb-shutdown.service",  # whose stop would stop the router
        "/etc/onprem-lb-resolver/hosts",  # which follow writes
        "/etc/systemd/system/onprem-lb-resolver.service",
        "/etc/systemd/system/onprem-lb-undo.service",
    ]
    for path in own + others:
        write(tmp_path, path)
    assert snapshot.present(CONFIGS.values(), str(tmp_path)) == own


BGP_FILES = [
    "/etc/frr/daemons",
    "/etc/frr/frr.conf",
    "/etc/onprem-lb-agent/anycast.json",
    "/etc/systemd/system/frr.service.d/onprem-lb.conf",
    "/etc/systemd/system/onprem-lb-anycast.service",
    "/usr/local/lib/onprem-lb-anycast/agent.pyz",
]


def test_it_has_what_announces_vips_and_its_units(tmp_path):
    for path in [*BGP_FILES, "/etc/frr/vtysh.conf"]:
        write(tmp_path, path)
    systemd = Systemd(**{"frr": True, "onprem-lb-anycast": True})
    taken = snapshot.take(systemd.run_command, CONFIGS, [], [], str(tmp_path))
    assert [each.path for each in taken.files] == BGP_FILES
    assert taken.announces and taken.could_serve
    assert all(snapshot.is_own(path, CONFIGS.values()) for path in BGP_FILES)


@pytest.mark.parametrize("others", [BGP_FILES[:2], [*BGP_FILES[:2], BGP_FILES[3]]], ids=["theirs", "by the role alone"])
def test_an_frr_without_the_health_gate_is_no_part_of_it_nor_are_units_that_are_not_set_up(tmp_path, others):
    for path in others:
        write(tmp_path, path)
    systemd = Systemd(frr=True)
    taken = snapshot.take(systemd.run_command, CONFIGS, [], [], str(tmp_path))
    assert taken.files == [] and not {*snapshot.ANNOUNCING} & {*taken.units}


@pytest.mark.parametrize(
    "path, engine",
    [("/etc/systemd/system/onprem-lb-proxy.service", "agent"), (HAPROXY_UNIT, "native")],
)
def test_where_vips_are_announced_the_engine_is_that_of_the_balancer(path, engine):
    gate = file("/etc/systemd/system/onprem-lb-anycast.service")
    assert native()._replace(files=[gate, file(path)]).engine == engine


def test_it_has_modes_links_units_and_the_instances_of_the_router_that_runs(tmp_path):
    write(tmp_path, CONFIGS["keepalived"], KEEPALIVED, 0o600)
    write(tmp_path, "/usr/local/lib/onprem-lb-agent/agent-1.pyz")
    os.symlink("agent-1.pyz", tmp_path / "usr/local/lib/onprem-lb-agent/agent.pyz")
    taken = snapshot.take(Systemd(keepalived=True).run_command, CONFIGS, [], [], str(tmp_path))
    by_path = {each.path: each for each in taken.files}
    assert by_path[CONFIGS["keepalived"]].mode == 0o600
    assert by_path["/usr/local/lib/onprem-lb-agent/agent.pyz"].target == "agent-1.pyz"
    assert taken.units["keepalived.service"] == (True, True) and taken.units["haproxy.service"] == (False, False)
    assert taken.instances == [{**INSTANCE, "excluded_addresses": []}]
    assert taken.has_router


@pytest.mark.parametrize(
    "lines, openings",
    [
        (
            ["tcp 80 from anywhere in inet filter input", "tcp 80 from anywhere in ip filter input"],
            ["tcp 80 from anywhere"],
        ),
        (["vrrp from 192.0.2.12", "reopened whenever nftables.service loads its rules"], ["vrrp from 192.0.2.12"]),
    ],
)
def test_it_has_the_openings_that_a_firewall_describes(lines, openings):
    assert snapshot.openings_of(lines) == openings


def test_only_what_is_compared_on_the_link_makes_routers_differ():
    def shared(**changes):
        return snapshot.on_the_link([{**INSTANCE, **changes}])

    same = [{"name": "other"}, {"interface": "eth1"}, {"addresses": ["192.0.2.10/32"]}]
    other = [{"vrid": 52}, {"version": 3}, {"advert_interval": 2}, {"auth_pass": "other"}]
    same += [{"peers": ["192.0.2.13"]}, {"source": "192.0.2.13"}]
    other += [{"multicast": True}]
    assert all(shared(**changes) == shared() for changes in same)
    assert all(shared(**changes) != shared() for changes in other)
    assert shared(version=3, auth_pass="a") == shared(version=3, auth_pass="b")
    assert shared(multicast=True, peers=[]) == shared(multicast=True)


def test_who_sends_from_where_to_whom_is_of_each_virtual_router_and_none_is_by_multicast():
    one = {**INSTANCE, "source": "192.0.2.11", "peers": ["192.0.2.13", "192.0.2.12"], "multicast": False}
    six = {**one, "addresses": ["2001:db8::10"], "source": "2001:db8::11", "peers": ["2001:db8::12"]}
    assert snapshot.unicast([one, six, {**one, "vrid": 77, "multicast": True}]) == {
        "51 IPv4": {"source": "192.0.2.11", "peers": ["192.0.2.12", "192.0.2.13"]},
        "51 IPv6": {"source": "2001:db8::11", "peers": ["2001:db8::12"]},
    }


@pytest.mark.parametrize("peers", [[], ["192.0.2.12"]])
def test_a_state_that_does_not_say_whether_it_has_multicast_has_it_without_peers(peers):
    of_before = {key: value for key, value in INSTANCE.items() if key != "multicast"}
    now = {**INSTANCE, "multicast": not peers, "peers": peers}
    assert snapshot.on_the_link([{**of_before, "peers": peers}]) == snapshot.on_the_link([now])


def test_a_router_could_serve_beside_a_balancer_that_ran_and_without_one():
    assert native().could_serve and not native(keepalived=STOPPED).could_serve
    dead = native(haproxy=STOPPED)
    assert not dead.could_serve, "its router is in FAULT"
    without = [file for file in dead.files if file.path != HAPROXY_UNIT]
    assert dead._replace(files=without).could_serve, "it has no balancer of this collection"


def test_two_states_are_the_same_whatever_the_order_of_their_files():
    one = native()
    assert one._replace(files=one.files[::-1]).digest == one.digest
    assert native(served="two").digest != one.digest
    assert one._replace(files=[*one.files[:-1], file(KEEPALIVED_UNIT, mode=0o600)]).digest != one.digest


def saved(folder, *ids):
    for each in ids:
        store.save(store.State(each, "a test", native()), folder=str(folder))


def test_a_state_comes_back_as_it_was_saved_and_only_root_may_read_it(tmp_path):
    saved(tmp_path / "states", "20260131T120000Z")
    path = tmp_path / "states/20260131T120000Z.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert store.load("20260131T120000Z", str(tmp_path / "states")).saved == native()


def test_the_last_five_are_kept(tmp_path):
    every = [f"2026013{day}T120000Z" for day in range(7)]
    saved(tmp_path, *every)
    assert store.ids(str(tmp_path)) == every[2:]


def test_the_state_to_which_a_member_is_about_to_return_stays_although_it_is_the_oldest(tmp_path):
    oldest, *others = every = [f"2026013{day}T120000Z" for day in range(6)]
    saved(tmp_path, *every[:5])
    store.save(store.State(every[5], "a rollback", native()), oldest, str(tmp_path))
    assert store.ids(str(tmp_path)) == [oldest, *others]


@pytest.mark.parametrize("order", [*itertools.permutations(range(5))], ids=lambda order: "".join(map(str, order)))
def test_a_member_may_return_to_each_of_the_last_five_states_of_runs_one_after_the_other(tmp_path, order):
    runs = [f"2026012{day}T120000Z" for day in range(5)]
    saved(tmp_path, *runs)
    for hour, place in enumerate(order, start=13):
        assert runs[place] in store.ids(str(tmp_path))
        left = store.State(f"20260131T{hour}0000Z", state_ids.PURPOSE.format(runs[place]), native())
        store.save(left, runs[place], str(tmp_path))
    assert runs == store.ids(str(tmp_path))[:5]


def test_the_last_five_that_rollbacks_and_restores_have_saved_are_kept_beside_those_of_runs(tmp_path):
    *runs, newest = [f"2026012{day}T120000Z" for day in range(6)]
    saved(tmp_path, *runs)
    ways_back = [f"2026013{day}T120000Z" for day in range(7)]
    for each in ways_back[:4]:
        store.save(store.State(each, state_ids.PURPOSE.format(runs[0]), native()), folder=str(tmp_path))
    for each in ways_back[4:]:
        store.save(store.State(each, "a backup", native(), each), folder=str(tmp_path))
    assert store.ids(str(tmp_path)) == [*runs, *ways_back[2:]]
    saved(tmp_path, newest)
    assert store.ids(str(tmp_path)) == [*runs[1:], newest, *ways_back[2:]]


def test_a_state_that_is_damaged_is_replaced_as_that_of_a_run(tmp_path):
    every = [f"2026013{day}T120000Z" for day in range(7)]
    saved(tmp_path, *every[:5])
    (tmp_path / f"{every[0]}.json").write_text("{")
    saved(tmp_path, every[5])
    assert store.ids(str(tmp_path)) == every[1:6]


def test_the_state_that_an_armed_undo_returns_to_is_kept_however_old(tmp_path, monkeypatch):
    every = [f"2026013{day}T120000Z" for day in range(7)]
    monkeypatch.setattr(store, "due", lambda: {"id": every[0]})
    saved(tmp_path, *every)
    assert store.ids(str(tmp_path)) == [every[0], *every[2:]]


def test_a_state_that_was_saved_after_a_clock_was_set_back_stays_until_the_next_one_is(tmp_path):
    *others, newest = every = [f"2026013{day}T120000Z" for day in range(6)]
    saved(tmp_path, *every[1:], every[0])
    assert store.ids(str(tmp_path)) == every


@pytest.mark.parametrize(
    "wanted, sentence",
    [
        ("20260201T120000Z", "There is no state 20260201T120000Z here: there are 20260131T120000Z."),
        ("20260131T120000Z", "The state 20260131T120000Z is damaged: "),
    ],
)
def test_a_state_that_is_not_there_or_damaged_is_a_sentence(tmp_path, wanted, sentence):
    (tmp_path / "20260131T120000Z.json").write_text(json.dumps({"id": 1}))
    with pytest.raises(store.Refused) as refused:
        store.load(wanted, str(tmp_path))
    assert str(refused.value).startswith(sentence)


def test_an_id_is_a_time(tmp_path):
    with pytest.raises(store.Refused, match="'../x' is not the ID of a state"):
        saved(tmp_path, "../x")


def test_a_saved_state_that_was_changed_since_is_refused_in_a_sentence(tmp_path):
    """Whatever was changed: the checksum, or what it is of. One of a version that wrote none is judged by its data."""
    path = tmp_path / f"{RUN}.json"
    store.save(store.State(RUN, "a run", native()), folder=str(tmp_path))
    whole = json.loads(path.read_text())
    wrong = []
    for done, record in damaged(whole):
        if record == whole or (isinstance(record, dict) and "sha256" not in record):
            continue
        path.write_text(json.dumps(record))
        try:
            store.load(RUN, str(tmp_path))
            wrong.append((done, "taken"))
        except store.Refused as refused:
            assert str(refused).startswith(f"The state {RUN} is damaged: {path} cannot be read (")
        except Exception as error:  # whatever it is, it is a Python error
            wrong.append((done, repr(error)))
    assert wrong == []
    for text in (deep(), "", "[]", "\xff"):
        path.write_text(text, encoding="latin-1")
        with pytest.raises(store.Refused, match="is damaged"):
            store.load(RUN, str(tmp_path))


def test_a_saved_state_without_a_checksum_is_taken_or_refused_by_what_it_has(tmp_path):
    path = tmp_path / f"{RUN}.json"
    store.save(store.State(RUN, "a run", native()), folder=str(tmp_path))
    whole = {key: value for key, value in json.loads(path.read_text()).items() if key != "sha256"}
    path.write_text(json.dumps(whole))
    assert store.load(RUN, str(tmp_path)) == store.State(RUN, "a run", native())
    for _done, record in damaged({key: value for key, value in whole.items() if key != "saved"}):
        path.write_text(json.dumps({**record, "saved": whole["saved"]} if isinstance(record, dict) else record))
        try:
            found = store.load(RUN, str(tmp_path))
            assert found.saved == native() and isinstance(found.purpose, str) and isinstance(found.backup, str)
        except store.Refused as refused:
            assert "is damaged" in str(refused)


def test_what_a_host_has_of_any_types_is_saved_so_that_it_can_be_returned_to(tmp_path):
    config = {"instances": [{**INSTANCE, "vrid": "51", "source": None, "peers": [1], "preempt": "no", "priority": {}}]}
    write(tmp_path, "/etc/onprem-lb-agent/vrrp.json", json.dumps(config))
    found = snapshot.take(lambda _command: (0, "", ""), {}, ["tcp 443 from anywhere"], ["eth0"], root=str(tmp_path))
    store.save(store.State(RUN, "a run", found), folder=str(tmp_path / "states"))
    assert store.load(RUN, str(tmp_path / "states")).saved == found
    (instance,) = found.instances
    assert (instance["vrid"], instance["source"], instance["peers"], instance["preempt"]) == (51, "", ["1"], False)
