# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A removal reads only the variables that it needs, so that a mistake in another one does not stop it."""

from __future__ import annotations

import json
import subprocess

import pytest
import yaml
from ansible.template import trust_as_template
from ansible_collections.onprem.lb.plugins.module_utils._shared import platforms
from support.paths import ROLES
from support.roles import calls, variables_of

FILES, WILL = "onprem.lb.config_files", "onprem.lb.program"


@pytest.mark.parametrize("layout, variable", [("pair", "pair_services"), ("ipi", "ipi_machine_networks")])
def test_an_undefined_variable_does_not_stop_a_removal(layout, variable):
    defaults = yaml.safe_load((ROLES / layout / "defaults" / "main.yml").read_text())
    variables = {
        **defaults,
        **variables_of("layout"),
        "layout_definition": {"prefix": layout, "members": []},
        "ansible_play_hosts_all": [],
        "hostvars": {},
        "inventory_hostname": "lb1",
        "__layout_host": {"unremovable": {}, "active_units": [], "enabled_units": [], "existing_units": []},
        f"{layout}_down_file": "/run/lb.down",
        variable: trust_as_template("{{ no_such_variable.servers }}"),
    }
    removed = [given for _module, given in calls("layout", variables, FILES, tasks_from="absent.yml")]
    units = {unit["name"]: unit["state"] for given in removed for unit in given.get("units", [])}
    assert set(units.values()) == {"stopped"}
    paths = [file["path"] for given in removed for file in given["files"] if file["state"] == "absent"]
    own = (
        "anycast.service",
        "follow.service",
        "metrics.service",
        "quiet.service",
        "shutdown.service",
        "answers.service",
        "certificates.service",
        "down-file.path",
    )
    names = [f"onprem-lb-{name}" for name in own]
    assert sorted(units) == sorted(names)
    assert {f"/etc/systemd/system/{name}" for name in [*names, "onprem-lb-direct.service"]} < set(paths)
    assert "/run/lb.down" in paths


def test_what_other_programs_may_use_is_installed_and_not_recorded_for_a_removal():
    shared = [*platforms.PING_PACKAGES.values(), *platforms.SEBOOLEAN_PACKAGES.values(), "psmisc", "curl", "nftables"]
    host = {"missing_packages": ["keepalived", *shared], "recorded_packages": ["haproxy"], "os_family": "Debian"}
    variables = {"packages_host": {**host, "package_lists_fresh": True}, "ansible_check_mode": False}
    found = dict(calls("packages", variables, FILES, "ansible.builtin.apt", tasks_from="install.yml"))
    assert json.loads(found[FILES]["files"][0]["content"]) == ["haproxy", "keepalived"]
    assert found["ansible.builtin.apt"]["name"] == host["missing_packages"]


def test_the_hook_is_written_before_the_drop_in_that_names_it_and_deleted_after_it():
    host = {
        "takeover": {"keepalived": {"stop": False, "restart": False, "tables": [], "set_aside": [], "keep": []}},
        "selinux": False,
    }
    host.update(restarting_units=[], active_units=[], enabled_units=[], missing_packages=[])
    variables = {**variables_of("keepalived"), "__keepalived_host": host, "ansible_check_mode": False}
    variables.update({"__keepalived_files": [], "__keepalived_secrets": [], "__keepalived_written": {"changed": True}})
    path = variables["__keepalived_hook"]
    written = calls("keepalived", variables, WILL, FILES, tasks_from="configure.yml")
    assert [module for module, _given in written] == [WILL, FILES]
    assert written[0][1] == {"name": "keepalived_hook", "path": path}
    read = {"own_units": [], "own_packages": [], "recorded_packages": [], "existing_units": [], "missing_packages": []}
    read.update({"takeover": {"keepalived": {"put_back": []}}, "unremovable": {}, "os_family": "Debian"})
    variables.update({"__keepalived_before_removal": read, "keepalived_packages": [], "keepalived_config_path": "/x"})
    variables["keepalived_state"] = "absent"
    removed = calls("keepalived", variables, FILES, tasks_from="remove.yml")
    assert removed[-1][1]["files"] == [{"path": variables["__keepalived_unit_path"], "state": "absent"}]
    assert removed[-1][1]["folders"] == ["/usr/local/lib/onprem-lb-keepalived"]


@pytest.mark.parametrize("owners, left", [(None, []), ("app.map", ["app.map"]), ("log", ["log"])])
def test_the_folders_of_haproxys_package_go_but_for_what_is_the_owners(tmp_path, owners, left):
    folder = tmp_path / "haproxy"
    (folder / "dev").mkdir(parents=True)
    (folder / "dev" / "log").touch()  # on which systemd mounts the log's socket
    if owners:
        (folder / owners).touch()
    tasks = yaml.safe_load((ROLES / "packages/tasks/purge.yml").read_text())
    (command,) = [task["ansible.builtin.command"]["cmd"] for task in tasks if "empty folders" in task["name"]]
    subprocess.run(command.replace("{{ item }}", str(folder)).split(), check=True, stdout=subprocess.DEVNULL)
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted([*left, *["haproxy"] * bool(left)])
