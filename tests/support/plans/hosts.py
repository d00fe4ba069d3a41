# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts of a layout after a run: the files that the run has written, and what `host_info` reads of them."""

from __future__ import annotations

import contextlib
import copy
import json
from types import MappingProxyType, SimpleNamespace
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence
from unittest import mock

from ansible_collections.onprem.lb.plugins.module_utils._agent.follow import config, groups, state
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import deployment
from ansible_collections.onprem.lb.plugins.module_utils._host.read import answered, beside, facts, followed, host, pods
from ansible_collections.onprem.lb.plugins.module_utils._host.read.reader import Reader
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import follow
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent
from ansible_collections.onprem.lb.plugins.module_utils._plan.model.plan import MemberPlan, Plan
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import files as pod_files
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines
from ansible_collections.onprem.lb.plugins.module_utils._shared.engines import CONFIGS, NATIVE, PODS, UNITS
from ansible_collections.onprem.lb.plugins.modules import host_info
from ansible_collections.onprem.lb.plugins.plugin_utils import templates

from support.plans import askers
from support.plans.pods import CREDENTIALS, OPTIONS
from support.rendering import haproxy, keepalived

Files = Dict[str, str]  # by path
Member = Dict[str, Any]
RECORD = "/etc/onprem-lb-members.json"
KEEPALIVED = "2.2.7"
# Of a balancer's settings, those of which the agent has its own.
OF_AGENT = ("client", "server", "tunnel", "fin")
HAPROXY = {"config": CONFIGS[UNITS[NATIVE].balancer], "socket": "/run/haproxy/admin.sock"}


def units(planned: MemberPlan) -> List[str]:
    """Return what a run starts on a member."""
    every = PODS if planned.pods else UNITS[planned.engine]
    runs = (planned.balancer.services, planned.router.instances)
    return [unit for unit, it_runs in zip(every, runs) if it_runs]


def written(plan: Plan, name: str, auth_pass: str) -> Files:
    """Return the files that a run writes on a member, as far as a later one reads them."""
    planned = plan.members[name]
    of_router = _of_pods if planned.pods else _of_units
    found = {**of_router(name, planned, auth_pass), **askers.beside(planned), RECORD: json.dumps(plan.record)}
    if planned.follow and not planned.pods:
        found[follow.CONFIG] = follow.files(planned.follow, CREDENTIALS, HAPROXY).config["content"]
    return found


def _of_pods(name: str, planned: MemberPlan, auth_pass: str) -> Files:
    made = pod_files.of_member(name, planned, auth_pass, OPTIONS, templates.render, CREDENTIALS)
    assert made.faults == []
    manifests = {path: json.dumps(manifest) for path, manifest in made.manifests.items()}
    return {**{file.path: file.content for file in made.configurations}, **manifests}


def _of_units(name: str, planned: MemberPlan, auth_pass: str) -> Files:
    router, balancer = {**planned.router._asdict(), "auth_pass": auth_pass}, planned.balancer
    paths = UNITS[planned.engine]
    if planned.engine == engines.AGENT:
        settings = {key: getattr(balancer, key) for key in ("services", "monitors", "down_file", "answer_port")}
        timeouts = {f"timeout_{key}": balancer.timeouts[key] for key in OF_AGENT if key in balancer.timeouts}
        made = agent.translate({**router, **settings, **timeouts})
        assert made["faults"] == []
        texts = {paths.balancer: made[engines.PROXY], paths.router: made[engines.VRRP]}
        return {CONFIGS[unit]: deployment.document(config) for unit, config in texts.items() if config}
    timeouts = {f"haproxy_timeout_{key}": value for key, value in balancer.timeouts.items()}
    ports = {"haproxy_stats_port": balancer.stats_port, "haproxy_answer_port": balancer.answer_port}
    cfg = haproxy(balancer.services, monitors=balancer.monitors, **timeouts, **ports) if balancer.services else ""
    conf = keepalived(router, name) if planned.router.instances else ""
    return {CONFIGS[paths.balancer]: cfg, CONFIGS[paths.router]: conf}


