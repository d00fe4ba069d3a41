"""Rendered configurations are held against golden files, so that every change of them shows in a review.

`make golden` writes them anew; read the difference before you commit it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from functools import partial
from types import MappingProxyType

import pytest
from ansible_collections.onprem.lb.plugins.filter.pods import as_yaml
from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import deployment, units
from ansible_collections.onprem.lb.plugins.module_utils._plan.dns import resolver
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import redirect as nft_redirect
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import units as layout_units
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import agent as _engine_config
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as _pair
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import presets
from ansible_collections.onprem.lb.plugins.module_utils._shared import engines
from ansible_collections.onprem.lb.plugins.module_utils._shared.pods import CHECKSUM
from support import drills
from support.inventories import Inventory
from support.paths import EXAMPLES, GOLDEN
from support.plans import pods
from support.plans.clusters import cluster
from support.plans.pairs import pair
from support.rendering import frr, haproxy, haproxy_unit, keepalived, keepalived_unit, render


def forecast_of(name):
    """The forecast of an example, where BGP carries the VIPs."""
    inventory = Inventory(EXAMPLES / f"{name}.yml")
    (layout,) = inventory.layouts()
    return "\n".join([*inventory.plan(layout).table, ""])


def of_pair(name, **settings):
    """A member's keepalived.conf, as the role `pair` hands it to the role `keepalived`."""
    plan = _pair.plan(pair(**settings))
    assert plan.faults == []
    return keepalived({**plan.members[name].router._asdict(), "auth_pass": "0f3a9c1e"}, name)


CHECKS = [
    {"gateway": "10.0.0.254", "vips": "ingress"},
    {"url": "http://localhost:2381/health", "name": "etcd", "vips": "api"},
    {"interface": "ens224"},
]


def of_cluster(preset, what, name="master-0", **settings):
    """A node's haproxy.cfg or keepalived.conf, as the role `ipi` hands it on, for the cluster of the articles."""
    plan = ipi.plan(cluster("master-0", "master-2", "master-1", preset=preset, **settings))
    assert plan.faults == []
    if what == "keepalived":
        return keepalived({**plan.members[name].router._asdict(), "auth_pass": "0f3a9c1e"}, name)
    balancer = plan.members[name].balancer
    return haproxy(
        balancer.services,
        monitors=balancer.monitors,
        haproxy_stats_port=balancer.stats_port,
        **{f"haproxy_timeout_{key}": value for key, value in balancer.timeouts.items()},
    )


def resolver_of_cluster(what):
    """A file that the role `resolver` writes on a node whose names systemd-resolved is in charge of."""
    plan = ipi.plan(cluster("master-0", "master-2", "master-1", dns=True, domain="example.com"))
    assert plan.faults == []
    given = plan.members["master-0"].resolver
    stub = {"text": "nameserver 127.0.0.53\n"}
    known = {"port_53": [], "resolved": True, "networkmanager": False, "resolv_conf": stub, "resolved_config": ""}
    host = {
        **known,
        "addresses": [given["address"]],
        "source": given["address"],
        "upstreams": {},
        "resolved_config": "",
    }
    found = resolver.plan(given, host)
    assert found.faults == []
    return getattr(found, what)


QUESTIONS = {"haproxy_answers": "haproxy", "chk_ingress": "http"}  # the type of each, by its name
RESOLVER = {
    "dnsmasq.conf": "config",
    "names": "names",
    "hosts": "hosts",
    "Corefile": "corefile",
    "resolved.conf": "resolved",
}


def agent_of_pair(name, what):
    """A member's configuration of the agent, or its unit, for the settings of which keepalived's and haproxy's are."""
    return agent(given_to_agent(_pair.plan(pair(engine="agent")).members[name]), what)


def haproxy_of(planned):
    """A member's haproxy.cfg, as the role `pair` hands it to the role `haproxy`."""
    return haproxy(planned.balancer.services, haproxy_answer_port=planned.balancer.answer_port)


def given_to_agent(planned):
    balancer = {key: getattr(planned.balancer, key) for key in ("services", "down_file", "answer_port")}
    return {**planned.router._asdict(), **balancer, "auth_pass": "0f3a9c1e"}


