# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What others have set up stops a run with its name and its mend, or is kept; what packages bring does neither."""

from __future__ import annotations

import hashlib
import os

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host.read import cgroups, takeover
from ansible_collections.onprem.lb.plugins.module_utils._host.read.cgroups import RunsIn
from ansible_collections.onprem.lb.plugins.module_utils._host.read.processes import Process
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._host.read.takeover import File, Found, judge
from ansible_collections.onprem.lb.plugins.module_utils._shared import mark
from support.programs import Programs

CFG, CONF = "/etc/haproxy/haproxy.cfg", "/etc/keepalived/keepalived.conf"
LIMITS = "/etc/systemd/system/haproxy.service.d/limits.conf"
OURS = f"{mark.MARK}.haproxy: changes made here are lost.\nglobal\n"
NOTHING = Found("haproxy", CFG, [], [], [])
HAND = File(CFG, "global\n")
DEFAULT = HAND._replace(is_as_shipped=True)
DROP_IN = File(LIMITS, "[Service]\nLimitNOFILE=100000\n")
VRRP = "vrrp_instance VI_1 {\n virtual_router_id 51\n virtual_ipaddress {\n 192.0.2.10/24\n 192.0.2.11\n }\n}\n"


def refusals(**found):
    return judge(NOTHING._replace(**found)).refusals


def test_a_configuration_written_by_hand_stops_the_run_and_is_kept_if_it_is_adopted():
    found = judge(NOTHING._replace(config=[HAND]))
    assert found.refusals == [
        "/etc/haproxy/haproxy.cfg was not written by this collection and would be replaced: move it away, or set "
        "haproxy_adopt to true, and it is kept as /etc/haproxy/haproxy.cfg.before-onprem-lb until the removal."
    ]
    assert (found.keep, found.problems) == ([CFG], [])


def test_of_frr_the_file_of_its_daemons_counts_like_its_configuration(tmp_path, monkeypatch):
    conf, daemons = tmp_path / "frr.conf", tmp_path / "daemons"
    monkeypatch.setitem(takeover.BESIDE, "frr", (str(daemons),))
    for path in (conf, daemons):
        path.write_text("router ospf\n")
        (tmp_path / f"{path.name}.before-onprem-lb").write_text("")
    found = takeover.read(Reader(Programs().run, Programs().find), {"frr": str(conf)}, [], [])["frr"]
    assert [sentence.split(" ")[0] for sentence in found["refusals"]] == [str(conf), str(daemons)]
    assert all("set frr_adopt to true" in sentence for sentence in found["refusals"])
    assert found["keep"] == found["put_back"] == [str(conf), str(daemons)]


def test_the_vips_of_a_living_keepalived_are_named():
    (sentence,) = refusals(program="keepalived", config=[File(CONF, VRRP)])
    assert sentence.startswith(
        f"{CONF}, which has the VIPs 192.0.2.10/24, 192.0.2.11, was not written by this collection and would be"
    )
    assert "keepalived_adopt" in sentence


@pytest.mark.parametrize("file", [HAND._replace(text=OURS), HAND._replace(text=OURS, is_kept=True)])
def test_this_collections_own_file_is_replaced_without_a_question_and_not_kept(file):
    found = judge(NOTHING._replace(config=[file]))
    assert (found.refusals, found.keep, found.problems) == ([], [], [])


@pytest.mark.parametrize("installed_by_us, keep", [(False, [CFG]), (True, [])])
def test_a_packages_default_is_replaced_without_a_question_and_kept_if_its_package_stays(installed_by_us, keep):
    found = judge(NOTHING._replace(config=[DEFAULT], is_installed_by_us=installed_by_us))
    assert (found.refusals, found.keep) == ([], keep)


def test_a_package_that_writes_its_default_over_this_collections_file_does_not_replace_what_is_kept():
    found = judge(NOTHING._replace(config=[DEFAULT._replace(is_kept=True)]))
    assert (found.refusals, found.problems, found.keep) == ([], [], [])


