# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules on addresses hold for every key that carries one: no VIP of its own, and no circle over several layouts."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from ansible_collections.onprem.lb.plugins.module_utils import _plan
from ansible_collections.onprem.lb.plugins.module_utils._agent.config.schema import Field
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import layout as ipi
from ansible_collections.onprem.lb.plugins.module_utils._plan.layouts import planner, several
from ansible_collections.onprem.lb.plugins.module_utils._plan.model import destinations
from ansible_collections.onprem.lb.plugins.module_utils._plan.pair import layout as pair
from support.plans import clusters, pairs, racks, refusals

VIP, API, INGRESS, SHARD = "192.0.2.10", "10.0.0.200", "10.0.0.201", "10.0.0.202"
SERVERS = {"name": "web", "port": 443, "servers": ["192.0.2.21"]}


def of_service(**keys):
    return refusals.of_pair(services=[{**SERVERS, **keys}])


def of_racks(**peer):
    return racks.plan(racks.with_peer(racks.racks(), **peer)).faults


def of_shard(url):
    shard = {"address": SHARD, "name": "two", "members": ["master-0", "worker-0"], "checks": [url]}
    return refusals.of_cluster(ingress_vips=[INGRESS, shard])


# By the key, what a layout says that sends to its own VIP there, and to another address.
REFUSED = {
    ("SERVER", "address"): (lambda at: of_service(servers=[{"address": at}]), VIP),
    ("ROUTE", "address"): (
        lambda at: of_service(mode="http", routes=[{"name": "a", "hosts": ["a"], "servers": [at]}]),
        VIP,
    ),
    ("masters", "address"): (lambda at: refusals.of_pair(masters=[at]), VIP),
    ("infra_nodes", "address"): (lambda at: refusals.of_pair(infra_nodes=[at]), VIP),
    ("SETTINGS", "bootstrap"): (
        lambda at: refusals.of_pair(preset="openshift_upi", bootstrap=at, machine_networks=["192.0.2.0/24"]),
        VIP,
    ),
    ("ipi", "bootstrap"): (lambda at: refusals.of_cluster(bootstrap=at), API),
    ("CHECK", "gateway"): (lambda at: refusals.of_pair(checks=[{"gateway": at}]), VIP),
    ("CHECK", "url"): (lambda at: refusals.of_pair(checks=[{"url": f"http://{at}/"}]), VIP),
    ("ipi", "gateway"): (lambda at: refusals.of_cluster(checks=[{"gateway": at}]), API),
    ("ipi", "url"): (lambda at: refusals.of_cluster(checks=[{"url": f"https://{at}:6443/readyz"}]), API),
    ("SHARD", "checks"): (lambda at: of_shard(f"http://{at}:1936/healthz"), SHARD),
    ("PEER", "address"): (lambda at: of_racks(address=at, multihop=2), racks.VIP),
}
# Why a VIP may stand there, or why no user of a layout writes it.
ALLOWED = {
    "bind": "it listens there",
    "listen": "it listens there",
    "stats_address": "it listens there",
    "addresses": "the VIPs themselves, which a layout computes",
    "excluded_addresses": "the VIPs themselves, which a layout computes",
    "allow": "who may connect: the holder of a VIP does from the VIP",
    "accept_proxy": "who connects with the header of a proxy: `asked` judges whether the host itself may have to",
    "except": "who is not limited: the holder of a VIP connects from the VIP",
    "machine_networks": "who may connect: the holder of a VIP does from the VIP",
    "local_address": "its own end: one that the host does not have for itself is refused",
    "router_id": "a number, to which nobody sends",
    "source": "a layout computes it",
    "peers": "a layout computes them",
    "any_of": "a layout computes them: from checks, which are refused",
    "nameservers": "haproxy starts without an answer, and a resolver of a pair answers at its VIP",
    "log_targets": "nothing waits for a datagram",
    "location": "a client goes there, not the balancer",
    "prefix": "a client goes there, not the balancer",
}