def agent_of_cluster(name, what, **settings):
    """A node's configuration of the agent, as the role `ipi` hands it on, for the plan that has the others native."""
    nodes = cluster("master-0", "master-2", "master-1", **settings)
    for node in nodes:
        node["settings"]["engine"] = "agent" if node["name"] == name else "native"
    plan = ipi.plan(nodes)
    assert plan.faults == []
    balancer = plan.members[name].balancer
    own = {"monitors": balancer.monitors, "stats_port": balancer.stats_port}
    timeouts = {f"timeout_{key}": balancer.timeouts[key] for key in ("client", "server", "tunnel")}
    return agent({**given_to_agent(plan.members[name]), **own, **timeouts}, what)


def agent(given, what):
    """What the role `agent` makes of its variables."""
    found = _engine_config.translate(given)
    assert found["faults"] == []
    if what in found:
        return deployment.document(found[what])
    daemon = engines.Daemon(what.partition(".")[0])
    return units.unit(daemon, found[daemon.name], units.Paths(), units.Options(**found["options"]))


BGP = {"asn": 64512, "peers": [{"address": "192.0.2.1", "asn": 64601}], "prefixes": ["198.51.100.10"]}
EVERY_SETTING_OF_BGP = {
    "router_id": "192.0.2.99",
    "peers": [
        {"address": "192.0.2.1", "asn": 64601, "bfd": True, "password": "0f3a9c1e", "ttl_security": 1, "hold_time": 30},
        {"address": "192.0.2.2", "asn": 64602, "port": 1179, "multihop": 5, "local_address": "192.0.2.11"},
        {"address": "2001:db8::1", "asn": 64601, "communities": ["64512:1:100", "no-export"], "connect_time": 10},
    ],
    "prefixes": ["198.51.100.10", "2001:db8:1::10", "198.51.100.11/32"],
    "bfd": {"interval": 300, "multiplier": 5},
    "communities": ["64512:200", "64512:100"],
    "graceful_shutdown": True,
    "extra_lines": ["ip prefix-list other seq 5 permit 203.0.113.0/24"],
}

EVERY_SERVICE = [
    {
        "name": "web",
        "port": 80,
        "mode": "http",
        "balance": "leastconn",
        "bind": ["*", "::"],
        "check": {
            "type": "http",
            "path": "/healthz",
            "port": 1936,
            "interval": 0.5,
            "fall": 2,
            "rise": 1,
            "slow_start": 1.5,
        },
        "servers": [
            {"name": "one", "address": "192.0.2.31", "weight": 10, "maxconn": 200},
            {"name": "two", "address": "2001:db8::32", "port": 8080},
            {"name": "spare", "address": "192.0.2.33", "backup": True},
            {"name": "named", "address": "app1.example.com", "options": ["send-proxy-v2", "cookie 'it is $1'"]},
        ],
        "routes": [
            {
                "name": "shop",
                "hosts": ["shop.example", "*.shop.example"],
                "balance": "source",
                "servers": ["192.0.2.41"],
            },
            {
                "name": "web-api",
                "hosts": ["web.example"],
                "paths": ["/api/", "/it's"],
                "check": {"type": "http", "path": "/up"},
                "servers": [{"name": "api", "address": "192.0.2.42", "port": 8081}],
                "backend_lines": ["retries 5"],
            },
        ],
        "frontend_lines": ["option forwardfor"],
        "backend_lines": ["cookie SRV insert indirect nocache"],
    },
    {"name": "api", "port": 6443, "check": {"type": "https", "path": "/readyz"}, "servers": ["192.0.2.21"]},
    {"name": "raw", "port": 5000, "bind": ["2001:db8::10"], "check": {"type": "none"}, "servers": ["192.0.2.21"]},
]