def test_a_second_foreign_file_is_refused_even_if_it_is_adopted():
    assert judge(NOTHING._replace(config=[HAND._replace(is_kept=True)])).problems == [
        "/etc/haproxy/haproxy.cfg was not written by this collection, and another one is kept from before as "
        "/etc/haproxy/haproxy.cfg.before-onprem-lb: move one of them away."
    ]


def test_a_drop_in_stops_the_run_and_is_set_aside_if_it_is_adopted():
    found = judge(NOTHING._replace(units=[DROP_IN]))
    assert found.refusals == [
        f"{LIMITS} changes haproxy.service and was not written by this collection: move it away, or set haproxy_adopt "
        f"to true, and it is set aside as {LIMITS}.before-onprem-lb until the removal."
    ]
    assert (found.set_aside, found.stop) == ([LIMITS], False)


def test_a_drop_in_that_came_after_this_collection_has_set_the_unit_up_stays():
    found = judge(NOTHING._replace(units=[DROP_IN], is_ours=True))
    assert (found.refusals, found.set_aside) == ([], [])


@pytest.mark.parametrize(
    "line", ["ExecStart=/opt/haproxy -f /opt/lb.cfg", "Environment=CONFIG=/x", " EnvironmentFile = /x"]
)
def test_a_unit_that_starts_the_program_otherwise_must_stop_before_it_is_set_aside(line):
    assert judge(NOTHING._replace(units=[DROP_IN._replace(text=f"[Service]\n{line}\n")])).stop


# -- a keepalived that runs with a file of others


KEEPALIVED = NOTHING._replace(program="keepalived", path=CONF, runs=True, has_loaded=True)
OWN_CONF = File(CONF, f"{mark.MARK}.keepalived\n")


@pytest.mark.parametrize(
    "found, restart",
    [
        (KEEPALIVED._replace(config=[File(CONF, VRRP)]), True),
        (KEEPALIVED._replace(config=[File(CONF, VRRP)], has_loaded=False), True),
        (KEEPALIVED._replace(config=[OWN_CONF], has_loaded=False), True),
        (KEEPALIVED._replace(config=[File(CONF, VRRP, is_as_shipped=True)], has_loaded=False), True),
        (KEEPALIVED._replace(has_loaded=False), True),
        (KEEPALIVED._replace(config=[OWN_CONF]), False),
        (KEEPALIVED._replace(config=[File(CONF, VRRP)], runs=False), False),
    ],
    ids=["theirs", "since before", "interrupted", "a package's", "without a file", "ours", "stopped"],
)
def test_a_keepalived_is_restarted_unless_it_is_known_to_have_started_with_a_file_of_ours(found, restart):
    assert judge(found).restart is restart


@pytest.mark.parametrize(
    "found, tables",
    [
        ({"config": [File(CONF, VRRP)]}, ["ip keepalived"]),
        ({"config": [File(CONF, VRRP)], "runs": False}, ["ip keepalived"]),
        ({"config": [OWN_CONF]}, []),
    ],
    ids=["that goes", "that is gone", "that stays"],
)
def test_the_tables_of_a_keepalived_of_others_go_and_those_of_ours_stay(found, tables):
    assert judge(KEEPALIVED._replace(tables=["ip keepalived"], **found)).tables == tables


def test_what_goes_with_its_file_is_known_before():
    lost = judge(KEEPALIVED._replace(config=[File(CONF, f"{VRRP}virtual_server 192.0.2.10 80 {{\n}}\n")])).lost
    assert lost == [("virtual_server 192.0.2.10 80", "keepalived_extra_lines")]
    assert judge(KEEPALIVED._replace(config=[File(CONF, "$A=1\nnet_namespace red\n")])).lost == [], "it is refused"