def schemas():
    for found in pkgutil.walk_packages(_plan.__path__, f"{_plan.__name__}."):
        for value in vars(importlib.import_module(found.name)).values():
            if isinstance(value, dict) and value and all(isinstance(each, Field) for each in value.values()):
                yield value


def takes(check, value):
    return check(value)[1] is None


def carries_an_address(check):
    texts = [VIP, f"{VIP}:53", f"http://{VIP}/", f"{VIP} local0"]
    words = ["word", ["word"], "a text!", ["a text!"]]
    taken = any(takes(check, value) for text in texts for value in (text, [text]))
    return taken and not any(takes(check, value) for value in words)


def test_each_key_that_carries_an_address_is_judged_or_has_a_reason():
    carrying = {key for schema in schemas() for key, each in schema.items() if carries_an_address(each.check)}
    assert carrying == {*(key for _schema, key in REFUSED), *ALLOWED}


@pytest.mark.parametrize("said_of, vip", REFUSED.values(), ids=map(".".join, REFUSED))
def test_a_layout_sends_nothing_to_its_own_vip(said_of, vip):
    faults = said_of(vip)
    assert faults and all(f" {vip}" in fault and "VIP" in fault for fault in faults)
    assert not any("VIP" in fault for fault in said_of("192.0.2.99"))


@pytest.mark.parametrize(
    "url", ["http://[2001:DB8:0::10]/", "http://haproxy.apps.example.com/", "http://x.apps.example.com/"]
)
def test_a_vip_in_another_spelling_and_a_name_that_the_pair_itself_answers_are_the_vip(url):
    faults = refusals.of_pair(vips=[VIP, "2001:db8::10"], checks=[{"url": url}], dns=True, domain="example.com")
    assert len(faults) >= 1 and all("a VIP of the pair: ask localhost" in fault for fault in faults)


def of(*numbers, **settings):
    """The members of one of several pairs."""
    names = [f"lb{number}" for number in numbers]
    members = [pairs.member(number, **{"vrid": None, **settings}) for number in numbers]
    return [{**each, "address": f"192.0.2.{number}", "members": names} for each, number in zip(members, numbers)]


def said(*every):
    return several.draw(pair.LAYOUT, [each for members in every for each in members], planner.draft).faults


def web(*servers, **keys):
    return {"services": [{"name": "web", "port": 443, "servers": [*servers], **keys}]}


VIPS = ["192.0.2.10", "192.0.2.58", "192.0.2.90"]


def ring(of_next, count):
    """The pairs, each of which has settings made of the VIP of the next one."""
    return [of(2 * at + 1, 2 * at + 2, vips=[VIPS[at]], **of_next(VIPS[(at + 1) % count])) for at in range(count)]


RINGS = {
    "masters": lambda vip: {"masters": [vip]},
    "servers": web,
    "routes": lambda vip: web("192.0.2.21", mode="http", routes=[{"name": "a", "hosts": ["a"], "servers": [vip]}]),
    "gateways": lambda vip: {"checks": [{"gateway": vip}]},
    "urls": lambda vip: {"checks": [{"url": f"https://{vip}/"}]},
}


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("of_next", RINGS.values(), ids=RINGS)
def test_a_circle_over_several_pairs_is_refused_once_and_names_each_of_them(of_next, count):
    (fault,) = said(*ring(of_next, count))
    assert all(f"lb{2 * at + 1}, lb{2 * at + 2}: " in fault and vip in fault for at, vip in enumerate(VIPS[:count]))


def test_a_circle_through_a_members_own_address_is_one_too():
    (fault,) = said(of(1, 2, **web("192.0.2.3")), of(3, 4, vips=[VIPS[1]], **web(VIPS[0])))
    assert "servers: 192.0.2.3 at 192.0.2.3 port 443; lb3, lb4: " in fault