CHECKS_AND_LIMITS = [
    {
        "name": "web",
        "port": 443,
        "maxconn": 500,
        "send_proxy": True,
        "allow": ["192.0.2.0/24", "2001:db8::/32", "198.51.100.7"],
        "check": {"type": "http", "path": "/healthz", "port": 1936, "host": "router.example", "status": 200},
        "servers": ["192.0.2.31"],
        "routes": [
            {"name": "shard", "hosts": ["*.shard.example", "shard.example"], "servers": ["192.0.2.41"]},
            {"name": "blue", "hosts": ["blue.example"], "check": {"type": "none"}, "servers": ["192.0.2.42"]},
        ],
    },
    {
        "name": "api",
        "port": 6443,
        "send_proxy": True,
        "check": {
            "type": "https",
            "path": "/readyz",
            "host": "api.example",
            "sni": "sni.example",
            "status": ["200-299", 401],
            "verify": True,
            "ca": "/etc/ssl/certs/ca-certificates.crt",
            "slow_start": 30,
        },
        "servers": ["192.0.2.21"],
    },
    {
        "name": "config",
        "port": 22623,
        "check": {"type": "https", "host": "config.example", "verify": True},
        "servers": ["192.0.2.21"],
    },
    {
        "name": "rke2",
        "port": 9345,
        "check": {
            "type": "https",
            "host": "rke2.example",
            "sni": "sni.example",
            "verify": True,
            "steps": [
                {"port": 6443, "path": "/readyz", "status": [200, 401]},
                {"path": "/v1-rke2/readyz", "status": 403},
                {"type": "tcp", "port": 2379},
            ],
        },
        "send_proxy": True,
        "servers": ["192.0.2.21"],
    },
    {
        "name": "etcd",
        "port": 2379,
        "check": {"steps": [{"port": 2379}, {"port": 2380}]},
        "servers": ["192.0.2.21"],
    },
    {"name": "named", "port": 8443, "check": {"type": "https", "host": "named.example"}, "servers": ["192.0.2.21"]},
]

REMEMBERED = [
    {
        "name": "shop",
        "port": 80,
        "mode": "http",
        "servers": ["192.0.2.31", {"address": "192.0.2.33", "backup": True}],
        "sticky": {"by": "req.cook(JSESSIONID)", "expire": "1h", "size": "1m", "len": 52},
        "rate_limit": {"requests": 100, "except": ["198.51.100.0/24"]},
        "routes": [{"name": "admin", "paths": ["/admin"], "servers": ["192.0.2.41"], "sticky": {"by": "cookie"}}],
    },
    {
        "name": "ftp",
        "port": 21,
        "servers": ["192.0.2.51", "192.0.2.52"],
        "sticky": {"by": "source"},
        "rate_limit": {"connections": 20, "period": "1m"},
        "frontend_name": "ftp-in",
    },
]

EVERY_INSTANCE = {
    "instances": [
        {
            "name": "front",
            "interface": "eth0",
            "vrid": 16,
            "version": 3,
            "advert_interval": 0.1,
            "priority": 200,
            "preempt_delay": 30,
            "multicast": True,
            "source": "192.0.2.1",
            "addresses": ["192.0.2.10/24", "192.0.2.11/24"],
            "virtual_routes": ["default via 192.0.2.254 dev eth0 metric 50", "2001:db8:1::/48 dev eth1 table 7"],
            "track_scripts": ["alive"],
            "track_files": ["down"],
            "track_interfaces": ["eth1"],
            "notify": "/usr/local/bin/state",
            "garp_refresh": 0,
            "lines": ["garp_master_delay 1"],
        },
        {
            "name": "back",
            "interface": "eth1",
            "vrid": 16,
            "state": "MASTER",
            "auth_pass": "abcd1234",
            "addresses": ["198.51.100.10"],
            "peers": ["198.51.100.2", "198.51.100.3"],
        },
        {
            "name": "weighted",
            "interface": "eth1",
            "vrid": 32,
            "addresses": ["198.51.100.11 dev eth0"],
            "peers": ["198.51.100.2"],
            "min_ttl": 64,
            "dont_track_primary": True,
            "excluded_addresses": ["2001:db8::11/64", "203.0.113.11 dev ens192"],
            "notify": "/usr/local/bin/state",
            "notify_user": "ops",
            "track_scripts": [{"name": "alive", "weight": -20}],
            "track_interfaces": [{"name": "eth0", "weight": 5}],
        },
    ],
    "scripts": [{"name": "alive", "command": "/usr/bin/killall -0 haproxy", "user": "root", "fall": 2}],
    "track_files": [{"name": "down", "path": "/run/haproxy.down"}],
    "sync_groups": [
        {
            "name": "both",
            "instances": ["front", "back"],
            "track_scripts": ["alive"],
            "track_interfaces": ["eth2"],
            "notify": "/usr/local/bin/group",
            "notify_user": "ops",
        }
    ],
}

# What the golden file of a preset has besides its name.
OF_PRESETS = {
    "openshift_upi": {"bootstrap": "192.0.2.20", "machine_networks": ["192.0.2.0/24"]},
    "openshift_arbiter": {"infra_nodes": [], "machine_networks": ["192.0.2.0/24"]},
    "k0s": {"infra_nodes": []},
    "talos": {"infra_nodes": []},
    "kubeadm": {"infra_nodes": []},
    "k3s": {"infra_nodes": []},
}
PRESETS = {
    name.replace("_", "-"): {"preset": name, **OF_PRESETS.get(name, {})}
    for name in presets.PRESETS
    if name != presets.DEFAULT
}


