"""Starts and removes labs.

`up` first removes what an interrupted run has left under this lab's label. It writes the inventory last, so that this
exists only while every host answers. `down` removes nothing without our label.
"""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Set, Tuple

from . import gateways, image, inventory, machine, network, shell
from .layout import CHECKOUT_LABEL, LAB_LABEL, PREFIX, Host, Lab
from .machine import Machine
from .network import Network

FILES = Path(__file__).resolve().parent / "files"
SSH_PORT = 22
GATEWAY = 1  # podman's bridge, which also answers for names
RUN = "/run:size=64m,mode=755,exec"  # as small as that of a small host: podman's own takes half of the memory
# The options of `podman run` of a host that is a container: as a host does that reboots, it comes back when its systemd
# ends, with the hardware addresses that it had. A machine reboots by itself, from a disk that goes with it.
CONTAINER = ("--restart", "on-failure", "--systemd=always", "--tmpfs", RUN)
MACHINE = ("--volume", "/machine")
BOOT_LIMIT_S = 600  # a machine boots in 45 s where no other work is done
# ssh's sockets need a short path; see inventory.ssh_options.
SOCKETS = Path("/tmp")


def up(lab: Lab, image_name: str) -> Path:
    """Start all hosts of this lab, wait until they answer over ssh, and return the inventory's path."""
    lab.cache.mkdir(parents=True, exist_ok=True)
    with shell.locked(lab.cache):
        here = machine.prepare(lab.cache, build_debian=image.is_built_here(image_name))
        if _is_up(here, lab, image_name):
            shell.say(f"lab: {lab.scenario} is already up")
            return lab.inventory
        _clear(here, lab)
        variants = dict.fromkeys(host.variant for host in lab.hosts)
        images = {each: image.ensure(here, image.with_variant(image_name, each), lab.cache) for each in variants}
        try:
            networks = _start_all(here, lab, images)
        except BaseException:
            _clear(here, lab)
            raise
        lab.folder.mkdir(exist_ok=True)
        sockets = Path(tempfile.mkdtemp(prefix=lab.name + ".", dir=SOCKETS))
        described = inventory.describe(lab, networks, _key(lab.cache), sockets, image_name)
        inventory.write(lab.inventory, described)
    return lab.inventory


def make_images(lab: Lab, names: List[str]) -> None:
    """Build or pull the images of these names ahead of time."""
    lab.cache.mkdir(parents=True, exist_ok=True)
    with shell.locked(lab.cache):
        here = machine.prepare(lab.cache, build_debian=any(map(image.is_built_here, names)))
        for name in names:
            image.ensure(here, name, lab.cache)


def down(checkout: Path, scenario: Optional[str] = None, caches: bool = False) -> None:
    """Remove one scenario's lab or every lab of this checkout.

    :param caches: remove the images and the cache, too
    """
    cache = Lab(checkout, "").cache
    if not cache.exists():
        shell.say("lab: nothing to remove")
        return
    what = f"the lab {scenario}" if scenario else "every lab of this checkout"
    with shell.locked(cache), shell.step("remove " + what):
        here = machine.as_it_is(cache)
        for name in [scenario] if scenario else _known(cache):
            _remove_files(Lab(checkout, name))
        if here.has_podman:
            lab = Lab(checkout, scenario or "")
            _remove(here, *((LAB_LABEL, lab.id) if scenario else (CHECKOUT_LABEL, lab.checkout_id)))
            if caches:
                image.remove(here)
        if caches:
            here.discard(cache)


def _known(cache: Path) -> Set[str]:
    """Return the scenarios with an inventory on disk, complete or not."""
    return {file.parent.name for file in cache.glob("*/inventory.*")}


def status(checkout: Path) -> str:
    """Return this checkout's hosts as podman lists them, one in each line."""
    lab = Lab(checkout, "")
    if not lab.cache.exists():
        return ""
    line = "{{.Names}}\t{{.Status}}"
    ours = f"label={CHECKOUT_LABEL}={lab.checkout_id}"
    here = machine.as_it_is(lab.cache)
    return here.podman("ps", "--all", "--filter", ours, "--format", line) if here.has_podman else ""


def left(lab: Lab) -> List[str]:
    """Return the containers and networks of one lab, running or not."""
    if not lab.cache.exists():
        return []
    here, ours = machine.as_it_is(lab.cache), f"label={LAB_LABEL}={lab.id}"
    if not here.has_podman:
        return []
    containers = here.podman("ps", "--all", "--filter", ours, "--format", "{{.Names}}").split()
    return containers + here.podman("network", "ls", "--filter", ours, "--format", "{{.Name}}").split()


def switch_power(lab: Lab, host: str, on: bool) -> None:
    """Cut the power of a host, or give it back."""
    _require(host, [each.name for each in lab.hosts])
    machine.as_it_is(lab.cache).podman("start" if on else "kill", lab.container(host))


