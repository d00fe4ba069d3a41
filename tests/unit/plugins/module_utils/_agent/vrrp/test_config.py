# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the agent makes of its configuration: all of it, or none and every fault."""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import config as check_config
from ansible_collections.onprem.lb.plugins.module_utils._agent.checks import settings as checks
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp import config, settings
from ansible_collections.onprem.lb.plugins.module_utils._agent.vrrp.core import packet
from hypothesis import given
from hypothesis import strategies as st
from support.scope import FULL
from support.vrrp.configs import CHECKS, FRONT, GOOD, SIX, with_front, written


def faults_of(text):
    found, faults = config.parse(text)
    assert (found is None) == bool(faults)
    return faults


def test_a_good_configuration_is_read_with_every_default_and_in_microseconds():
    found, faults = config.parse(written())
    assert faults == []
    front, six = found.instances
    assert front == settings.Instance(
        name="front",
        interface="eth0",
        vrid=51,
        version=2,
        family=4,
        priority=254,
        interval=1_000_000,
        addresses=("192.0.2.10/32", "192.0.2.11/24"),
        preempt_delay=2_500_000,
        auth_pass=b"geheim12",
        source="192.0.2.1",
        peers=("192.0.2.2", "192.0.2.3"),
        track=(settings.Tracked("alive"), settings.Tracked("load", -10)),
        announce_again=30_000_000,
        notify=("/usr/local/bin/tell", "--name", "the front"),
    )
    assert (six.family, six.interval, six.addresses) == (6, 70_000, ("fe80::10/128", "2001:db8::10/64"))
    assert found.groups == (settings.Group("both", ("six",)),)
    assert found.checks[0] == checks.Check("alive", "process", 500_000, 2_000_000, 1, 2, process="haproxy")
    assert (found.checks[2].path, found.checks[2].host) == ("/readyz", "api")
    assert found.checks[4].command == ("/usr/local/bin/check", "-x")
    assert (found.status_socket, found.script_user) == ("/run/onprem-lb-vrrp/status.sock", "nobody")


def test_what_the_settings_default_to_is_what_the_file_defaults_to():
    bare = {"name": "x", "interface": "eth0", "vrid": 1, "addresses": ["192.0.2.1"], "multicast": True}
    found, _faults = config.parse(json.dumps({"instances": [bare]}))
    instance = found.instances[0]
    for key, default in settings.Instance._field_defaults.items():
        if key != "multicast":
            assert getattr(instance, key) == default, key
    assert (instance.priority, instance.interval) == (100, 1_000_000)
    assert found._replace(instances=()) == settings.Settings(())