@pytest.mark.parametrize("line", ["bind :80 \\", "@lb1", "http-request set-header X ${_HOST}", "mode 'tcp"])
def test_haproxy_cfg_is_not_read_as_a_keepalived_conf(line):
    found = judge(NOTHING._replace(config=[File(CFG, f"listen web\n  {line}\n")]))
    assert (found.unadoptable, found.lost) == ([], [])


# -- what cannot be adopted: it stops the run where the program is to run


def unadoptable(program="keepalived", path=CONF, **found):
    return judge(NOTHING._replace(program=program, path=path, **found)).unadoptable


@pytest.mark.parametrize("line", ["include conf.d/*.conf", "includer vips.conf", 'include "/etc/keepalived/vips.conf"'])
def test_a_keepalived_conf_that_includes_others_cannot_be_adopted_because_they_are_not_read(line):
    (sentence,) = unadoptable(config=[File(CONF, f"{line}\n{VRRP}")])
    word, file = line.replace('"', "").split()
    assert sentence == (
        f"{CONF} has {word} {file}, and the VIPs, VRIDs and passwords in there are not read: move them into this file."
    )


def test_a_pair_with_another_authentication_cannot_be_adopted_because_its_members_would_not_hear_the_new_ones():
    text = VRRP.replace("51\n", "51\n authentication {\n auth_type AH\n auth_pass secret\n }\n")
    assert unadoptable(config=[File(CONF, text)]) == [
        f"{CONF} has auth_type AH, which this collection does not set up, in vrrp_instance VI_1: change it to PASS "
        "on all members."
    ]


@pytest.mark.parametrize(
    "file",
    [
        File(CONF, VRRP),
        File(CONF, f"# include conf.d/*.conf\n{VRRP}"),
        File(CONF, VRRP.replace("51\n", "51\n authentication {\n auth_type PASS\n auth_pass AH\n }\n")),
        File(CONF, "include conf.d/*.conf\n", is_as_shipped=True),
        File(CONF, f"{mark.MARK}.keepalived\ninclude conf.d/*.conf\n"),
    ],
    ids=["none", "a comment", "a password", "a package's", "ours"],
)
def test_another_keepalived_conf_can(file):
    assert unadoptable(config=[file]) == []


def test_a_keepalived_conf_with_which_its_package_would_start_beside_another_one_cannot():
    (sentence,) = unadoptable(config=[File(CONF, VRRP)], is_installed=False)
    assert sentence == (
        f"{CONF} has VIPs, and keepalived is not installed: its package may start it with that file, next to the "
        "keepalived that now reads it: move the file away, and set the VRIDs (vrid of a VIP) that are to stay."
    )
    for text in ("global_defs {\n}\n", f"{mark.MARK}.keepalived\n{VRRP}"):
        assert unadoptable(config=[File(CONF, text)], is_installed=False) == []


OPTIONS = {
    "another configuration": ("haproxy", CFG, 'CONFIG="/etc/haproxy/lb.cfg"'),
    "a second configuration": ("haproxy", CFG, 'EXTRAOPTS="-L lb1 -f /etc/haproxy/conf.d"'),
    "a second one, exported": ("haproxy", CFG, "export EXTRAOPTS='-f /etc/haproxy/more.cfg'"),
    "another configuration of keepalived": ("keepalived", CONF, 'DAEMON_ARGS="-D -f /etc/keepalived/own.conf"'),
    "in one word": ("keepalived", CONF, 'DAEMON_ARGS="-f/etc/keepalived/own.conf"'),
    "spelled out": ("keepalived", CONF, 'KEEPALIVED_OPTIONS="--use-file=/etc/keepalived/own.conf"'),
}


@pytest.mark.parametrize("program, path, line", OPTIONS.values(), ids=OPTIONS)
def test_options_that_load_another_configuration_stop_the_run(program, path, line):
    file = File(f"/etc/default/{program}", f"# Options\n{line}\nOTHER=1\n")
    assert unadoptable(program, path, options=[file]) == [
        f"/etc/default/{program} has {line}, so {program} would go on with that file whatever {path} says: take it out."
    ]


