# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible's main process does once, its workers need not do."""

from __future__ import annotations

import jinja2
from ansible_collections.onprem.lb.plugins.plugin_utils import preload, specs, templates


def test_a_worker_compiles_none_of_the_templates_that_each_deployment_renders(monkeypatch):
    preload.compile_templates()

    def compiling(*_given, **_named):
        raise AssertionError("a template is compiled anew")

    monkeypatch.setattr(jinja2.Environment, "compile", compiling)
    assert "net.ipv4.ip_nonlocal_bind" in templates.render("haproxy/sysctl.conf.j2", {})


def test_the_variables_of_a_role_are_those_of_its_specs():
    assert {"pair_vips", "pair_members"} < set(specs.role_options("pair"))
    assert "haproxy_maxconn" in specs.role_options("haproxy")