@pytest.mark.parametrize("kind", checks.CHECK_TYPES)
def test_every_field_of_a_check_has_a_key_and_the_same_default(kind):
    needed = {
        "process": "x",
        "address": "192.0.2.1",
        "port": 1,
        "command": "/x",
        "file": "/x",
        "interface": "eth0",
    }
    own = check_config.TYPE_KEYS[kind]
    item = {"name": "c", "type": kind, **{key: needed[key] for key in own if own[key].required}}
    found, faults = config.parse(json.dumps({"instances": [], "checks": [item]}))
    assert faults == []
    for key, default in checks.Check._field_defaults.items():
        if key not in item:
            assert getattr(found.checks[0], key) == default, key


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"vrid": 300}, "instances[0] (front).vrid is 300: a VRID from 1 to 255 is required."),
        ({"prioroty": 7}, "instances[0] (front) has the unknown key 'prioroty': did you mean 'priority'?"),
        ({"interface": "a-name-of-16-byt"}, "an interface's name has at most 15 characters."),
        ({"addresses": ["192.0.2.10", "2001:db8::1"]}, "mixes IPv4 and IPv6"),
        ({"addresses": ["2001:db8::1"], "peers": ["fe80::2"], "source": None}, "IPv6 addresses need VRRP version 3."),
        ({"addresses": ["224.0.0.1"]}, "no host can be reached at that address."),
        ({"addresses": ["192.0.2.255/24"]}, "this is the subnet's own network or broadcast address."),
        ({"addresses": ["fe80::1%eth0"]}, "leave out the % and what follows"),
        ({"addresses": ["192.0.2.10", "192.0.2.10/24"]}, "addresses has 192.0.2.10 twice: leave one out."),
        ({"excluded_addresses": ["192.0.2.10"]}, "addresses has 192.0.2.10 twice: leave one out."),
        (
            {"addresses": ["192.0.2.10 dev"]},
            "in it '192.0.2.10 dev' is wrong: an address is required, or an address, dev and the interface",
        ),
        ({"virtual_routes": ["10.0.0.0/8"]}, "in it '10.0.0.0/8' is wrong: it names no interface: write dev and its"),
        ({"addresses": [f"198.51.{n // 250}.{n % 250 + 1}" for n in range(256)]}, "addresses has 256 of them"),
        ({"advert_interval": 0.5}, "VRRP version 2 takes 1 to 255 whole seconds; version 3 takes fractions."),
        ({"version": 3, "auth_pass": "", "advert_interval": 0.015}, "counts in steps of 0.01 seconds."),
        ({"version": 3, "auth_pass": "", "advert_interval": 41}, "takes 0.01 to 40.95 seconds."),
        ({"version": 3}, "VRRP version 3 has no authentication, leave it out."),
        ({"auth_pass": "123456789"}, "auth_pass has 9 characters: VRRP compares the first 8 only"),
        ({"auth_pass": "ab\0"}, "a string of printable characters is required."),
        ({"peers": []}, "peers is empty: name the other members, or set multicast to true."),
        ({"peers": ["192.0.2.1"]}, "peers has 192.0.2.1, which is its own source"),
        ({"peers": ["192.0.2.2", "192.0.2.2"]}, "peers has 192.0.2.2 twice: leave one out."),
        ({"peers": ["192.0.2.10"]}, "peers has 192.0.2.10, which is one of its own addresses"),
        ({"peers": ["fe80::1"]}, "peers has fe80::1, but its addresses are IPv4: name one of that family."),
        ({"source": "fe80::1"}, "source has fe80::1, but its addresses are IPv4: name one of that family."),
        ({"source": "192.0.2.10"}, "one of its own addresses, which a Backup has not: name one that stays."),
        ({"preempt": False, "preempt_delay": 5}, "preempt_delay is set, but preempt is false"),
        ({"track": ["ghost"]}, "track names 'ghost', which is not defined: known are alive, load, api"),
        ({"track": ["back"], "interface": "eth1"}, "track has its own interface (back), which is always tracked"),
        ({"track": 5}, "instances[0] (front).track is 5: a list is required."),
        ({"priority": 255, "track": [{"name": "api", "weight": 4}]}, "which cannot change the priority 255"),
        ({"notify": "tell"}, "notify is 'tell': write the program's absolute path."),
        ({"notify": "/x 'y"}, "notify is '/x ...': a quote has no end: close it."),
        ({"checksum": "md5"}, "one of rfc5798, rfc9568 is required."),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(change, sentence):
    faults = faults_of(with_front(**change))
    assert len(faults) == 1 and sentence in faults[0], faults


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"type": "tpc"}, "checks[0] (c).type is 'tpc': one of process, tcp, "),
        (
            {"process": "x"},
            "checks[0] (c).process is for a check of type process, and this one is https: leave",
        ),
        ({"prot": 1}, "checks[0] (c) has the unknown key 'prot': did you mean 'port'?"),
        ({"port": None}, "checks[0] (c) lacks 'port': add it."),
        ({"address": "localhost"}, "checks[0] (c).address is 'localhost': an IPv4 or IPv6 address is required."),
        ({"path": "/a b"}, "a URL path is required"),
        ({"host": "a\r\nb"}, "a name of letters, digits and . : _ - is required."),
        ({"interval": 0}, "a number from 0.01 to 86400 seconds is required."),
        (
            {"type": "process", "process": "/usr/sbin/haproxy"},
            "the name of a program, without its directory, is required.",
        ),
        ({"type": "file", "file": "load"}, "an absolute path is required."),
    ],
)
def test_a_wrong_check_is_refused_with_its_place(change, sentence):
    check = {"name": "c", "type": "https", "address": "127.0.0.1", "port": 1, **change}
    faults = faults_of(json.dumps({"instances": [], "checks": [check]}))
    assert any(sentence in fault for fault in faults), faults


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"instances": None}, "configuration lacks 'instances': add it."),
        (
            {"instances": {"name": "x"}},
            "configuration.instances is a mapping: a list is required: write [ ] around it",
        ),
        ({"instances": [FRONT, {**FRONT, "name": "b", "addresses": ["192.0.2.9"]}]}, "front and b both have VRID 51"),
        (
            {"instances": [FRONT, {**FRONT, "name": "b", "interface": "e1"}]},
            "front and b both have the address 192.0.2.10",
        ),
        (
            {"instances": [{**FRONT, "virtual_routes": ["10.0.0.0/8 dev eth0", "10.0.0.0/8 dev eth1"]}]},
            "instances: two routes of front to 10.0.0.0/8 have the same metric: give each its own.",
        ),
        (
            {
                "instances": [
                    {**FRONT, "virtual_routes": ["::/0 dev eth0"]},
                    {**FRONT, "name": "b", "vrid": 9, "addresses": ["192.0.2.9"], "virtual_routes": ["::/0 dev eth1"]},
                ]
            },
            "instances: two routes of front and b to ::/0 have the same metric: give each its own.",
        ),
        ({"checks": [*CHECKS, CHECKS[0]]}, "checks has the name 'alive' twice: give each its own."),
        ({"sync_groups": [{"name": "g", "instances": ["ghost"]}]}, "sync_groups[0] (g).instances names 'ghost'"),
        ({"sync_groups": [{"name": "g", "instances": ["six", "six"]}]}, "sync_groups[0] (g).instances has six twice"),
        (
            {"sync_groups": [{"name": "g", "instances": ["six"]}, {"name": "h", "instances": ["six"]}]},
            "sync_groups: six is in more than one of them",
        ),
        (
            {"sync_groups": [{"name": "g", "instances": ["front"]}]},
            "sync_groups[0] (g): its instance front tracks load with weight -10, which counts for nothing in a group",
        ),
        ({"sync_groups": [{"name": "g", "instances": ["six"], "track": ["x"]}]}, "sync_groups[0] (g).track names 'x'"),
        (
            {"sync_groups": [{"name": "g", "instances": ["six"], "track": [{"name": "alive", "weight": 3}]}]},
            "sync_groups[0] (g) tracks alive with weight 3, which counts for nothing in a group",
        ),
        ({"status_socket": "/" + "x" * 107}, "the path of a socket has at most 107 bytes."),
        ({"status_soket": "/x"}, "configuration has the unknown key 'status_soket': did you mean 'status_socket'?"),
        ({"script_user": "a b"}, "configuration.script_user is 'a b'"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes, sentence):
    faults = faults_of(written(**changes))
    assert any(sentence in fault for fault in faults), faults


