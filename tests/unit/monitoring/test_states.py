# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each state of a pair has its alerts and no others, each of them once.

`recorded/` has what two members on Debian 12 with HAProxy 2.6 and keepalived 2.2 have shown in each state, as far as an
alert asks for it, with times as seconds from that moment on; certificates are those of the healthy pair wherever they
are not the point. The states of DERIVED are made from that, or from reports of the agent.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.onprem.lb.plugins.module_utils._agent.anycast import show as anycast
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import show as direct
from ansible_collections.onprem.lb.plugins.module_utils._agent.metrics import frr
from support.anycast.configs import REPORT as ANYCAST
from support.direct.reports import REPORT as DIRECT

from .test_rules import ALERTS, RULES, promtool

FOLDER = Path(__file__).parent / "recorded"
RECORDED = {file.stem: file.read_text() for file in FOLDER.glob("*.prom")}
HEALTHY, CLUSTER = RECORDED["healthy"], RECORDED["cluster"]
STEP, BEFORE, AFTER = 60, 5, 20  # seconds; steps of the healthy pair, and of the state
LINE = re.compile(r"(\w+)\{(.*)\} (\S+)")
ROUTER = {"vrid": "248", "instance_name": "vip-192.0.2.100"}
WEB = "/etc/haproxy/web.pem"


def of_member(text, name):
    return "\n".join(line for line in text.splitlines() if f'instance="{name}"' in line)


def scraped(name, text):
    """Return what stands in the file of a member, as a scrape has it."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    labelled = [re.sub(r"^(\w+)(?:\{(.*)\})? ", rf'\1{{instance="{name}",\2}} ', line) for line in lines]
    return "\n".join(line.replace(",}", "}") for line in labelled)


def reported(text):
    """Return what a daemon of the agent reports in lb1's file beside that of a healthy pair."""
    return f"{HEALTHY}\n{scraped('lb1:9100', text)}"


FRONT = {"vip": "front", "address": "192.0.2.10/32"}
GATE = json.dumps({"vips": [{"name": "front", "address": "192.0.2.10"}]})
PARTS = 'onprem_lb_host_part_answers{{part="{}"}} {}\n'


def announcing(name, on_lo=True, session="Established", held_back=False, answers=True):
    """Return what a member that announces by BGP reports, beside what has nothing to do with VRRP."""
    others = [line for line in of_member(HEALTHY, name).splitlines() if "_vrrp_" not in line]
    gate = {**ANYCAST, "vips": [{**ANYCAST["vips"][0], "held": on_lo}], "held_back": "by anna" if held_back else None}
    peers = {"192.0.2.1": {"state": session, "pfxSnt": int(on_lo), "peerUptimeMsec": 4000}}
    said = {frr.SUMMARY: json.dumps({"ipv4Unicast": {"peers": peers}}) if answers else None}
    of_frr = frr.metrics(GATE, said.get, lambda _interface: ["192.0.2.10"] if on_lo else []) or ""
    own = PARTS.format("frr", int(answers)) + PARTS.format("anycast", 1)
    text = "\n".join(line for line in others if "router_answers" not in line)
    return "\n".join([text, scraped(name, anycast.prometheus(gate) + of_frr + own)])


def pair(first=(), second=()):
    """Return what two members that announce report; each has the parts that are otherwise."""
    return "\n".join(announcing(f"{name}:9100", **dict(of)) for name, of in (("lb1", first), ("lb2", second)))