@pytest.mark.parametrize(
    "line",
    [
        "",
        '#CONFIG="/x"',
        f'CONFIG="{CFG}"',
        'EXTRAOPTS="-L lb1 -de -m 16"',
        f"EXTRAOPTS='-f {CFG}'",
        'DAEMON_ARGS="-D"',
    ],
)
def test_other_options_stay_in_force(line):
    assert unadoptable("haproxy", CFG, options=[File("/etc/default/haproxy", f"{line}\n")]) == []


@pytest.mark.parametrize("folder", ["default", "sysconfig"])
def test_the_options_of_both_families_are_read(host, monkeypatch, folder):
    config, _drop_ins = host
    monkeypatch.setattr(
        takeover.start_options, "FOLDERS", [str(config.parent / each) for each in ("default", "sysconfig")]
    )
    (config.parent / folder).mkdir()
    (config.parent / folder / "haproxy").write_text("CONFIG=/x\n")
    (sentence,) = read(config)[0]["unadoptable"]
    assert sentence.startswith(f"{config.parent / folder / 'haproxy'} has CONFIG=/x, ") and str(config) in sentence


CONTAINER = RunsIn(cgroups.CONTAINER, "4f2a1b3c9d0e", "docker")


@pytest.mark.parametrize(
    "where, words",
    [
        (CONTAINER, "haproxy runs in the docker container 4f2a1b3c9d0e (pid 77), outside haproxy.service"),
        (RunsIn(cgroups.UNIT, "kolla-haproxy.service"), "haproxy runs in kolla-haproxy.service (pid 77)"),
        (RunsIn(cgroups.UNIT, "session-3.scope"), "haproxy runs in session-3.scope (pid 77)"),
    ],
)
def test_a_haproxy_that_the_check_would_take_for_ours_stops_the_run(where, words):
    (sentence,) = refusals(processes=[Process("haproxy", 77, where)])
    assert sentence.startswith(words) and "the check `killall -0 haproxy` cannot tell the two apart: " in sentence
    assert sentence.endswith(", or set haproxy_adopt to true, and it is left running.")


@pytest.mark.parametrize(
    "process",
    [
        Process("haproxy", 77, RunsIn(cgroups.UNIT, "haproxy.service")),
        Process("haproxy", 77, RunsIn(cgroups.POD, "a-router-of-openshift")),
        Process("haproxy", 77, RunsIn()),
        Process("keepalived", 77, CONTAINER),  # which is no matter of haproxy's role; see test_rivals
    ],
)
def test_another_process_does_not(process):
    assert refusals(processes=[process]) == []


@pytest.fixture(name="host")
def a_host(tmp_path, monkeypatch):
    """A host with haproxy.cfg and folders for units; gives its configuration and the folder of drop-ins."""
    monkeypatch.setattr(takeover, "UNITS", str(tmp_path / "units"))
    (tmp_path / "units" / "haproxy.service.d").mkdir(parents=True)
    (tmp_path / "haproxy.cfg").write_text("global\n")
    return tmp_path / "haproxy.cfg", tmp_path / "units" / "haproxy.service.d"


def read(config, answers=None, own=()):
    programs = Programs(answers or {})
    reader = Reader(programs.run, programs.find)
    return takeover.read(reader, {"haproxy": str(config)}, [], own)["haproxy"], programs.ran


@pytest.mark.parametrize("program", ["dpkg-query", "rpm"])
@pytest.mark.parametrize("text, refused", [("global\n", 0), ("global # mine\n", 1)])
def test_the_package_manager_is_asked_whether_a_file_is_as_its_package_brought_it(host, program, text, refused):
    config, _drop_ins = host
    config.write_text(text)
    digest = hashlib.md5(b"global\n").hexdigest()
    found, ran = read(config, {program: f" {config} {digest}\n"})
    assert (
        len(found["refusals"]) == refused and ran == [command for command in ran if command.startswith(program)] != []
    )


