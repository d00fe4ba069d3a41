"""What the role `keepalived` accepts by itself."""

from __future__ import annotations

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.keepalived import conf as keepalived_conf
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import instances as _instances
from support import rendering

GOOD = {"name": "vip", "interface": "eth0", "vrid": 51, "addresses": ["192.0.2.10"], "peers": ["192.0.2.2"]}
ALIVE = {"name": "alive", "command": "/usr/bin/killall -0 haproxy"}


def model(*instances, scripts=(), files=(), groups=(), auth_pass="", read=_instances.model):
    settings = {
        "instances": list(instances),
        "scripts": list(scripts),
        "track_files": list(files),
        "sync_groups": list(groups),
        "auth_pass": auth_pass,
        "daemon": {},
    }
    return read(settings)


AS_AGENT = {"track_files": [], "sync_groups": [], "daemon": {}, "auth_pass": ""}


def test_a_good_instance_gets_every_default():
    found = model({**GOOD, "track_scripts": ["alive"]}, scripts=[ALIVE])
    assert found["faults"] == []
    instance = found["instances"][0]
    assert (instance["version"], instance["priority"], instance["state"]) == (2, 100, "BACKUP")
    assert instance["addresses"] == ["192.0.2.10/32"]
    assert instance["track_scripts"] == [{"name": "alive", "weight": 0}]
    assert found["scripts"][0]["interval"] == 2


@pytest.mark.parametrize("usual, user", [("root", None), ("nobody", "root")])
def test_root_looks_for_a_process_whoever_else_runs_scripts(usual, user):
    own = [ALIVE, {"name": "own", "command": "/usr/bin/own"}, {**ALIVE, "name": "theirs", "user": "haproxy"}]
    settings = {**AS_AGENT, "instances": [GOOD], "scripts": own, "daemon": {"router_id": "lb1", "script_user": usual}}
    found = _instances.keepalived_model(settings)
    assert [script["user"] for script in found["scripts"]] == [user, None, "haproxy"]


@pytest.mark.parametrize("timeout", [0.5, 2, 7200])
def test_a_killall_that_is_late_on_a_busy_host_is_no_failure_and_another_script_is(timeout):
    own = [{**ALIVE, "timeout": timeout}, {"name": "own", "command": "/usr/bin/own", "timeout": timeout}]
    settings = {**AS_AGENT, "instances": [GOOD], "scripts": own, "daemon": {"router_id": "lb1"}}
    found = _instances.keepalived_model(settings)
    assert [script["timeout"] for script in found["scripts"]] == [3600, max(1, timeout)]


def test_offers_are_for_the_agent_alone():
    given = {**GOOD, "track_scripts": [{"name": "alive", "weight": -9, "offers": True}]}
    scripts = [{"name": "alive", "command": "/bin/true"}]
    assert model(given, scripts=scripts)["faults"] == [
        f"keepalived_instances ({GOOD['name']}).track_scripts (alive).offers is for the agent only: leave it out."
    ]
    assert _instances.model({**AS_AGENT, "instances": [given], "scripts": scripts}, prefix="agent")["faults"] == []


def test_a_script_that_asks_urls_gets_its_command():
    found = model(scripts=[{"name": "ready", "any_of": ["http://localhost/ready"], "timeout": 1}])
    assert found["faults"] == []
    assert found["scripts"][0]["command"] == "/usr/bin/curl --max-time 1 -kLfs -o /dev/null http://localhost/ready"


@pytest.mark.parametrize(
    "script, sentence",
    [
        ({"name": "x"}, "keepalived_scripts[0] (x) has nothing to do: give it a command, or URLs in any_of."),
        ({**ALIVE, "any_of": ["http://localhost/"]}, "has a command and any_of, of which one is enough"),
        (
            {"name": "x", "any_of": ["localhost"]},
            "keepalived_scripts[0] (x).any_of is ['localhost']: a list of URLs such as",
        ),
    ],
)
def test_a_script_has_one_thing_to_do(script, sentence):
    (fault,) = model(scripts=[script])["faults"]
    assert sentence in fault


