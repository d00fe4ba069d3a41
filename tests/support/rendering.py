# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders the files of haproxy and keepalived from a model, as the roles do."""

from __future__ import annotations

import functools

import yaml
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import frr as _frr
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import haproxy as _haproxy
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import instances
from ansible_collections.onprem.lb.plugins.plugin_utils import templates

from support.paths import ROLES


def render(role, template, **variables):
    """Render a template with its variables, as the filter `role_template` does."""
    return templates.render(f"{role}/{template}", variables)


@functools.lru_cache(maxsize=None)
def _variables(role, folder):
    return yaml.safe_load((ROLES / role / folder / "main.yml").read_text())


def haproxy_model(services=(), monitors=(), **variables):
    """Return the model of the role haproxy, which may have faults."""
    given = {name[len("haproxy_") :]: value for name, value in variables.items()}
    settings = _haproxy.settings_of({"services": list(services), "monitors": list(monitors), **given})
    return _haproxy.model(settings, [], "lb1")


def haproxy(services, of="Debian", monitors=(), **variables):
    """Return haproxy.cfg for a family of distributions."""
    model = _to_render(services, monitors=monitors, **variables)
    return render("haproxy", "haproxy.cfg.j2", model=model, family=_family(of))


def haproxy_unit(services=(), of="Debian", **variables):
    """Return the drop-in of haproxy's unit."""
    model = _to_render(services, **variables)
    text = render("haproxy", "haproxy.cfg.j2", model=model, family=_family(of))
    return render("haproxy", "unit.conf.j2", tuning=model["tuning"], family=_family(of), config=text)


def _to_render(services, **variables):
    model = haproxy_model(services, **variables)
    assert model["faults"] == []
    return _haproxy.for_template(model)


def _family(name):
    return _variables("haproxy", "vars")["__haproxy_families"][name]


def keepalived_model(settings, name="lb1", **variables):
    """Return the model of the role keepalived, which may have faults."""
    given = {name[len("keepalived_") :]: value for name, value in variables.items()}
    return instances.keepalived_model(instances.settings_of({"router_id": name, **given, **settings}))


def keepalived(settings, name, hook=None, **variables):
    """Return keepalived.conf for a member.

    :param hook: where its hook is, in place of the role's path
    """
    model = keepalived_model(settings, name, **variables)
    assert model["faults"] == []
    return render("keepalived", "keepalived.conf.j2", model=model, hook=hook or _hook())


def frr(own=(), **settings):
    """Return frr.conf.

    :param own: the addresses of the host
    """
    model = _frr.model(settings, own)
    assert model["faults"] == []
    return render("frr", "frr.conf.j2", model=model)


def keepalived_unit(**variables):
    """Return the drop-in of keepalived's unit."""
    model = keepalived_model({"instances": []}, **variables)
    assert model["faults"] == []
    text = render("keepalived", "keepalived.conf.j2", model=model, hook=_hook())
    path = model["daemon"]["config_path"]
    return render("keepalived", "unit.conf.j2", config_path=path, hook=_hook(), config=text)


def _hook():
    return _variables("keepalived", "vars")["__keepalived_hook"]
