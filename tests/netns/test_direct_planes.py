# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`agent direct` comes into use and out of use on a living host, and nobody loses a connection, both families.

The balancer's own program stands for its proxy, which serves the same service. On masters it is at another port, to
which the redirect of a cluster leads.
"""

from __future__ import annotations

import functools
import signal
import sys

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct import rulesets
from ansible_collections.onprem.lb.plugins.module_utils._agent.direct.buckets import FEWEST
from ansible_collections.onprem.lb.plugins.module_utils._plan.ipi import redirect as nft_redirect
from support.netns.direct import (
    CONNECTIONS,
    PORT,
    PROXY_PORT,
    Lasting,
    Opener,
    Plane,
    SamePort,
    answer_with_its_name,
    behind_balancers,
)
from support.netns.direct import masters as masters_at
from support.netns.links import families, skip_reason
from support.waiting import until

pytestmark = pytest.mark.skipif(bool(skip_reason("nft")), reason=skip_reason("nft"))
PROXY = "proxy of {}"
FEW = 50  # connections that fit into a small set


@pytest.fixture(scope="module")
def the_cluster(vip):
    with behind_balancers(vip) as made:
        answer_with_its_name(made.balancers[0])
        yield made


@pytest.fixture
def cluster(the_cluster, tmp_path):
    """One balancer with a program of its own, and three servers."""
    return the_cluster.arrange(tmp_path)


@pytest.fixture(scope="module")
def the_masters(vip):
    def serve(host):
        answer_with_its_name(host)
        answer_with_its_name(host, PROXY.format(host.name), PROXY_PORT)

    with masters_at(vip, serve=serve, proxy_port=PROXY_PORT) as made:
        yield made


@pytest.fixture
def masters(the_masters, vip, tmp_path):
    """Three hosts that are balancers and servers, and whose redirect leads to their proxies."""
    the_masters.arrange(tmp_path)
    for host in the_masters.hosts:
        the_masters.load(host, nft_redirect.ruleset([vip], {PORT: PROXY_PORT}))
    return the_masters


@pytest.fixture
def start(tmp_path):
    """Returns what starts a plane on a cluster."""
    started = []

    def begin(cluster, **service):
        started.append(Plane(cluster, tmp_path, **service))
        return started[-1]

    try:
        yield begin
    except BaseException:
        sys.stderr.write("".join(plane.log for plane in started))
        raise
    finally:
        for plane in started:
            plane.close()


def names(*hosts):
    return {host.name for host in hosts}


@families
def test_connections_of_the_host_itself_outlive_the_start(cluster, start):
    host = cluster.balancers[0]
    before, opener = Lasting(cluster), Opener(cluster)
    assert before.shares == {host.name: CONNECTIONS}
    plane = start(cluster)
    assert plane.table(transactions=2, whole=1)
    assert set(Lasting(cluster).shares) == names(*cluster.hosts), "new ones are handed on"
    lost, shares = opener.stop()
    assert lost == {} and shares[host.name] > 1 and set(shares) == names(host, *cluster.hosts)
    assert before.lost() == {}
    plane.stop()
    assert before.lost() == {}, "this host's connections need no table"


@families
def test_those_to_which_a_redirect_leads_outlive_it_as_well(masters, start):
    holder, *others = masters.hosts
    before, opener = Lasting(masters), Opener(masters)
    assert before.shares == {PROXY.format(holder.name): CONNECTIONS}
    plane = start(masters, proxy_port=PROXY_PORT)
    newer = Lasting(masters)
    assert all(any(host.name in name for name in newer.shares) for host in others), "new ones are handed on"
    lost, shares = opener.stop()
    assert lost == {} and len(shares) >= len(masters.hosts)
    assert before.lost() == newer.lost() == {}
    plane.restart()
    assert plane.table(transactions=1, refused=0)
    assert before.lost() == newer.lost() == {}


def test_the_plane_comes_out_of_use_and_into_use_again(cluster, start):
    host, plane = cluster.balancers[0], start(cluster)
    opener, handed_on = Opener(cluster), Lasting(cluster)
    plane.reload(new_connections="host")
    own = Lasting(cluster)
    assert own.shares == {host.name: CONNECTIONS}
    assert handed_on.lost() == {}
    plane.reload(new_connections="servers")
    assert set(Lasting(cluster).shares) == names(*cluster.hosts)
    lost, shares = opener.stop()
    assert lost == {} and set(shares) == names(host, *cluster.hosts)
    assert handed_on.lost() == own.lost() == {}
    assert plane.table(whole=1), "who gets new connections is a change of elements"


def test_a_plane_that_is_out_of_use_may_start_and_stop(cluster, start):
    host, opener = cluster.balancers[0], Opener(cluster)
    plane = start(cluster, new_connections="host")
    own = Lasting(cluster)
    plane.restart()
    assert plane.table(transactions=1, refused=0)
    assert own.lost() == {}
    plane.stop()
    lost, shares = opener.stop()
    assert lost == own.lost() == {} and set(own.shares) == set(shares) == {host.name}


def test_a_new_connection_from_the_port_of_an_old_one_is_handed_on(cluster, start):
    clients = [SamePort(cluster) for _client in range(3)]
    assert {client.server for client in clients} == names(cluster.balancers[0])
    start(cluster)
    assert {client.open_again() for client in clients} <= names(*cluster.hosts)


@pytest.mark.parametrize("how", [signal.SIGUSR2, signal.SIGKILL])
def test_a_restart_leaves_nothing_to_the_host_but_its_own_connections(cluster, start, how):
    own, plane = Lasting(cluster), start(cluster)
    handed_on, opener = Lasting(cluster), Opener(cluster)
    plane.restart(how)
    assert plane.table(transactions=1, whole=1), "it does not leave everything to the host at first"
    lost, shares = opener.stop()
    assert lost == {} and set(shares) == names(*cluster.hosts)
    assert own.lost() == handed_on.lost() == {}


def test_connections_that_do_not_fit_into_the_set_go_to_the_servers(cluster):
    host = cluster.balancers[0]
    table = rulesets.whole(cluster.table(host, cluster.servers(*cluster.hosts), left=True))
    cluster.load(host, table.replace(f"size {rulesets.OWN_PER_BUCKET * FEWEST};", f"size {FEW};"))
    lasting = Lasting(cluster)
    assert lasting.shares.pop(host.name) == FEW
    assert set(lasting.shares) == names(*cluster.hosts)
    assert lasting.lost() == {}


def test_a_connection_is_forgotten_soon_once_its_client_has_closed_it(cluster):
    """As otherwise the set would be full of them while the plane is out of use."""
    host = cluster.balancers[0]
    cluster.load(host, rulesets.whole(cluster.table(host, cluster.servers(*cluster.hosts), left=True)))
    expiries = functools.partial(host.output, "nft", "list", "set", "netdev", rulesets.BALANCER, "servers_0_own")
    lasting = Lasting(cluster)
    until(lambda: expiries().count("expires 23h") == CONNECTIONS, expiries)  # one of this moment says "expires 1d"
    lasting.process.kill()
    lasting.process.wait()
    until(lambda: expiries().count("expires 4m") == CONNECTIONS, expiries)