@pytest.mark.parametrize(
    "one, other",
    [
        (web(VIPS[1]), web("192.0.2.21")),
        (web(VIPS[1]), web({"address": VIPS[0], "port": 80})),  # where nothing listens
        (web("192.0.2.3"), web(VIPS[0], bind=[VIPS[1]])),  # which nobody reaches at a member's own address
        ({"checks": [{"gateway": VIPS[1]}]}, {}),
        ({"checks": [{"gateway": VIPS[1], "weight": -50}]}, {"checks": [{"gateway": VIPS[0]}]}),
        ({"checks": [{"gateway": VIPS[1]}]}, web(VIPS[0])),
    ],
    ids=["one leads to the other", "another port", "another bind", "one asks the other", "a weight", "mixed"],
)
def test_what_ends_somewhere_is_served(one, other):
    assert said(of(1, 2, **one), of(3, 4, vips=[VIPS[1]], **other)) == []


OWN, OTHER = "192.0.2.21", "192.0.2.22"  # servers outside of all pairs


def routes(vip, *own, service=OWN, **keys):
    """A service with servers of its own, and a route for some hosts or paths."""
    return web(service, mode="http", routes=[{"name": "a", "servers": [vip, *own], **keys}])


def there(vip, **keys):
    return {"address": vip, "port": 443, **keys}


def beside(settings, **keys):
    """The same service with a route that leaves."""
    settings["services"][0]["routes"].append({"name": "b", "servers": [OTHER], **keys})
    return settings


# By what lets a request out: the settings of the one pair, and of the other, by the VIP of its counterpart.
LEAVES = {
    "cross-routing": (
        lambda vip: routes(vip, hosts=["b.example.com"]),
        lambda vip: routes(vip, hosts=["a.example.com"]),
    ),
    "cross-routing by SNI": (
        lambda vip: {**web(OWN, routes=[{"name": "a", "hosts": ["b.example.com"], "servers": [vip]}])},
        lambda vip: {**web(OWN, routes=[{"name": "a", "hosts": ["a.example.com"], "servers": [vip]}])},
    ),
    "cross-routing by paths": (lambda vip: routes(vip, paths=["/b/"]), lambda vip: routes(vip, paths=["/a/"])),
    "one host, another path": (
        lambda vip: routes(vip, hosts=["a.example.com"], paths=["/b"]),
        lambda vip: routes(vip, hosts=["a.example.com"], paths=["/a"]),
    ),
    "one host, but only a path of it comes back": (
        lambda vip: routes(vip, hosts=["a.example.com"]),
        lambda vip: routes(vip, hosts=["a.example.com"], paths=["/a"]),
    ),
    "a route that only a part takes back": (
        lambda vip: routes(vip, hosts=["*.example.com"]),
        lambda vip: routes(vip, hosts=["a.example.com"]),
    ),
    "a name by TLS, another by HTTP": (
        lambda vip: routes(vip, hosts=["a.example.com"]),
        lambda vip: web(OWN, routes=[{"name": "a", "hosts": ["a.example.com"], "servers": [vip]}]),
    ),
    "a service leads to a route that leaves": (web, lambda vip: routes(OWN, service=vip, hosts=["a.example.com"])),
    "each is the other's backup": (
        lambda vip: web(OWN, there(vip, backup=True)),
        lambda vip: web(OWN, there(vip, backup=True)),
    ),
    "only the one has a backup": (lambda vip: web(vip, there(OWN, backup=True)), web),
    "a server without a weight": (lambda vip: web(OWN, there(vip, weight=0)), web),
    "no server has a weight": (lambda vip: web(there(vip, weight=0)), web),
    "a service without a weight beside its route": (
        lambda vip: web(vip, mode="http"),
        lambda vip: routes(vip, service=there(OWN, weight=0), hosts=["a.example.com"]),
    ),
    "one server of several": (lambda vip: web(vip, OWN), web),
    "lines of the user": (lambda vip: web(vip, backend_lines=["http-request set-header Host a"], mode="http"), web),
    "lines before it": (lambda vip: web(vip, frontend_lines=["use_backend other if FALSE"]), web),
    "another name by TLS": 2
    * [
        lambda vip: web(
            OWN,
            routes=[
                {
                    "name": "a",
                    "hosts": ["a.example.com"],
                    "servers": [there(vip, options=["ssl", "verify none", "sni str(b.example.com)"])],
                }
            ],
        )
    ],
    "a redirect": (
        lambda vip: web(there(vip, port=80)),
        lambda vip: web(vip, mode="http", tls={"certificate": "/etc/a.pem", "redirect": 80}),
    ),
}


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("one, other", LEAVES.values(), ids=LEAVES)
def test_pairs_that_lead_to_each_other_are_served_where_a_request_may_leave(one, other, is_first):
    both = [of(1, 2, **one(VIPS[1])), of(3, 4, vips=[VIPS[1]], **other(VIPS[0]))]
    assert said(*both[:: 1 if is_first else -1]) == []