@pytest.mark.parametrize(
    "script, connects",
    [
        (ALIVE, False),
        ({"name": "ready", "any_of": ["http://localhost/ready"]}, True),
        ({"name": "own", "command": "/usr/local/bin/check"}, True),
        ({"name": "other", "command": "/usr/bin/killall -9 haproxy"}, True),
    ],
)
def test_a_check_connects_unless_it_looks_for_a_process(script, connects):
    assert model(scripts=[script])["connects"] is connects


def test_the_common_password_is_for_version_2_only():
    six = {**GOOD, "name": "six", "version": 3, "addresses": ["2001:db8::1/64"], "peers": ["2001:db8::2"]}
    found = model(GOOD, six, auth_pass="abcd1234")
    assert found["faults"] == []
    assert [instance["auth_pass"] for instance in found["instances"]] == ["abcd1234", ""]


def test_ipv4_and_ipv6_may_share_a_vrid():
    six = {**GOOD, "name": "six", "version": 3, "addresses": ["2001:db8::1"], "peers": ["2001:db8::2"]}
    assert model(GOOD, six)["faults"] == []


@pytest.mark.parametrize(
    "instance, sentence",
    [
        ({**GOOD, "vrid": 0}, "keepalived_instances[0] (vip).vrid is 0: a VRID from 1 to 255 is required."),
        ({**GOOD, "priority": 256}, "priority is 256: a priority from 1 to 255 is required."),
        ({**GOOD, "peers": []}, "peers is empty: name the other members, or set multicast to true."),
        ({**GOOD, "peers": ["lb2"]}, "in it 'lb2' is wrong: an IPv4 or IPv6 address is required."),
        ({**GOOD, "auth_pass": "123456789"}, "auth_pass has 9 characters: VRRP compares the first 8 only"),
        ({**GOOD, "auth_pass": 'a"b'}, "has what keepalived.conf gives a meaning, also in quotes"),
        ({**GOOD, "version": 3, "auth_pass": "abc"}, "VRRP version 3 has no authentication, leave it out."),
        ({**GOOD, "addresses": ["2001:db8::1"]}, "IPv6 addresses need VRRP version 3."),
        ({**GOOD, "addresses": ["192.0.2.10", "2001:db8::1"]}, "mixes IPv4 and IPv6"),
        ({**GOOD, "addresses": []}, "a list of 1 or more is required."),
        ({**GOOD, "advert_interval": 0.5}, "VRRP version 2 takes 1 to 255 whole seconds; version 3 takes fractions."),
        ({**GOOD, "version": 3, "advert_interval": 41}, "VRRP version 3 takes 0.01 to 40.95 seconds."),
        ({**GOOD, "state": "MASTER", "preempt": False}, "an instance that does not preempt starts as BACKUP."),
        ({**GOOD, "state": "MASTER", "preempt_delay": 3}, "with a preempt_delay starts as BACKUP."),
        ({**GOOD, "track_scripts": ["alive"]}, "names 'alive', which is not defined: known are none."),
        ({**GOOD, "track_files": ["down"]}, "names 'down', which is not defined: known are none."),
        ({**GOOD, "track_interfaces": ["eth0"]}, "has its own interface, which is always tracked"),
        ({**GOOD, "prioroty": 7}, "has the unknown key 'prioroty': did you mean 'priority'?"),
    ],
)
def test_bad_instances_are_refused_with_their_place(instance, sentence):
    faults = model(instance)["faults"]
    assert any(sentence in fault for fault in faults), faults


WORD = 'keepalived.conf cannot have the character " inside a word: write a script.'
ALONE = 'keepalived.conf cannot have the character " there, leave it out.'


@pytest.mark.parametrize(
    "settings, sentence",
    [
        (
            {"scripts": [{"name": "x", "command": "/bin/x 'a \"b'"}]},
            f"keepalived_scripts (x).command is '/bin/x ...': {WORD}",
        ),
        ({"files": [{"name": "x", "path": '/run/"x'}]}, f"""keepalived_track_files (x).path is '/run/"x': {ALONE}"""),
        (
            {"groups": [{"name": "x", "instances": ["vip"], "notify": "/x '\"a\"'"}]},
            f"keepalived_sync_groups (x).notify is '/x ...': {WORD}",
        ),
    ],
)
def test_a_text_that_keepalived_conf_cannot_express_is_refused_for_keepalived_alone(settings, sentence):
    """keepalived would run /bin/x with the argument a."""
    assert model(GOOD, **settings, read=_instances.keepalived_model)["faults"] == [sentence]
    assert model(GOOD, **settings)["faults"] == []


