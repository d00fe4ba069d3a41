# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of whoever asks a member's balancer, as a run leaves them there."""

from __future__ import annotations

import json
import shlex

from ansible_collections.onprem.lb.plugins.module_utils._host.read import asking
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import configurations, files
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import PROGRAMS
from ansible_collections.onprem.lb.plugins.plugin_utils import templates

from support.plans.asking import ASKED
from support.plans.pods import OPTIONS


def beside(plan):
    """The files of what asks a member's balancer beside its router, in units: the redirect, and the questions."""
    command = " ".join(map(shlex.quote, ["/usr/lib/hook", "answers", "/etc/x", *map(json.dumps, plan.questions)]))
    unit = templates.render("layout/answers.service.j2", {"command": command}) if plan.questions else ""
    return {asking.REDIRECTS[0]: configurations.redirect(plan), asking.ANSWERS: unit}


def units(name, plan):
    """The files of a member that name ports of its balancer, as its units have them."""
    if plan.engine == "agent":
        return {**beside(plan), ASKED["agent_config"]: json.dumps(configurations.agent_model(plan, name, "")["vrrp"])}
    model = configurations.keepalived_model(plan, name, "")
    conf = templates.render("keepalived/keepalived.conf.j2", {"model": model, "hook": ""})
    return {**beside(plan), ASKED["keepalived_config"]: conf}


def pods(name, plan):
    """The same of its pods."""
    made = files.of_member(name, plan, "", OPTIONS, templates.render, reloads=True)
    return {file.path: file.content for file in made.configurations}


def serving(balancer, engine):
    """The sockets on which a balancer listens."""
    answering = [*([balancer.answer_port] if balancer.answer_port else []), *balancer.also_answers]
    ports = [*answering, *(each["port"] for each in [*balancer.services, *balancer.monitors])]
    return [{"port": port, "program": PROGRAMS[engine][-1], "address": "0.0.0.0", "pid": 7} for port in ports]