# The same, with nothing that leaves.
STAYS = {
    "the same hosts": 2 * [lambda vip: routes(vip, hosts=["a.example.com", "*.b.example.com"])],
    "the same paths": 2 * [lambda vip: routes(vip, paths=["/a/", "/b/"])],
    "a path of a host": 2 * [lambda vip: routes(vip, hosts=["a.example.com"], paths=["/a/"])],
    "other hosts beside it": (
        lambda vip: routes(vip, hosts=["a.example.com"]),
        lambda vip: beside(routes(vip, hosts=["a.example.com"]), hosts=["b.example.com"]),
    ),
    "other paths beside it": (
        lambda vip: routes(vip, paths=["/a"]),
        lambda vip: beside(routes(vip, paths=["/a"]), paths=["/b"]),
    ),
    "by SNI": 2 * [lambda vip: web(OWN, routes=[{"name": "a", "hosts": ["a.example.com"], "servers": [vip]}])],
    "a way out without a weight": (lambda vip: web(vip, there(OWN, weight=0)), web),
    "a backup that leads back": (lambda vip: web(vip, there("192.0.2.3", backup=True)), web),
}


@pytest.mark.parametrize("one, other", STAYS.values(), ids=STAYS)
def test_what_never_leaves_is_refused_once(one, other):
    (fault,) = said(of(1, 2, **one(VIPS[1])), of(3, 4, vips=[VIPS[1]], **other(VIPS[0])))
    assert fault.endswith("so that no request arrives: name other servers.")


def test_a_pair_that_only_leads_into_a_circle_is_named_by_it_once():
    first, second = of(1, 2, **web(VIPS[1])), of(3, 4, vips=[VIPS[1]], **web(VIPS[2]))
    (fault,) = said(first, second, of(5, 6, vips=[VIPS[2]], **web(VIPS[1])))
    assert fault.startswith("lb3, lb4: ") and "; lb5, lb6: " in fault and "lb1, lb2" not in fault


def with_docker(members):
    for each in members:
        each["host"]["addresses"].append({**each["host"]["addresses"][0], "interface": "docker0", **DOCKER})
    return members


DOCKER = {"address": "172.17.0.1", "prefix": 16}


def test_an_address_that_all_members_have_is_each_ones_own():
    first = with_docker(of(1, 2, services=[{"name": "web", "port": 80, "servers": [there(DOCKER["address"])]}]))
    assert said(first, with_docker(of(3, 4, vips=[VIPS[1]], **web(there(VIPS[0], port=80))))) == []
    assert said(with_docker(of(1, 2, checks=[{"url": f"http://{DOCKER['address']}:8080/"}]))) == []


def asks(vip, **keys):
    return {"checks": [{"url": f"https://{vip}/", **keys}]}


