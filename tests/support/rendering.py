# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders configurations of haproxy and keepalived from a model, as the roles do."""

from __future__ import annotations

import shlex

import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import haproxy as _haproxy
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import instances
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from support.paths import ROLES

STATS = {
    "haproxy_stats_address": "address",
    "haproxy_stats_port": "port",
    "haproxy_stats_user": "user",
    "haproxy_stats_password": "password",
    "haproxy_stats_uri": "uri",
    "haproxy_metrics_path": "metrics",
}
NOTHING = {"sync_groups": [], "scripts": [], "track_files": [], "auth_pass": ""}


def render(role, template, **variables):
    """Render a template with a role's defaults and other variables, with Ansible's settings of Jinja."""
    defaults = yaml.safe_load((ROLES / role / "defaults" / "main.yml").read_text())
    folder = FileSystemLoader(ROLES / role / "templates")
    jinja = Environment(loader=folder, trim_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
    jinja.filters["quote"] = shlex.quote  # as Ansible's
    return jinja.get_template(template).render({**defaults, **variables})


def haproxy(services, of="Debian", monitors=(), **variables):
    """Return haproxy.cfg for a family of distributions."""
    stats = {key: variables[name] for name, key in STATS.items() if name in variables}
    tuning = {name: variables[f"haproxy_{name}"] for name in _haproxy.TUNING if f"haproxy_{name}" in variables}
    model = _haproxy.model(
        {"services": services, "monitors": list(monitors), "stats": stats, "tuning": tuning}, [], "lb1"
    )
    assert model["faults"] == []
    families = yaml.safe_load((ROLES / "haproxy" / "vars" / "main.yml").read_text())["__haproxy_families"]
    return render("haproxy", "haproxy.cfg.j2", __haproxy_model=model, __haproxy_family=families[of], **variables)


def keepalived(settings, name, **variables):
    """Return keepalived.conf for a member."""
    raw = {name: variables[f"keepalived_{name}"] for name in instances.RAW if f"keepalived_{name}" in variables}
    model = instances.model({**NOTHING, "raw": raw, **settings})
    assert model["faults"] == []
    return render(
        "keepalived", "keepalived.conf.j2", __keepalived_model=model, **{"keepalived_router_id": name, **variables}
    )