def test_one_link_local_address_may_be_on_two_links_but_not_on_one():
    other = {**SIX, "name": "other", "vrid": 52, "addresses": ["fe80::10"]}
    alone = {**SIX, "addresses": ["fe80::10"]}
    assert faults_of(json.dumps({"instances": [alone, {**other, "interface": "eth1"}]})) == []
    assert "fe80::10" in faults_of(json.dumps({"instances": [alone, other]}))[0]


def test_an_owner_may_send_from_its_address():
    assert faults_of(with_front(priority=255, source="192.0.2.10")) == []


def test_addresses_are_written_as_the_kernel_writes_them():
    long = {**SIX, "multicast": False, "addresses": ["FE80:0::0010"], "peers": ["FE80::0:2"], "source": "FE80:0::1"}
    instance = config.parse(json.dumps({"instances": [long]}))[0].instances[0]
    assert (instance.addresses, instance.peers, instance.source) == (("fe80::10/128",), ("fe80::2",), "fe80::1")
    old = {**long, "addresses": ["::c000:20a/120"]}
    assert config.parse(json.dumps({"instances": [old]}))[0].instances[0].addresses == ("::192.0.2.10/120",)


def test_every_fault_is_found_at_once():
    faults = faults_of(with_front(vrid=0, priority=0, notify="x", peers=["a"]))
    assert {"vrid", "priority", "notify", "peers"} <= {
        fault.partition(" is ")[0].rpartition(".")[2] for fault in faults
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"instances": {"auth_pass": "geheim"}},
        {"instances": [[{"auth_pass": "geheim"}]]},
        {"instances": [{**FRONT, "auth_pass": "geheim" * 2}]},
        {"instances": [{**FRONT, "auth_pass": ["geheim"]}]},
        {"instances": [{**FRONT, "auth_pas": "geheim"}]},
        {"instances": [{**FRONT, "version": 3, "auth_pass": "geheim"}]},
    ],
)
def test_a_refused_password_is_not_repeated(changes):
    faults = faults_of(written(**changes))
    assert faults and "geheim" not in "".join(faults)


