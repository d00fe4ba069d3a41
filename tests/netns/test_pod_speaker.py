# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""FRR as in a pod: this machine's, by the command and with the capabilities of the container, beside a router."""

from __future__ import annotations

import contextlib
import posixpath
import subprocess

import pytest
from ansible_collections.onprem.lb.plugins.module_utils._plan.pods import speaker
from support.netns.frrs import PROGRAMS
from support.netns.links import temporary_link
from support.netns.speakers import Speaker, speakers
from support.plans import pods
from support.waiting import until

pytestmark = pytest.mark.skipif(not (PROGRAMS / "frrcommon.sh").exists(), reason="not installed: frr")

MEMBER, ROUTER, VIP, NO_VIP = "192.0.2.1", "192.0.2.3", "203.0.113.10/32", "203.0.113.99/32"
BGP = {**pods.BGP, "bgp": {**pods.BGP["bgp"], "peers": [{"address": ROUTER, "asn": 64601, "multihop": True}]}}
OPEN = f"""
router bgp 64601
 bgp router-id {ROUTER}
 no bgp ebgp-requires-policy
 neighbor {MEMBER} remote-as 64512
 neighbor {MEMBER} password {BGP["bgp"]["password"]}
 neighbor {MEMBER} timers connect 1
exit
"""


@pytest.fixture
def link():
    with temporary_link() as link:
        link.lb1.ip("addr", "add", VIP, "dev", "lo")
        link.lb1.ip("addr", "add", NO_VIP, "dev", "lo")
        yield link


@contextlib.contextmanager
def container(node, folder, without=""):
    """Run the container in a node's network, with processes and folders of its own; yield it and what it says."""
    given = pods.container("router", "frr", **BGP)
    mounts = {each["mountPath"]: folder / each["name"] for each in given["volumeMounts"]}
    for path in mounts.values():
        path.mkdir(exist_ok=True)
        path.chmod(0o755)  # as podman makes them; the kubelet gives them to everybody
    for file in pods.made(**BGP).configurations:
        name = file.path.rpartition("/frr/")[2]
        if name != file.path:
            (mounts["/etc/frr"] / name).write_text(file.content)
            (mounts["/etc/frr"] / name).chmod(int(file.mode, 8))
    binds = [f"{there(inside)} && mount --bind {path} {inside}" for inside, path in mounts.items()]
    wanted = [each.lower() for each in given["securityContext"]["capabilities"]["add"] if each != without]
    bounded = ",".join(["-all", *(f"+{each}" for each in wanted)])
    own = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    drop = f'{" && ".join(binds)} && exec setpriv --no-new-privs --bounding-set {bounded} "$@"'
    command = ["ip", "netns", "exec", node.namespace, *own, "sh", "-c", drop, "sh", *given["command"]]
    said = folder / "said"
    with said.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield process, said
        finally:
            process.kill()


def there(folder):
    """A command that makes a folder in the mount namespace alone, where this machine has none."""
    return f"{{ [ -d {folder} ] || {{ mount -t tmpfs none {posixpath.dirname(folder)} && mkdir {folder}; }}; }}"


def first_of(process):
    """The first process of the container: unshare itself passes no signal on."""
    children = subprocess.run(["pgrep", "--parent", str(process.pid)], capture_output=True, text=True, check=True)
    return int(children.stdout)


def test_the_routers_have_the_vips_on_lo_until_sigterm_and_nothing_else(link, tmp_path):
    with speakers(lambda: Speaker(link.client)) as [router]:
        router.configure(OPEN)
        (tmp_path / "frr-run").mkdir()
        (tmp_path / "frr-run" / "bgpd.pid").write_text("1")  # of a container before: now its first process has that
        with container(link.lb1, tmp_path) as (process, said):
            until(lambda: set(router.paths()) == {VIP}, said.read_text)
            subprocess.run(["kill", "-TERM", str(first_of(process))], check=True)
            until(lambda: not router.paths(), said.read_text)
            assert process.wait() == 0, said.read_text()
            assert "Stopped bgpd" in said.read_text(), "it has ended its sessions itself"
        assert VIP.partition("/")[0] in link.lb1.output("ip", "addr", "show", "dev", "lo")


@pytest.mark.parametrize("capability", speaker.SPEAKER[:4])
def test_frr_does_not_start_without_each_of_its_own_capabilities(link, tmp_path, capability):
    with container(link.lb1, tmp_path, without=capability) as (_process, said):
        until(lambda: "cap_set_proc failed" in said.read_text(), said.read_text)