def ssh_command(lab: Lab, host: str, shared: bool = True) -> List[str]:
    """Return the ssh command that opens a shell on a host.

    :param shared: over Ansible's connection, which is quicker, but ends with the process that opened it
    """
    if not lab.inventory.exists():
        raise shell.LabError(f"The lab {lab.scenario} is not up; python3 lab up --scenario {lab.scenario}")
    described = inventory.read(lab.inventory)["all"]
    addresses = {
        name: variables["ansible_host"]
        for group in described["children"].values()
        for name, variables in group["hosts"].items()
    }
    _require(host, addresses)
    options = described["vars"]["ansible_ssh_common_args"].split(" ")
    key = described["vars"]["ansible_ssh_private_key_file"]
    # Of two values ssh takes the first.
    sharing = ["-oControlMaster=auto", "-oControlPersist=60s"] if shared else ["-oControlPath=none"]
    return ["ssh", "-i", key, *sharing, *options, f"{inventory.USER}@{addresses[host]}"]


def _require(host: str, names: Iterable[str]) -> None:
    if host not in names:
        raise shell.LabError("There is no host {}; there are {}".format(host, ", ".join(names)))


def _is_up(here: Machine, lab: Lab, image_name: str) -> bool:
    if not lab.inventory.exists() or inventory.read(lab.inventory)["all"]["vars"]["lab_image"] != image_name:
        return False
    ours = f"label={LAB_LABEL}={lab.id}"
    running = set(here.podman("ps", "--filter", ours, "--format", "{{.Names}}").split())
    return running == {lab.container(host.name) for host in lab.hosts}


def _clear(here: Machine, lab: Lab) -> None:
    """Remove an earlier lab of the same name, complete or not."""
    _remove_files(lab)
    _remove(here, LAB_LABEL, lab.id)


@dataclass(frozen=True)
class LabRun:
    """What all hosts of one `up` share."""

    machine: Machine
    lab: Lab
    networks: Mapping[str, Network]
    podman_names: Mapping[str, str]
    images: Mapping[str, str]
    key: Path
    fair_share: Tuple[str, ...]


def _start_all(here: Machine, lab: Lab, images: Mapping[str, str]) -> Dict[str, Network]:
    """Start the networks, and then the hosts in parallel, those first that are the others' way out."""
    with shell.step("start " + " ".join(host.name for host in lab.hosts)):
        podman_names = {name: f"{lab.name}-{secrets.token_hex(2)}" for name in lab.networks}
        networks = {name: _create_network(here, lab, name, podman_names[name]) for name in lab.networks}
        if lab.vips not in networks:
            networks[lab.vips] = network.choose(f"{lab.id}-{lab.vips}", network.parse(_claimed(here)), here.ipv6)
        fair_share = machine.fair_share(here.podman("info", "--format", "{{.Host.CgroupManager}}").strip())
        lab_run = LabRun(here, lab, networks, podman_names, images, _key(lab.cache), fair_share)
        for first in (True, False):
            started = [host for host in lab.hosts if host.router == first]
            with ThreadPoolExecutor(len(lab.hosts)) as pool:
                list(pool.map(partial(_start, lab_run), started))
    return networks


def _create_network(here: Machine, lab: Lab, name: str, podman_name: str) -> Network:
    """Create a network of the lab; if another lab has just taken the same addresses, choose again.

    Podman's name is a new one each time: a killed podman leaves leases and DNS records behind, which are keyed by it.
    """
    searched = lab.id if len(lab.networks) == 1 else f"{lab.id}-{name}"
    for attempt in range(5):
        net = network.choose(searched, network.parse(_claimed(here)), here.ipv6)
        options = net.podman_options(lab.leads_out(name))
        try:
            here.podman("network", "create", *lab.labels, *options, podman_name)
            return net
        except shell.LabError as error:
            if attempt == 4 or "already used" not in str(error):
                raise
    raise AssertionError("unreachable")


def _claimed(here: Machine) -> Set[str]:
    """Collect every network that podman or the kernel's routing tables know."""
    claimed: Set[str] = set()
    for net in json.loads(here.podman("network", "ls", "--format", "json")):
        claimed.update(subnet["subnet"] for subnet in net.get("subnets") or [])
    for family in ("-4", "-6"):
        routes = json.loads(shell.run(["ip", family, "-json", "route", "show", "table", "all"]) or "[]")
        claimed.update(route["dst"] for route in routes)
    return claimed