def test_of_this_collections_own_file_it_is_not_asked(host):
    config, _drop_ins = host
    config.write_text(OURS)
    assert read(config, {"dpkg-query": "", "rpm": ""})[1] == []


def test_units_and_drop_ins_are_found_except_those_of_packages_and_masked_ones(host):
    config, drop_ins = host
    for path in (config, drop_ins / "not-a-drop-in.txt", drop_ins / "limits.conf"):
        path.write_text("[Service]\n")
    config.unlink()
    os.symlink("/dev/null", drop_ins.parent / "haproxy.service")
    assert read(config)[0]["set_aside"] == [str(drop_ins / "limits.conf")]
    (drop_ins.parent / "haproxy.service").unlink()
    (drop_ins.parent / "haproxy.service").write_text("[Service]\nExecStart=/opt/haproxy\n")
    found = read(config)[0]
    assert found["set_aside"] == [str(drop_ins.parent / "haproxy.service"), str(drop_ins / "limits.conf")]
    assert found["stop"] and len(found["refusals"]) == 2


def test_what_is_kept_is_found_for_the_removal(host):
    config, drop_ins = host
    for path in (config, drop_ins / "limits.conf", drop_ins.parent / "haproxy.service"):
        path.with_name(f"{path.name}.before-onprem-lb").write_text("")
    config.write_text(OURS)
    expected = [str(config), str(drop_ins.parent / "haproxy.service"), str(drop_ins / "limits.conf")]
    assert (read(config)[0]["put_back"], read(config)[0]["problems"]) == (expected, [])


def test_a_file_that_an_interrupted_run_has_kept_already_is_not_kept_twice(host):
    config, _drop_ins = host
    os.link(config, f"{config}.before-onprem-lb")
    assert read(config)[0]["problems"] == []
    (config.parent / "other").write_text("other\n")
    os.replace(config.parent / "other", config)
    assert len(read(config)[0]["problems"]) == 1


TABLES = "table ip keepalived\ntable ip6 other\ntable inet keepalived\n"
NOTHING_LOADED = ("", False)
LOADED = (f"{'a' * 64}  {CONF}\n100.0 50.0\n", True)


@pytest.mark.parametrize("record, is_known", [NOTHING_LOADED, ("half a reco", False), LOADED])
@pytest.mark.parametrize("text, is_theirs", [(OURS, False), ("global\n", True)])
def test_what_started_keepalived_is_asked_of_systemd_unless_our_unit_has_loaded_our_file(
    tmp_path, monkeypatch, record, is_known, text, is_theirs
):
    monkeypatch.setattr(takeover, "UNITS", str(tmp_path))
    monkeypatch.setattr(takeover.in_force, "record_of", lambda program: str(tmp_path / f"{program}.loaded"))
    (tmp_path / "keepalived.loaded").write_text(record)
    (tmp_path / "keepalived.conf").write_text(text)
    show = "Id=keepalived.service\nNames=keepalived.service\nActiveState=active\n"
    programs = Programs({"systemctl": show, "nft": TABLES, "dpkg-query": ""})
    reader = Reader(programs.run, programs.find)
    found = takeover.read(reader, {"keepalived": str(tmp_path / "keepalived.conf")}, [], [])["keepalived"]
    is_of_others = is_theirs or not is_known
    assert (found["restart"], found["tables"]) == (is_of_others, ["ip keepalived"] * is_of_others)
    assert any(command.startswith(("systemctl", "nft")) for command in programs.ran) is is_of_others


def test_a_host_without_anything_has_nothing_to_take_over(host):
    config, _drop_ins = host
    config.unlink()
    found = read(config)[0]
    assert not any(found.values()) and set(found) == set(takeover.Takeover._fields)
