# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What others have set up stops a run with its name and its mend, or is kept; what packages bring does neither."""

from __future__ import annotations

import hashlib
import os

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._host import cgroups, ownership, takeover
from ansible_collections.onprem.lb.plugins.module_utils._host.cgroups import RunsIn
from ansible_collections.onprem.lb.plugins.module_utils._host.processes import Process
from ansible_collections.onprem.lb.plugins.module_utils._host.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._host.takeover import File, Found, judge
from support.programs import Programs

CFG, CONF = "/etc/haproxy/haproxy.cfg", "/etc/keepalived/keepalived.conf"
LIMITS = "/etc/systemd/system/haproxy.service.d/limits.conf"
OURS = f"{ownership.MARK}haproxy: changes made here are lost.\nglobal\n"
NOTHING = Found("haproxy", [], [], [])
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


def test_a_host_without_anything_has_nothing_to_take_over(host):
    config, _drop_ins = host
    config.unlink()
    found = read(config)[0]
    assert not any(found.values()) and set(found) == set(takeover.Takeover._fields)