SERVICE = DIRECT["services"][0]
FLUSHED = {
    **DIRECT,
    "services": [{**SERVICE, "servers": [{**each, "second_chances": False} for each in SERVICE["servers"][:1]]}],
}
UNHEARD = {
    **DIRECT,
    "services": [{**SERVICE, "servers": [{**each, "unanswered_attempts": 5} for each in SERVICE["servers"][:1]]}],
}
LB1, LB2 = {"instance": "lb1:9100"}, {"instance": "lb2:9100"}
DERIVED = {
    "exporter_stopped": HEALTHY.replace(of_member(HEALTHY, "lb1:9100"), ""),
    "all_silent": "",
    "last_one_silent": of_member(RECORDED["haproxy_stopped"], "lb2:9100"),
    "writer_hangs": HEALTHY,
    "direct": reported(direct.prometheus(DIRECT)),
    "direct_mtu": reported(direct.prometheus({**DIRECT, "mtu_fault": "eth0 has an MTU of 1400"})),
    "direct_server_flushed": reported(direct.prometheus(FLUSHED)),
    "direct_clients_unheard": reported(direct.prometheus(UNHEARD)),
    "direct_flushed": reported(direct.prometheus({**DIRECT, "table": {**DIRECT["table"], "in_force": False}})),
}
OFF = {"on_lo": False}
BGP = {
    "bgp": pair(),
    "bgp_session_lost": pair(second={"session": "Active"}),
    "bgp_haproxy_killed": pair(second=OFF),
    "bgp_nobody": pair(OFF, OFF),
    "bgp_frr_stopped": pair(second={"answers": False}),
    "bgp_frr_stopped_on_all": pair({"answers": False}, {"answers": False}),
    "bgp_held_back": pair(second={**OFF, "held_back": True}),
    "bgp_one_silent": announcing("lb2:9100"),
    "bgp_all_silent": "",
}
DERIVED.update(BGP)
FEW = [{"service": "api", **LB1}]
EXPECTED = {
    "healthy": {},
    "undo_pending": {},
    "hung": {"CheckFails": [{"check": "haproxy_answers", **LB1}]},
    "cut": {"MetricsAbsent": [LB1]},
    "split": {"Holders": [ROUTER]},
    "router_stopped": {"RouterSilent": [LB2]},
    "routers_stopped": {"Holders": [ROUTER], "RouterSilent": [LB1, LB2]},
    "haproxy_stopped": {"CannotTakeOver": [{**ROUTER, **LB2}]},
    "resolver_stopped": {"PartSilent": [{"part": "resolver", **LB2}]},
    "server_cut": {
        "FewServers": [{"instance": f"{at}:9000", "proxy": name} for at in ("lb1", "lb2") for name in ("web", "secure")]
    },
    "certificates": {
        "CertificateNotLoaded": [{"path": WEB, **LB1}],
        "CertificateExpires": [{"path": WEB, **LB2}],
    },
    "metrics_stopped": {"MetricsAbsent": [LB1]},
    "exporter_stopped": {"MetricsAbsent": [LB1]},
    "all_silent": {"HoldersUnknown": [ROUTER], "MetricsAbsent": [LB1, LB2]},
    "last_one_silent": {"HoldersUnknown": [ROUTER], "MetricsAbsent": [LB1], "CannotTakeOver": [{**ROUTER, **LB2}]},
    "writer_hangs": {"MetricsAbsent": [LB1]},
    "cluster": {"NotFollowing": [{"instance": "worker1:9100"}]},
    # The first one's token is refused, the second's follow and the third's resolver are stopped.
    "cluster_parts": {
        "NotFollowing": [{"instance": "master1:9100"}, {"instance": "worker1:9100"}],
        "PartSilent": [
            {"part": "follow", "instance": "master2:9100"},
            {"part": "resolver", "instance": "master3:9100"},
        ],
    },
    "bgp": {},
    "bgp_session_lost": {"NoSession": [{"peer": "192.0.2.1", "family": "ipv4", **LB2}]},
    "bgp_haproxy_killed": {"DoesNotAnnounce": [{**FRONT, "family": "ipv4", **LB2}]},
    "bgp_nobody": {
        "NotAnnounced": [FRONT],
        "DoesNotAnnounce": [{**FRONT, "family": "ipv4", **each} for each in (LB1, LB2)],
    },
    "bgp_frr_stopped": {"PartSilent": [{"part": "frr", **LB2}]},
    "bgp_frr_stopped_on_all": {
        "NotAnnounced": [FRONT],
        "PartSilent": [{"part": "frr", **LB1}, {"part": "frr", **LB2}],
    },
    "bgp_held_back": {},
    "bgp_one_silent": {"MetricsAbsent": [LB1]},
    "bgp_all_silent": {"NotAnnounced": [FRONT], "MetricsAbsent": [LB1, LB2]},
    "direct": {"FewServers": FEW},
    "direct_mtu": {"FewServers": FEW, "Mtu": [LB1]},
    "direct_server_flushed": {"NoSecondChances": [{"service": "api", "server": "a", **LB1}]},
    "direct_clients_unheard": {"ClientsUnanswered": [{"service": "api", "server": "a", **LB1}]},
    "direct_flushed": {"FewServers": FEW, "Direct": [LB1]},
}
FROZEN = {"writer_hangs": "lb1:9100"}  # whose file is there and no longer written