def of_preset(name, what):
    """What the role `pair` makes of a preset: haproxy.cfg, or the configuration of the agent's proxy."""
    plan = _pair.plan(pair(**PRESETS[name]))
    assert plan.faults == []
    planned = plan.members["lb1"]
    return agent(given_to_agent(planned), what) if what == "proxy" else haproxy_of(planned)


# Of the first master and of a worker; the engine, and the preset.
PODS = {
    **{preset: ("master-0", "native", preset) for preset in ("default", "upstream", "ocp45")},
    "agent": ("master-0", "agent", "default"),
    "worker": ("worker-0", "native", "default"),
    "follow": ("master-0", "native", "default", pods.FOLLOW),
    "bgp": ("master-0", "native", "default", pods.BGP),
}


def of_pods(name, engine, preset, more=MappingProxyType({})):
    """The manifests of a node's static pods. Their checksum changes with each version of the agent."""
    text = ""
    for manifest in pods.made(name, engine=engine, preset=preset, **more).manifests.values():
        checksum = manifest["metadata"]["annotations"][CHECKSUM]
        assert len(checksum) == 40
        text += as_yaml(manifest).replace(checksum, "of what the pod reads")
    return text


def sidecar_of_pods(name, engine, preset, more=MappingProxyType({})):
    return pods.text("sidecar.json", name, engine=engine, preset=preset, **more)


DIRECT = {
    "name": "api",
    "port": 6443,
    "plane": "direct",
    "servers": ["192.0.2.21", {"name": "master-1", "address": "192.0.2.22", "weight": 2}],
    "check": {"type": "https", "path": "/readyz", "interval": 1},
}


def anycast_unit(runs_programs):
    return render(
        "layout",
        "anycast.service.j2",
        after="frr.service haproxy.service onprem-lb-proxy.service",
        command="/usr/bin/python3 -I /usr/local/lib/onprem-lb-anycast/agent.pyz",
        config="/etc/onprem-lb-agent/anycast.json",
        checksum="9f86d081",
        runs_programs=runs_programs,
        sees_processes=runs_programs,
    )


def follow_unit(native, paths, groups=()):
    return render(
        "layout",
        "follow.service.j2",
        command="/usr/bin/python3 -I /usr/local/lib/onprem-lb-follow/agent.pyz",
        config="/etc/onprem-lb-follow/follow.json",
        checksum="9f86d081",
        native=native,
        paths=paths,
        groups=list(groups),
    )