def test_a_notify_command_of_an_instance_that_keepalived_conf_cannot_express_is_refused():
    said = model({**GOOD, "notify": "/bin/x '\"'"}, read=_instances.keepalived_model)["faults"]
    assert said == [f"keepalived_instances (vip).notify is '/bin/x ...': {WORD}"]


def test_a_notify_command_does_not_escape_the_arguments_that_follow_it():
    said = model({**GOOD, "notify": "/bin/x \\"}, read=_instances.keepalived_model)["faults"]
    escaped = "it ends in a backslash, which escapes nothing there: leave it out."
    assert said == [f"keepalived_instances (vip).notify is '/bin/x ...': {escaped}"]


def test_a_notify_command_needs_room_for_the_arguments_that_keepalived_does_not_add():
    fits, too_long = f"/bin/{'x' * 900}", f"/bin/{'x' * 940}"
    assert model({**GOOD, "notify": fits}, read=_instances.keepalived_model)["faults"] == []
    (said,) = model({**GOOD, "notify": too_long}, read=_instances.keepalived_model)["faults"]
    assert said.endswith("keepalived reads 960 bytes at most, shorten it.")


ALL = {"name": "all", "instances": ["vip", "other"], "notify": "/bin/all", "notify_user": "ops"}


@pytest.mark.parametrize(
    "changes, groups, wanted",
    [
        ({}, [], {}),
        ({"notify": "/bin/tell a"}, [], {"command": "/bin/tell a INSTANCE vip MASTER 254", "user": ""}),
        (
            {"notify": "/bin/tell", "notify_user": "me"},
            [ALL],
            {"command": "/bin/tell INSTANCE vip MASTER 254", "user": "me"},
        ),
        ({}, [ALL], {"command": "/bin/all GROUP all MASTER 0", "user": "ops"}),
        ({}, [{**ALL, "instances": ["other"]}], {}),
        ({"notify": "/bin/tell", "lines": ['notify_master_rx_lower_pri "/bin/mine"']}, [], {}),
    ],
)
def test_the_program_that_is_told_again_of_another_master_is_the_instances_or_else_its_groups(changes, groups, wanted):
    other = {**GOOD, "name": "other", "vrid": 78, "addresses": ["192.0.2.78"]}
    found = model({**GOOD, **changes, "priority": 254}, other, groups=groups, read=_instances.keepalived_model)
    assert (found["faults"], found["instances"][0]["notify_again"]) == ([], wanted)


@pytest.mark.parametrize("command", ["/bin/x 'a b'", '/bin/x "a b"', "/bin/x '#1' !2 {3}"])
def test_what_keepalived_conf_can_express_is_accepted(command):
    assert model(GOOD, scripts=[{"name": "x", "command": command}], read=_instances.keepalived_model)["faults"] == []


@pytest.mark.parametrize("text", ["ab\tcd", "ab\x01cd", "ab\x7fcd", 'ab"cd', "ab\\cd", "{", "$_PWD"])
def test_a_password_that_keepalived_would_misread_is_refused(text):
    (fault,) = model(GOOD, auth_pass=text)["faults"]
    assert fault == (
        "keepalived_auth_pass has what keepalived.conf gives a meaning, also in quotes: use letters and digits."
    )


@pytest.mark.parametrize("text", ["ab cd", "ab#cd", "ab!cd", "{ab}", "'ab'", "a$b", "@ab", "~SEQ"])
def test_a_password_with_which_keepalived_works_in_quotes_is_kept_as_it_is(text):
    assert model(GOOD, auth_pass=text)["faults"] == []
    (found,) = keepalived_conf.instances(rendering.keepalived({"instances": [GOOD], "auth_pass": text}, "lb1"))
    assert found["auth_pass"] == text


def test_a_refused_password_is_not_repeated():
    assert "geheim123" not in "".join(model({**GOOD, "auth_pass": "geheim123"})["faults"])