@pytest.mark.parametrize(
    "settings",
    [asks("192.0.2.2"), asks(VIP, weight=-50), asks("web.example.com", weight=-50)],
    ids=["a member", "a weight", "a name"],
)
def test_a_check_may_ask_what_needs_no_vip_that_it_moves(settings):
    assert refusals.of_pair(**settings) == []


@pytest.mark.parametrize("gateway, words", [(VIP, "a VIP of the pair"), ("192.0.2.2", "lb2's own address")])
def test_a_gateway_is_none_of_the_layout_itself_with_a_weight_neither(gateway, words):
    faults = refusals.of_pair(checks=[{"gateway": gateway, "weight": -50}])
    assert faults[0].endswith(f".gateway is {gateway}, {words}: name a host outside the pair.")


def test_each_check_of_a_vip_has_to_succeed():
    other = of(3, 4, vips=[VIPS[1]], checks=[{"gateway": "192.0.2.254"}, {"url": f"http://{VIP}/"}])
    (fault,) = said(of(1, 2, **asks(VIPS[1])), other)
    assert fault.endswith("so that nobody ever holds it: name other hosts.")


def of_role(role, vip):
    return {"url": f"https://{vip}:6443/readyz", "vips": role}


def said_of_cluster(**settings):
    members = clusters.cluster(**settings)
    each = [{**one, "members": [member["name"] for member in members]} for one in members]
    return several.draw(ipi.LAYOUT, each, planner.draft).faults


@pytest.mark.parametrize("settings", [{"checks": [of_role("ingress", API)]}, {"checks": [of_role("api", INGRESS)]}])
def test_the_one_vip_of_a_cluster_may_depend_on_the_other(settings):
    assert said_of_cluster(**settings) == []


def test_a_shard_may_depend_on_the_api():
    assert not any("VIP" in fault for fault in of_shard(f"https://{API}:6443/readyz"))


def test_the_vips_of_a_cluster_do_not_depend_on_each_other_in_a_circle():
    (fault,) = said_of_cluster(checks=[of_role("ingress", API), of_role("api", INGRESS)])
    assert API in fault and INGRESS in fault and fault.endswith("so that nobody ever holds it: name other hosts.")


def test_each_url_of_a_shard_has_to_answer():
    shard = {"address": SHARD, "name": "two", "members": ["master-0", "worker-0"]}
    shard["checks"] = [f"http://{SHARD}:1936/healthz", "http://localhost:1936/healthz"]
    assert any(f"is {SHARD}, a VIP" in fault for fault in refusals.of_cluster(ingress_vips=[INGRESS, shard]))


@pytest.mark.parametrize("elsewhere, count", [("192.0.2.99", 0), (VIPS[1], 2)], ids=["a host", "a VIP that it moves"])
def test_one_address_of_a_name_is_enough(elsewhere, count):
    asked = destinations.of_url("url", "http://a.example.com/", {"a.example.com": [VIP, elsewhere]})
    sends = [each._replace(sender="url", reached=[(VIP, 0), (VIPS[1], 0)]) for each in asked]
    assert len(destinations.faults(sends, dict.fromkeys([VIP, VIPS[1]], "a VIP"))) == count
    between = destinations.between([destinations.Sender("lb1, lb2", sends, {})])
    assert len(between) == bool(count)


@pytest.mark.parametrize("address", ["10.0.3.11", "203.0.113.58"], ids=["a member", "a VIP"])
def test_a_peer_is_no_other_pairs(address):
    first, other = racks.racks(), [racks.member(number, vips=["203.0.113.58"]) for number in (3, 4)]
    racks.with_peer(first, address=address, multihop=2)
    each = [{**one, "members": [m["name"] for m in group]} for group in (first, other) for one in group]
    faults = said(each)
    assert faults and all(
        f": a peer is {address}, " in fault and fault.endswith("name the router's.") for fault in faults
    )