class _Reader(Reader):
    """Reads a host of which there are only files and units that run."""

    def __init__(self, files: Files, active: Iterable[str], addresses: List[Dict[str, Any]]) -> None:
        super().__init__(lambda _command: (0, "", ""), lambda name: f"/usr/bin/{name}")
        self._files, self._active, self._addresses = files, [*active], addresses

    def text(self, path: str) -> str:
        return self._files.get(path, "ID=debian\n" if path == facts.OS_RELEASE else "")

    def addresses(self) -> List[Dict[str, Any]]:
        return self._addresses

    def answering(self, *_asked: Any) -> Dict[str, List[str]]:
        return {}

    def is_as_shipped(self, path: str) -> bool:
        return False

    def units_in(self, prop: str, wanted: List[str], *states: str) -> List[str]:
        in_states = {"active", "loaded", "enabled"} & {*states}
        return [unit for unit in wanted if unit in self._active] if in_states else []


def read(
    files: Files, active: Iterable[str], addresses: List[Dict[str, Any]], listeners: Sequence[Dict[str, Any]] = ()
) -> Dict[str, Any]:
    """Return what `host_info` returns on a host with these files, on which these units or pods run.

    :param listeners: the sockets on which the balancer listens
    """
    asked = {name: copy.copy(option.get("default")) for name, option in host_info.ARGUMENTS.items()}
    asked.update(copy.deepcopy(host_info.OF_LAYOUT))
    every = [unit for one in (*UNITS.values(), PODS) for unit in one]
    asked.update(units=every, members_record=RECORD, with_auth_pass=True)
    with _files_alone(files, active, listeners):
        found = host.read(asked, _Reader(files, active, addresses))
    return {**found, "keepalived_version": KEEPALIVED, "problems": []}


@contextlib.contextmanager
def _files_alone(files: Files, active: Iterable[str], listeners: Sequence[Dict[str, Any]]) -> Iterator[None]:
    """Keep what runs on this host away, and let a cluster that is followed have answered once."""
    text = next((files[path] for path in (followed.CONFIG, followed.config_of(engines.FOLLOW)) if path in files), None)
    labels = groups.labels(config.parse(text)[0]) if text else []
    of_cluster = (dict.fromkeys(labels, SimpleNamespace(servers=["node"])), [])
    with contextlib.ExitStack() as patched:
        for place, name, instead in (
            (facts, "listeners", lambda: [*listeners]),
            (facts, "is_ours", lambda unit: unit in active),
            (host.records, "is_armed", lambda: False),
            (beside, "not_following", lambda _reader: []),
            (beside, "plane", lambda _reader: []),
            (pods, "running", lambda: dict.fromkeys(active)),
            (pods, "own", lambda names: [each for each in names if each in active]),
            (pods, "enabled", lambda names: [each for each in names if each in active]),
            (pods, "manifest", lambda name: files.get(pods.manifest_of(name), "")),
            (state, "load", lambda _path: of_cluster),
            (answered, "of", set),
        ):
            patched.enter_context(mock.patch.object(place, name, instead))
        yield


def after(
    members: List[Member], plan: Plan, files: Mapping[str, Files], holders: Mapping[str, str] = MappingProxyType({})
) -> List[Member]:
    """Return the members as the next run finds them: they have these files, run them, and hold the VIPs.

    :param files: of each, as `written` returns them
    :param holders: by VIP; by default the first member of each
    """
    lengths = {vip.address: vip.held_as for vip in plan.vips}
    held = {vip.address: holders.get(vip.address, vip.order[0]) for vip in plan.vips}
    found = []
    for each in members:
        planned, vips = plan.members[each["name"]], {vip.address for vip in plan.vips}
        own = [info for info in each["host"]["addresses"] if info["address"] not in vips]
        links = {
            address.partition("/")[0]: instance["interface"]
            for instance in planned.router.instances
            for address in instance["addresses"]
        }
        own += [
            {"interface": links[vip], "address": vip, "prefix": lengths[vip], "mac": own[-1]["mac"]}
            for vip, holder in held.items()
            if holder == each["name"]
        ]
        balancer = askers.serving(planned.balancer, planned.engine)
        seen = read(files[each["name"]], units(planned), own, balancer)
        found.append({**each, "host": {**seen, "plane": _plane(planned)}})
    return found


def _plane(planned: MemberPlan) -> List[Dict[str, Any]]:
    """Return what a direct plane reports of its services, whose servers all get new connections."""
    services = json.loads(planned.direct["content"])["services"] if planned.direct else []
    return [
        {
            **{key: service[key] for key in ("name", "bind", "port")},
            "new_connections": service.get("new_connections", "servers"),
            "servers": [{"name": each["address"], **each, "serves": True} for each in service["servers"]],
        }
        for service in services
    ]
