# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders the files of haproxy and keepalived from a model, as the roles do."""

from __future__ import annotations

import functools
import json

import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import haproxy as _haproxy
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import instances
from ansible_collections.onprem.lb.plugins.plugin_utils import templates

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
    """Render a template with its variables, as the filter `role_template` does."""
    return templates.render(f"{role}/{template}", variables)


@functools.lru_cache(maxsize=None)
def _variables(role, folder):
    return yaml.safe_load((ROLES / role / folder / "main.yml").read_text())


def haproxy_model(services=(), monitors=(), **variables):
    """Return the model of the role haproxy, which may have faults."""
    stats = {key: variables[name] for name, key in STATS.items() if name in variables}
    tuning = {name: variables[f"haproxy_{name}"] for name in _haproxy.TUNING if f"haproxy_{name}" in variables}
    settings = {"services": list(services), "monitors": list(monitors), "stats": stats, "tuning": tuning}
    return _haproxy.model(settings, [], "lb1")


def haproxy(services, of="Debian", monitors=(), **variables):
    """Return haproxy.cfg for a family of distributions."""
    model = haproxy_model(services, monitors, **variables)
    assert model["faults"] == []
    model["services"] = json.dumps(model["services"])
    return render("haproxy", "haproxy.cfg.j2", model=model, family=_family(of))


def haproxy_unit(of="Debian", **variables):
    """Return the drop-in of haproxy's unit."""
    model = haproxy_model(**variables)
    assert model["faults"] == []
    return render("haproxy", "unit.conf.j2", tuning=model["tuning"], family=_family(of))


def _family(name):
    return _variables("haproxy", "vars")["__haproxy_families"][name]


def keepalived_model(settings, name="lb1", **variables):
    """Return the model of the role keepalived, which may have faults."""
    given = {"keepalived_router_id": name, **variables}
    daemon = {key: given[f"keepalived_{key}"] for key in instances.DAEMON if f"keepalived_{key}" in given}
    return instances.keepalived_model({**NOTHING, "daemon": daemon, **settings})


def keepalived(settings, name, hook=None, **variables):
    """Return keepalived.conf for a member.

    :param hook: where its hook is, in place of the role's path
    """
    model = keepalived_model(settings, name, **variables)
    assert model["faults"] == []
    return render("keepalived", "keepalived.conf.j2", model=model, hook=hook or _hook())


def keepalived_unit(**variables):
    """Return the drop-in of keepalived's unit."""
    model = keepalived_model({"instances": []}, **variables)
    assert model["faults"] == []
    return render("keepalived", "unit.conf.j2", config_path=model["daemon"]["config_path"], hook=_hook())


def _hook():
    return _variables("keepalived", "vars")["__keepalived_hook"]