def _start(lab_run: LabRun, host: Host) -> None:
    """Start one host, make it reachable, and wait until it answers."""
    name, first = lab_run.lab.container(host.name), lab_run.networks[host.networks[0]]
    lab_run.machine.podman(
        *("run", "--detach", "--replace", "--name", name, "--hostname", host.name, *lab_run.lab.labels),
        *_network_options(lab_run, host),
        *("--privileged", "--volume", f"{FILES}:/lab:ro"),
        *(("--dns", "none") if host.names else ()),
        *lab_run.fair_share,
        *(MACHINE if host.machine else CONTAINER),
        *(lab_run.images[host.variant], *(("sh", "/lab/machine.sh") if host.machine else ("/sbin/init",))),
    )
    environment = [f"--env={variable}={value}" for variable, value in _variables(lab_run, host).items()]
    output = lab_run.machine.podman("exec", *environment, name, "sh", "/lab/host.sh")
    if output.strip():
        shell.say(f"lab: {host.name}: {output.strip()}")
    for port in (SSH_PORT, *host.ports):
        answers = partial(_answers, first.address(host.number), port)
        limit_s = BOOT_LIMIT_S if host.machine else 30
        shell.wait_until(answers, limit_s, f"{host.name} answering on port {port}")


def _network_options(lab_run: LabRun, host: Host) -> Iterator[str]:
    """Yield the options of `podman run` that give a host its interfaces."""
    for at, name in enumerate(host.networks):
        net, podman_name = lab_run.networks[name], lab_run.podman_names[name]
        address6 = net.address6(host.number)
        options = [f"ip={net.address(host.number)}", *([f"ip6={address6}"] if address6 else [])]
        options += [f"mac={host.mac(at)}", f"alias={host.name}", f"interface_name=eth{at}"]
        yield f"--network={podman_name}:{','.join(options)}"
    yield from (f"--sysctl={name}={value}" for name, value in lab_run.lab.sysctls_of(host).items())


def _variables(lab_run: LabRun, host: Host) -> Dict[str, str]:
    """Return the environment of `host.sh`."""
    net, routers = lab_run.networks[host.networks[0]], lab_run.lab.routers_of(host)
    return {
        "LAB_USER": inventory.USER,
        "LAB_KEY": lab_run.key.with_suffix(".pub").read_text().strip(),
        "PORTS": " ".join(map(str, host.ports)),
        "NAMES": host.names,
        "NAME_SERVER": net.address(GATEWAY),
        "ROUTERS": " ".join(net.address(router.gateway) for router in routers),
        "ROUTERS6": " ".join(net.address6(router.gateway) or "" for router in routers).strip(),
        "OUTSIDE": "eth0" if host.router else "",
        "KEEPALIVED": gateways.keepalived(lab_run.lab, lab_run.networks, host) if host.router else "",
        **({"SYSTEMD_OFFLINE": "1"} if host.machine else {}),
    }


def _answers(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=1):
            return True
    except OSError:
        return False


def _key(cache: Path) -> Path:
    """Return the lab's ssh key. The private part gets its name last, so that a key that exists is complete."""
    key, partial_key = cache / "id_ed25519", cache / "partial_key"
    if not key.exists():
        for leftover in cache.glob("partial_key*"):
            leftover.unlink()
        shell.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", PREFIX, "-f", str(partial_key)])
        partial_key.with_suffix(".pub").rename(key.with_suffix(".pub"))
        partial_key.rename(key)
    return key


def _remove(here: Machine, label: str, value: str) -> None:
    """Remove containers and networks with this label, and containers whose creation was interrupted.

    It retries, because an interrupted podman may still hold a lock for a moment.
    """
    removed = partial(_try_to_remove, here, label, value)
    shell.wait_until(removed, 30, f"removing the containers of {value}", every=0.5)


def _try_to_remove(here: Machine, label: str, value: str) -> bool:
    ours = f"label={label}={value}"
    containers = here.podman("ps", "--all", "--quiet", "--filter", ours).split()
    containers += _incomplete(here, f"{PREFIX}-{value}-")
    if containers:
        here.podman("rm", "--force", "--time", "0", "--volumes", *containers)
    networks = here.podman("network", "ls", "--quiet", "--filter", ours).split()
    if networks:
        here.podman("network", "rm", "--force", *networks)
    return True


def _incomplete(here: Machine, prefix: str) -> Iterable[str]:
    """Return the containers that exist in podman's storage only. They have a name but no label."""
    everything = here.podman("ps", "--all", "--external", "--format", "{{.Names}}\t{{.Status}}")
    rows = (row.split("\t") for row in everything.splitlines())
    return [name for name, state in rows if name.startswith(prefix) and state == "Storage"]


def _remove_files(lab: Lab) -> None:
    """Remove a lab's files, and end its open ssh connections."""
    for file in lab.folder.glob("inventory.*"):
        file.unlink()
    if lab.folder.exists():
        lab.folder.rmdir()
    for sockets in SOCKETS.glob(lab.name + ".*"):
        for master in sockets.iterdir():
            shell.succeeds(["ssh", "-O", "exit", f"-oControlPath={master}", "lab"])
        shutil.rmtree(sockets, onerror=_unless_gone)


def _unless_gone(_remove: object, _path: str, error: Tuple[type, BaseException, object]) -> None:
    """Let a file be missing: a connection that ends by itself at this moment removes its socket."""
    if not isinstance(error[1], FileNotFoundError):
        raise error[1]