@pytest.mark.parametrize(
    "text, sentence",
    [
        (" \n", "configuration is empty: a configuration in JSON is required."),
        ("{", "configuration is not JSON: "),
        ('{"instances": [], "instances": []}', "configuration has the key 'instances' more than once: leave one out."),
        (
            '{"instances": [{"name": "front", "vrid": 1, "vrid": 2, "vrid": 3}]}',
            "configuration has the key 'vrid' more than once in instances[0] (front): leave one out.",
        ),
        ('{"checks": [[], {"a": {"b": 1, "b": 1}}]}', "the key 'b' more than once in checks[1].a: leave one out."),
        ("[" * 100_000, "configuration is nested too deeply."),
        ("1" * 5000, "is "),
        ("[]", "is []: a mapping with the keys instances, "),
    ],
)
def test_a_text_that_is_no_configuration_is_refused_in_one_sentence(text, sentence):
    faults = faults_of(text)
    assert len(faults) == 1 and sentence in faults[0], faults


def test_a_program_that_the_host_refuses_is_refused_with_its_user():
    asked = []

    def program(path, runner):
        asked.append((path, runner))
        return "no." if path.endswith("check") else None

    host = SimpleNamespace(program=program, configuration=lambda path: None)
    check = {"name": "own", "type": "script", "command": ["/bin/check"], "user": "haproxy"}
    text = json.dumps({"instances": [{**FRONT, "track": []}], "checks": [check], "script_user": "vrrp"})
    found, faults = config.parse(text, host=host)
    assert found is None
    assert asked == [("/usr/local/bin/tell", "vrrp"), ("/bin/check", "haproxy")]
    assert faults == ["checks[0] (own).command is '/bin/check': no."]


def test_a_file_is_read_and_the_host_is_asked(tmp_path):
    path = tmp_path / "agent.json"
    for notify, wanted in (("/no/such/program", ["it cannot be run: No such file or directory."]), (None, [])):
        path.write_text(json.dumps({"instances": [{**FRONT, "track": [], "notify": notify}]}))
        _text, found, faults = config.load(str(path))
        assert [fault.partition(": ")[2] for fault in faults] == wanted
        assert (found is None) == bool(faults)


def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path):
    path = str(tmp_path / "none.json")
    assert config.load(path) == ("", None, [f"{path} cannot be read: No such file or directory."])
    assert config.load(str(tmp_path)) == ("", None, [f"{tmp_path} cannot be read: Is a directory."])
    (tmp_path / "latin").write_bytes(b'{"instances": "\xe9"}')
    assert "it is not written in UTF-8." in config.load(str(tmp_path / "latin")).faults[0]


# Whatever a file may hold.

LONG = st.integers(min_value=-(10**400), max_value=10**400)
SCALARS = st.none() | st.booleans() | st.integers() | LONG | st.floats() | st.text(st.characters())
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