BEFORE_OF = {"cluster": CLUSTER, "bgp": DERIVED["bgp"]}


def series_of(state):
    """Return each series, healthy at first and then as in the state."""
    before = samples(BEFORE_OF.get(state.partition("_")[0], HEALTHY))
    after = samples({**RECORDED, **DERIVED}[state])
    for series in {**before, **after}:
        frozen = FROZEN.get(state, "-") in series
        values = [value_of(series, before.get(series), at) for at in range(BEFORE)]
        values += [value_of(series, after.get(series), BEFORE if frozen else BEFORE + at) for at in range(AFTER)]
        yield {"series": series, "values": " ".join(values)}


def samples(text):
    found = [LINE.fullmatch(line) for line in text.splitlines() if line]
    return {f"{each[1]}{{{each[2]}}}": float(each[3]) for each in found}


def value_of(series, value, at):
    """Return a sample.

    What was written is written anew all the time, clients that nobody answers try again, and nothing else changes.
    """
    if value is None:
        return "stale" if at == BEFORE else "_"
    name = series.partition("{")[0]
    grows = name.endswith("_written_seconds") or (name.endswith("_unanswered_attempts") and value)
    return f"{value + (at * STEP if grows else 0):.15g}"


def case(state):
    def moment(at, alert, found):
        name = alert["alert"]
        wanted = [{**alert["labels"], **labels} for labels in found.get(name.replace("OnpremLb", ""), [])]
        return {
            "eval_time": f"{at * STEP}s",
            "alertname": name,
            "exp_alerts": [{"exp_labels": each} for each in wanted],
        }

    return {
        "name": state,
        "interval": f"{STEP}s",
        "input_series": list(series_of(state)),
        "alert_rule_test": [
            moment(at, alert, found)
            for at, found in ((BEFORE - 1, {}), (BEFORE + AFTER - 1, EXPECTED[state]))
            for alert in ALERTS
        ],
    }


def test_each_state_has_its_alerts_and_no_others_once(tmp_path):
    rules = yaml.safe_load(RULES.read_text())
    rules["groups"][0]["interval"] = f"{STEP}s"
    for rule in rules["groups"][0]["rules"]:
        rule.pop("annotations", None)  # what each of them says is in `rules/`
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules))
    tests = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": f"{STEP}s",
        "tests": [case(state) for state in EXPECTED],
    }
    (tmp_path / "states.yml").write_text(yaml.safe_dump(tests))
    assert "SUCCESS" in promtool("test", "rules", tmp_path / "states.yml")


def test_each_recording_is_played_and_no_state_is_made_up_without_one():
    assert EXPECTED.keys() == RECORDED.keys() | DERIVED.keys()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_each_alert_fires_in_a_state_or_takes_months(alert):
    fired = {f"OnpremLb{name}" for found in EXPECTED.values() for name in found}
    assert alert["alert"] in fired | {"OnpremLbDrillOld"}