def test_one_vrid_twice_on_one_link_is_refused_and_on_two_links_is_not():
    other = {**GOOD, "name": "other", "addresses": ["192.0.2.11"]}
    assert "vip and other both have VRID 51 on eth0" in model(GOOD, other)["faults"][0]
    assert model(GOOD, {**other, "interface": "eth1"})["faults"] == []


def test_a_group_of_unknown_instances_is_refused():
    group = {"name": "both", "instances": ["vip", "ghost"]}
    assert "names 'ghost', which is not defined: known are vip." in model(GOOD, groups=[group])["faults"][0]


def test_multicast_needs_no_peers():
    assert model({**GOOD, "peers": [], "multicast": True})["faults"] == []


def test_a_weight_in_a_group_is_refused_because_keepalived_ignores_it():
    weighted = {**GOOD, "track_scripts": [{"name": "alive", "weight": 4}]}
    group = {"name": "both", "instances": ["vip"]}
    assert model(weighted, scripts=[ALIVE])["faults"] == []
    assert (
        "tracks alive with weight 4, which keepalived ignores in a group"
        in model(weighted, scripts=[ALIVE], groups=[group])["faults"][0]
    )


def test_a_group_may_track_what_is_defined_and_without_a_weight():
    def faults(**tracked):
        group = {"name": "both", "instances": ["vip"], **tracked}
        return model(GOOD, scripts=[ALIVE], groups=[group])["faults"]

    assert faults(track_scripts=["alive"], track_interfaces=["eth1"]) == []
    assert faults(track_scripts=["ghost"]) == [
        "keepalived_sync_groups (both).track_scripts names 'ghost', which is not defined: known are alive."
    ]
    assert faults(track_scripts=[{"name": "alive", "weight": 4}]) == [
        "keepalived_sync_groups (both): it tracks alive with weight 4, which keepalived ignores in a group: "
        "use weight 0 (FAULT)."
    ]


def test_min_ttl_is_refused_with_multicast():
    assert model({**GOOD, "min_ttl": 64})["faults"] == []
    assert model({**GOOD, "multicast": True, "min_ttl": 255})["faults"] == []
    assert model({**GOOD, "multicast": True, "min_ttl": 64})["faults"] == [
        "keepalived_instances[0] (vip).min_ttl is 64: over multicast VRRP requires 255, leave it out."
    ]


def test_the_own_interface_may_be_tracked_where_it_is_not_always():
    tracking = {**GOOD, "track_interfaces": ["eth0"]}
    assert "which is always tracked" in model(tracking)["faults"][0]
    assert model({**tracking, "dont_track_primary": True})["faults"] == []


WAYS = {
    "in one instance": [["10.0.0.0/8 via 192.0.2.254 dev eth0", "10.0.0.0/8 via 192.0.2.253 dev eth0"]],
    "in two instances": [["10.0.0.0/8 dev eth0"], ["to 10.0.0.0/8 dev eth1"]],
}


@pytest.mark.parametrize("routes", WAYS.values(), ids=WAYS)
def test_two_routes_of_one_metric_to_one_network_are_refused(routes):
    given = [{**GOOD, "name": f"v{at}", "vrid": at, "virtual_routes": each} for at, each in enumerate(routes, 1)]
    whose = "v1" if len(routes) == 1 else "v1 and v2"
    assert model(*given)["faults"] == [
        f"keepalived_instances: two routes of {whose} to 10.0.0.0/8 have the same metric: give each its own."
    ]
    given[-1]["virtual_routes"] = [f"{each} metric {at}" for at, each in enumerate(given[-1]["virtual_routes"], 5)]
    assert model(*given)["faults"] == []


def test_every_program_to_notify_is_for_the_host_to_look_at():
    first = {**GOOD, "notify": "/bin/tell all", "notify_user": "ops"}
    both = {"name": "both", "instances": ["vip"], "notify": "/bin/both"}
    assert model(first, groups=[both], read=_instances.keepalived_model)["programs"] == [
        {"key": "instances (vip).notify", "command": "/bin/tell all", "user": "ops"},
        {"key": "sync_groups (both).notify", "command": "/bin/both", "user": "root"},
    ]