CASES = {
    **{f"pair-{name}.haproxy.cfg": partial(of_preset, name, "haproxy") for name in PRESETS},
    "pair-rke2.agent-proxy.json": partial(of_preset, "rke2", "proxy"),
    "pair.haproxy.cfg": lambda: haproxy_of(_pair.plan(pair()).members["lb1"]),
    "pair.redhat.haproxy.cfg": lambda: haproxy(
        _pair.plan(pair()).members["lb1"].balancer.services, of="RedHat", haproxy_metrics_path=""
    ),
    "pair.lb1.keepalived.conf": lambda: of_pair("lb1"),
    "pair.lb2.keepalived.conf": lambda: of_pair("lb2"),
    "two-vips-fast.lb2.keepalived.conf": lambda: of_pair(
        "lb2", vips=["192.0.2.10", "2001:db8::10/64"], vrrp_version=3, advert_interval=0.1, preempt=False
    ),
    "the-article-mended.lb1.keepalived.conf": lambda: of_pair(
        "lb1", priorities=[100, 98], track_weight=4, track_events=False, multicast=True
    ),
    "ipi-default.haproxy.cfg": lambda: of_cluster("default", "haproxy"),
    "ipi-default.keepalived.conf": lambda: of_cluster("default", "keepalived"),
    "ipi-upstream.keepalived.conf": lambda: of_cluster("upstream", "keepalived"),
    "ipi-checks.keepalived.conf": lambda: of_cluster("default", "keepalived", checks=CHECKS),
    "ipi-ocp45.haproxy.cfg": lambda: of_cluster("ocp45", "haproxy"),
    "ipi-ocp45.keepalived.conf": lambda: of_cluster("ocp45", "keepalived"),
    "every-service.haproxy.cfg": lambda: haproxy(
        EVERY_SERVICE,
        monitors=[
            {"name": "ready", "port": 9444, "path": "/ready"},
            {"name": "serves", "bind": ["192.0.2.1"], "port": 9454, "at_least": {"web": 2, "api": 1}},
        ],
        # As text, which is what -e and an INI inventory give.
        haproxy_maxconn="4000",
        haproxy_log_normal="false",
        haproxy_global_lines=["nbthread 2"],
        haproxy_defaults_lines=["option http-server-close"],
        haproxy_extra_lines=["listen extra", "    bind 127.0.0.1:7000"],
        haproxy_stats_address="2001:db8::1",
        haproxy_stats_user="ops",
        haproxy_stats_password="Vq8-not-known",
    ),
    "remembered.haproxy.cfg": lambda: haproxy(REMEMBERED),
    "checks-and-limits.haproxy.cfg": lambda: haproxy(CHECKS_AND_LIMITS, haproxy_timeout_fin="5s"),
    "checks-and-limits.agent-proxy.json": lambda: agent(
        {"services": CHECKS_AND_LIMITS, "timeout_fin": "5s", "stop_within": "1m"}, "proxy"
    ),
    "every-instance.keepalived.conf": lambda: keepalived(
        EVERY_INSTANCE,
        "lb1",
        keepalived_startup_delay=2.5,
        keepalived_global_lines=["vrrp_garp_interval 0.001"],
        keepalived_extra_lines=["vrrp_script spare {", '    script "/usr/bin/true"', "}"],
    ),
    "haproxy.unit.conf": lambda: haproxy_unit(haproxy_down_file="/run/haproxy.down"),
    "haproxy-commands.unit.conf": lambda: haproxy_unit(
        haproxy_down_file="/run/haproxy.down",
        haproxy_start_commands=["/usr/sbin/nft --file /etc/onprem-lb/redirect.nft", "/usr/bin/printf '%s $HOME' up"],
        haproxy_stop_commands=[f"/usr/sbin/nft '{nft_redirect.DELETE}'"],
    ),
    "haproxy-alone.unit.conf": haproxy_unit,
    "haproxy.redhat.unit.conf": lambda: haproxy_unit(of="RedHat", haproxy_down_file="/run/haproxy.down"),
    "keepalived.unit.conf": keepalived_unit,
    "api-redirect.nft": lambda: nft_redirect.ruleset(["2001:db8::10", "192.0.2.11", "192.0.2.10/24"], {6443: 9445}),
    "pair.lb1.agent-vrrp.json": lambda: agent_of_pair("lb1", "vrrp"),
    "pair.agent-proxy.json": lambda: agent_of_pair("lb1", "proxy"),
    "agent-vrrp.unit.conf": lambda: agent_of_pair("lb1", "vrrp.unit"),
    "agent-proxy.unit.conf": lambda: agent_of_pair("lb1", "proxy.unit"),
    "ipi-default.agent-vrrp.json": lambda: agent_of_cluster("master-0", "vrrp"),
    "ipi-default.agent-proxy.json": lambda: agent_of_cluster("master-0", "proxy"),
    "ipi-ocp45.agent-vrrp.json": lambda: agent_of_cluster("master-0", "vrrp", preset="ocp45"),
    "metrics.service": lambda: render(
        "layout",
        "metrics.service.j2",
        command="/usr/bin/python3 -I /usr/local/lib/onprem-lb-metrics/agent.pyz metrics "
        "--file /var/lib/prometheus/node-exporter/onprem-lb.prom --certificate '/etc/haproxy/100%.pem'",
        file="/var/lib/prometheus/node-exporter/onprem-lb.prom",
        folder="/var/lib/prometheus/node-exporter",
        announces=False,
        checksum="9f86d081",
    ),
    "answers.service": lambda: render(
        "layout",
        "answers.service.j2",
        command="/usr/local/lib/onprem-lb-keepalived/hook answers /etc/keepalived/keepalived.conf "
        + " ".join(shlex.quote(json.dumps({"name": name, "type": kind})) for name, kind in QUESTIONS.items()),
    ),
    "shutdown.service": lambda: render(
        "layout",
        "shutdown.service.j2",
        before="kubelet.service crio.service",
        routers="keepalived.service onprem-lb-vrrp.service",
    ),
    "quiet.service": lambda: render(
        "layout",
        "quiet.service.j2",
        before="onprem-lb-anycast.service keepalived.service onprem-lb-vrrp.service",
        settings=layout_units.QUIET,
        folder=layout_units.QUIET_FOLDER,
    ),
    "follow.service": partial(follow_unit, native=True, paths=["-/etc/haproxy", "-/run/haproxy.loaded"]),
    "follow.agent.service": partial(
        follow_unit, native=False, paths=["-/etc/onprem-lb-agent"], groups=["onprem-lb-proxy"]
    ),
    "resolver-keeper.service": lambda: render(
        "resolver",
        "keeper.service.j2",
        unit="onprem-lb-resolver.service",
        command="/usr/bin/python3 -I /usr/local/lib/onprem-lb-resolver/agent.pyz resolver-keeper",
        config="/etc/onprem-lb-resolver/keeper.json",
        checksum="9f86d081",
    ),
    "resolver-nodes.service": lambda: render("resolver", "nodes.service.j2", unit="onprem-lb-resolver.service"),
    "direct.service": lambda: render(
        "layout",
        "direct.service.j2",
        command="/usr/bin/python3 -I /usr/local/lib/onprem-lb-direct/agent.pyz",
        config="/etc/onprem-lb-direct/direct.json",
        checksum="9f86d081",
        down_file="/run/onprem-lb-direct.down",
        memory=_pair.plan(pair(services=[DIRECT])).members["lb1"].direct_memory,
    ),
    **{
        name: partial(anycast_unit, runs)
        for name, runs in (("anycast.service", False), ("anycast.script.service", True))
    },
    "direct.json": lambda: _pair.plan(pair(services=[DIRECT])).members["lb1"].direct["content"],
    "direct.lb1.keepalived.conf": lambda: of_pair("lb1", services=[DIRECT]),
    **{f"ipi.{name}": partial(resolver_of_cluster, what) for name, what in RESOLVER.items()},
    "resolver.service": lambda: render(
        "resolver", "resolver.service.j2", config="/etc/onprem-lb-resolver/dnsmasq.conf", checksum="9f86d081"
    ),
    "direct-server.service": lambda: render(
        "direct_server",
        "direct-server.service.j2",
        command="/usr/bin/python3 -I /usr/local/lib/onprem-lb-direct-server/agent.pyz direct-server",
        config="/etc/onprem-lb-direct-server/direct.json",
    ),
    "direct-server.nftables.conf": lambda: render(
        "direct_server", "nftables.conf.j2", unit="onprem-lb-direct-server.service"
    ),
    "haproxy.sysctl.conf": lambda: render("haproxy", "sysctl.conf.j2"),
    "frr.conf": lambda: frr(["192.0.2.11"], **BGP),
    "every-setting.frr.conf": lambda: frr(["192.0.2.11", "2001:db8::11"], **{**BGP, **EVERY_SETTING_OF_BGP}),
    "frr.daemons": lambda: render("frr", "daemons.j2"),
    "frr.unit.conf": lambda: render("frr", "unit.conf.j2"),
    **{f"pods-{name}.manifests": partial(of_pods, *arguments) for name, arguments in PODS.items()},
    **{f"pods-{name}.sidecar.json": partial(sidecar_of_pods, *arguments) for name, arguments in PODS.items()},
    **{f"{name}.forecast": partial(forecast_of, name) for name in ("pair-two-racks", "kubeadm-three-racks")},
}


# As systemd-analyze(1) rates a unit, from 0 to 10. They run as root, because the files are root's.
RATED = {
    **dict.fromkeys(
        ("follow.service", "follow.agent.service", "resolver-nodes.service", "resolver-keeper.service"), 2.0
    ),
    "direct.service": 2.4,
    "direct-server.service": 2.0,
}


@pytest.mark.parametrize("name", RATED)
def test_systemd_rates_units_as_confined(name):
    command = ("systemd-analyze", "security", "--offline=true", "--no-pager", GOLDEN / name)
    report = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert float(re.search(r"Overall exposure level for \S+: ([0-9.]+) ", report)[1]) <= RATED[name], report
    assert "DAC_" not in (GOLDEN / name).read_text()


@pytest.mark.parametrize("name", CASES)
def test_it_renders_what_the_golden_file_holds(name):
    rendered, golden = CASES[name](), GOLDEN / name
    if os.environ.get("WRITE_GOLDEN"):
        golden.write_text(rendered)
    assert rendered == golden.read_text()


def test_there_is_no_golden_file_without_a_case():
    assert sorted(path.name for path in GOLDEN.iterdir()) == sorted([*CASES, drills.FILE.name])