EVERYWHERE = list(places(GOOD))
MAPPINGS = [path for path in EVERYWHERE if isinstance(at(GOOD, path), dict)]
# Senders that mean something in some place, and so come further than others.
TELLING = st.sampled_from(
    [
        *config.INSTANCE,
        *check_config.ALL_TYPE_KEYS,
        *checks.CHECK_TYPES,
        "front",
        "alive",
        "eth0",
        "192.0.2.1",
        "fe80::1",
    ]
    + ["255.255.255.255", "::ffff:1.2.3.4", "192.0.2.1/0", "::/0", "1e400", "²", "\ud800", "/\0", "'", "/x '"]
    + [0, 1, 2, 3, -253, 255, 256, 0.01, 40.95, True, [], {}, [[]], [{}], ["front"], float("nan"), float("inf")]
)


def put(whole, path, value):
    if not path:
        return value
    whole = copy.deepcopy(whole)
    at(whole, path[:-1])[path[-1]] = value
    return whole


def judged(text):
    found, faults = config.parse(text)
    assert (found is None) == bool(faults)
    for fault in faults:
        assert len(fault.splitlines()) == 1 and len(fault) < 3000 and fault[-1] in ".?", fault
    for instance in found.instances if found else ():
        sendable(instance)


def sendable(instance):
    """What was accepted can be said to every peer."""
    said = settings.advertisement(instance)
    group = packet.GROUP6 if instance.family == 6 else packet.GROUP
    source = instance.source or ("fe80::7" if instance.family == 6 else "192.0.2.7")
    for destination in (group,) if instance.multicast else instance.peers:
        message = packet.encode(said, source, destination, instance.checksum)
        assert packet.decode(message, source, destination)._replace(checksum="") == said


@pytest.mark.parametrize(
    "change",
    [
        {"advert_interval": 10**400},
        {"vrid": 10**4000},
        {"name": "x" * 5000},
        {"name": "a\nb"},
        {"a\nb": 1},
        {"vrid": True},
    ],
)
def test_a_fault_is_one_line_and_not_endless(change):
    text = with_front(**change)
    judged(text)
    assert all(len(fault) < 400 for fault in faults_of(text))


@given(VALUES)
def test_no_json_value_raises(value):
    judged(json.dumps(value))


@given(st.sampled_from(EVERYWHERE), VALUES | TELLING)
def test_no_value_in_any_place_of_a_good_configuration_raises(path, value):
    judged(json.dumps(put(GOOD, path, value)))


@given(st.sampled_from(MAPPINGS), st.text(max_size=8), VALUES | TELLING)
def test_no_key_more_in_any_mapping_of_a_good_configuration_raises(path, key, value):
    judged(json.dumps(put(GOOD, (*path, key), value)))


@given(st.text())
def test_no_text_raises(text):
    judged(text)


@given(st.integers(min_value=1, max_value=4095))
def test_every_interval_of_version_3_is_exact(centiseconds):
    text = json.dumps({"instances": [{**SIX, "advert_interval": centiseconds / 100}]})
    assert config.parse(text)[0].instances[0].interval == centiseconds * 10_000


@pytest.mark.parametrize("around", ['{"instances": %s}', '{"instances": [{"peers": [%s]}]}', '{"script_user": %s}'])
def test_depth_is_a_fault_wherever_it_is(around):
    step = 1 if FULL else 7
    for depth in (5, *range(700, 1100, step)):  # what can be read cannot always be looked at (Python 3.8 to 3.10)
        judged(around.replace("%s", "[" * depth + "]" * depth))


def test_what_a_sync_group_tracks_every_member_tracks_once():
    group = {"name": "g", "instances": ["front", "six"], "track": ["alive"]}
    front = {**FRONT, "track": ["alive"]}
    found, faults = config.parse(json.dumps({"instances": [front, SIX], "checks": CHECKS, "sync_groups": [group]}))
    assert faults == []
    assert [instance.track for instance in found.instances] == [(settings.Tracked("alive"),)] * 2


def test_a_notify_program_is_checked_with_its_own_user():
    asked = []
    host = SimpleNamespace(program=lambda program, user: asked.append((program, user)), configuration=lambda path: None)
    told = {**FRONT, "track": [], "notify": "/bin/tell", "notify_user": "ops"}
    config.parse(json.dumps({"instances": [told], "script_user": "keeper"}), host=host)
    assert asked == [("/bin/tell", "ops")]
