# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which packages of `plugins` may import which.

``_plan`` runs on the controller, ``_host`` on the target, ``_shared`` on both, and ``_agent`` imports none of them.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys

import graphlib
from support.paths import ACTIONS, FILTERS, MODULE_UTILS, MODULES, ROOT

PACKAGE = "ansible_collections.onprem.lb"
UTILS = f"{PACKAGE}.plugins.module_utils."
AGENT_PARTS = ("_agent.checks", "_agent.net", "_agent.runtime", "_agent.config")
# Each package, by the beginning of its modules' names, with what it may import beside itself: packages and modules.
MAY_IMPORT = {
    "modules": ("_host", "_shared", "_agent.keepalived.conf", "_agent.resolver.files"),
    "action": ("_plan.model",),
    "action.layout_members": ("_plan.members", "_plan.model"),
    "filter": ("_plan", "_shared"),
    "filter.pods": ("_plan", "_shared", "_agent", "_host.deploy.archive"),  # a MachineConfig carries the agent
    # A run and `follow` write the same file.
    # And so do a run and the resolver's keeper.
    "_plan.dns": (
        *("_agent.config.schema", "_agent.follow.hosts", "_agent.resolver.keeper", "_agent.resolver.resolv_conf"),
        *("_shared", "_plan.model.destinations", "_plan.model.resolver"),
    ),
    "_plan.drill": (
        *("_shared", "_agent.VERSION", "_plan.model.bind_line", "_plan.model.direct_plane"),
        *("_plan.model.drill_records", "_plan.model.services"),
        "_plan.forecast.servers",  # what a drill compares with
    ),
    "_plan.operations": (
        *("_shared", "_agent.VERSION"),
        "_plan.drill.questions",  # the status asks as a drill does
        *("_agent.config.schema", "_agent.metrics.sessions"),  # the words of BGP
        "_plan.model.restarts",  # a rollback restarts resolvers as a run does
        *(
            "_plan.bgp.leaving",
            "_plan.bgp.order",
            "_plan.bgp.settings",
        ),  # and returns members that announce as a run changes them
    ),
    "_plan.pods": (
        *("_plan.ipi", "_plan.layouts", "_plan.members", "_plan.model", "_shared"),
        *("_agent.VERSION", "_agent.config.schema", "_agent.follow.settings"),
        "_plan.bgp.settings",  # by which VIPs are reached
        "_agent.runtime.sd_notify",  # how a program says that it lives
    ),
    "_plan.imported": (
        *(
            "_plan.model",
            "_shared",
            "_agent.config.schema",
            "_agent.follow.haproxy_file",
            "_agent.follow.haproxy_words",
        ),
        *("_agent.keepalived.conf", "_agent.keepalived.unread", "_agent.checks.settings", "_agent.proxy.settings"),
    ),
    "_plan.bgp": ("_plan.members", "_plan.model", "_shared", "_agent.config.schema"),
    "_plan.ipi": (
        *(
            "_plan.layouts",
            "_plan.bgp",
            "_plan.change",
            "_plan.forecast",
            "_plan.members",
            "_plan.dns",
            "_plan.model",
            "_shared",
        ),
        *("_agent.config.schema", "_agent.direct.config", "_agent.vrrp.core.packet"),
    ),
    "_plan.pair": (
        *("_plan.layouts", "_plan.bgp", "_plan.forecast", "_plan.members", "_plan.model", "_shared"),
        *("_agent.config.schema", "_agent.direct.config", "_agent.follow.haproxy_file"),
    ),
    "_plan.layouts": (
        *("_plan.bgp", "_plan.change", "_plan.forecast", "_plan.members", "_plan.dns", "_plan.model", "_shared"),
        "_agent.config.schema",
        # What `follow` is given, and how it compares and writes servers: a run and it write the same file.
        *("_agent.follow.config", "_agent.follow.settings", "_agent.follow.changes", "_agent.direct.settings"),
        "_agent.follow.selector",
        "_agent.follow.hosts",  # which names they give to nodes
    ),
    "_plan.change": (
        *("_plan.forecast", "_plan.members", "_plan.model", "_shared"),
        *("_agent.config.schema", "_agent.vrrp.core.packet", "_agent.vrrp.core.machine"),
    ),
    "_plan.members": ("_plan.model", "_shared", "_agent.config.schema", "_agent.vrrp.core.packet"),
    "_plan.forecast": ("_plan.model", "_shared", "_agent.vrrp.core"),
    "_plan.model": (
        "_shared",
        *("_agent.checks.settings", "_agent.config.schema", "_agent.config.certificates"),
        *("_agent.vrrp.config", "_agent.vrrp.notation", "_agent.vrrp.rules"),
        *("_agent.proxy.config", "_agent.proxy.names", "_agent.proxy.rules", "_agent.proxy.settings"),
        *("_agent.follow.config", "_agent.follow.settings", "_agent.direct.config"),
    ),
    "_host": ("_shared", "_agent.config.schema"),  # what both those that read and those that write need
    "_host.read": (
        *("_host", "_host.link", "_shared"),
        "_agent.config.schema",
        # Whether a program is fit for use, and what its words are, is the same question to both.
        *("_agent.config.host", "_agent.config.shell_words"),
        *("_agent.keepalived.conf", "_agent.keepalived.unread"),
        "_agent.net",
        "_agent.runtime.status_socket",
        *("_agent.resolver.keeper", "_agent.resolver.show"),  # both ask whether the resolver forwards
        "_agent.runtime.accounts",  # a check is run as its router runs it
        "_agent.config.certificates",
        # What keepalived writes in a pod, of which systemd has no log, and what FRR says of its sessions.
        *("_agent.metrics.dumps", "_agent.metrics.sessions"),
        # What is wrong with its plane, and which of its servers are up.
        *("_agent.direct.faults", "_agent.direct.settings", "_agent.proxy.settings"),
        *("_agent.follow", "_agent.runtime.text_table"),  # what it has written, and what it says is wrong
    ),
    "_host.write": ("_host", "_host.read", "_shared"),
    "_host.link": ("_shared", "_agent.config.schema", "_agent.net", "_agent.vrrp.core.packet"),
    "_host.firewall": ("_host",),
    "_host.drill": ("_host.read", "_shared"),
    # A run and the unit of a server say with the same code what is not in force.
    "_host.direct": (
        *("_host.firewall", "_host.read", "_shared.engines", "_shared.load_records"),
        *("_agent.config.file", "_agent.config.schema", "_agent.direct", "_agent.keepalived.conf"),
    ),
    # It carries the agent to the target, and asks it whether its configuration is good.
    "_host.deploy": (
        *(
            "_host",
            "_host.read",
            "_host.write",
            "_shared",
            "_agent",
            "_agent.cli",
            "_agent.vrrp.config",
            "_agent.proxy.config",
        ),
        *("_agent.vrrp.core.packet", "_agent.runtime.status_socket", "_agent.keepalived.resignation"),
        *("_agent.keepalived.peers", "_agent.keepalived.answers"),
    ),
    # What it returns to may be an agent, and it is carried to the target as that is.
    "_host.states": (
        *("_host", "_host.read", "_host.deploy", "_host.firewall", "_host.link", "_shared"),
        *("_agent.keepalived.conf", "_agent.net.netlink", "_agent.runtime.sd_notify", "_agent.vrrp.core.packet"),
        *("_agent.config.records", "_agent.config.schema"),
        "_agent.metrics.sessions",  # the words of BGP
    ),
    "_shared": (
        "_agent.keepalived.conf",  # what a run gives up and a converter leaves out is one question
        "_agent.VERSION",
        "_agent.config.schema",
        "_agent.config.shell_words",
        "_agent.vrrp.core.packet",
        "_agent.proxy.settings",
    ),
    "_agent": (),
    "_agent.cli": (
        *("_agent", "_agent.vrrp", "_agent.proxy", "_agent.metrics", "_agent.follow", "_agent.sidecar"),
        *("_agent.direct", "_agent.anycast", "_agent.certificates", *AGENT_PARTS),
    ),
    "_agent.anycast": ("_agent.VERSION", *AGENT_PARTS),
    "_agent.vrrp": ("_agent.VERSION", "_agent.vrrp.core", *AGENT_PARTS),
    "_agent.vrrp.core": (),  # the protocol itself: pure, and of the standard library alone
    "_agent.proxy": AGENT_PARTS,
    "_agent.proxy.master": ("_agent.VERSION", "_agent.proxy", *AGENT_PARTS),
    "_agent.proxy.worker": ("_agent.proxy.names", "_agent.proxy.settings"),
    "_agent.proxy.views": ("_agent.proxy.settings", "_agent.runtime"),
    "_agent.metrics": (
        *("_agent.vrrp", "_agent.vrrp.core", *AGENT_PARTS),
        *("_agent.follow.changes", "_agent.follow.runtime_api"),  # both ask haproxy at its socket
        # Whose reports it shows.
        *("_agent.follow", "_agent.direct", "_agent.anycast"),
        *("_agent.proxy.settings", "_agent.proxy.views", "_agent.resolver.show"),
    ),
    "_agent.keepalived": (
        *("_agent.checks", "_agent.net", "_agent.runtime", "_agent.vrrp.core.offers", "_agent.vrrp.core.packet"),
    ),
    "_agent.follow": ("_agent.VERSION", "_agent.proxy.config", "_agent.proxy.settings", *AGENT_PARTS),
    "_agent.direct": (
        *("_agent.VERSION", "_agent.direct", *AGENT_PARTS),
        *("_agent.proxy.config", "_agent.proxy.rules", "_agent.proxy.settings", "_agent.proxy.views.text"),
        *("_agent.proxy.master.server_states", "_agent.proxy.master.admin"),  # a server's state is the same in both
    ),
    "_agent.resolver": ("_agent.net", "_agent.runtime"),
    "_agent.certificates": ("_agent.runtime",),
    "_agent.direct.buckets": (),
    "_agent.direct.rulesets": ("_agent.direct.buckets",),
    "_agent.sidecar": (
        *("_agent.keepalived.answers", "_agent.keepalived.resignation", "_agent.keepalived.peers"),
        *("_agent.keepalived.conf", "_agent.keepalived.senders"),
        *("_agent.vrrp.config", "_agent.vrrp.settings", *AGENT_PARTS),
    ),
    "_agent.checks": ("_agent.net", "_agent.runtime", "_agent.config"),
    "_agent.net": ("_agent.vrrp.core.packet",),
    "_agent.runtime": ("_agent.config.reports",),  # what its reports have
    "_agent.config": (),
}


def modules():
    """{name: file} of every module, without what all their names begin with."""
    found = {f"modules.{file.stem}": file for file in MODULES.glob("*.py")}
    found.update({f"action.{file.stem}": file for file in ACTIONS.glob("*.py")})
    found.update({f"filter.{file.stem}": file for file in FILTERS.glob("*.py")})
    for file in MODULE_UTILS.rglob("*.py"):
        parts = file.relative_to(MODULE_UTILS).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


FILES = modules()


@functools.lru_cache(maxsize=None)
def imports(name):
    """Return what a module imports of ours, each as MODULE or, from a package's own file, PACKAGE.NAME."""
    found = []
    package = name.split(".") if FILES[name].stem == "__init__" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(FILES[name].read_text())):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            if node.level or source.startswith(UTILS) or source == UTILS[:-1]:
                source = source.removeprefix(UTILS[:-1]).removeprefix(".")
                inner = [f"{source}.{alias.name}".removeprefix(".") for alias in node.names]
                is_file = source in FILES and FILES[source].stem != "__init__"
                found += [source] if is_file else inner
    return found


def is_in(name, package):
    return name == package or name.startswith(f"{package}.")


def package_of(name):
    return max((package for package in MAY_IMPORT if is_in(name, package)), key=len, default="")


def test_every_module_is_in_a_package():
    packages = {name for name, file in FILES.items() if file.stem == "__init__"}
    assert [name for name in FILES if not package_of(name) and name not in packages] == []


def test_a_module_imports_its_own_package_and_what_that_may():
    assert {name: found for name in FILES if (found := not_allowed(name))} == {}


def not_allowed(name):
    package = package_of(name)
    allowed = MAY_IMPORT.get(package, ())
    others = [what for what in imports(name) if package_of(what) != package]
    return [what for what in others if not any(is_in(what, may) for may in allowed)]


def test_no_package_imports_itself_through_others():
    imported = {package: set() for package in MAY_IMPORT}
    for name in FILES:
        package = package_of(name)
        imported.setdefault(package, set()).update({package_of(what) for what in imports(name)} - {package})
    graphlib.TopologicalSorter(imported).prepare()


def test_the_controller_needs_nothing_of_linux():
    """As on macOS, where `select` knows no epoll."""
    code = (
        "import select\n"
        "for name in [name for name in vars(select) if 'epoll' in name.lower()]: delattr(select, name)\n"
        f"import importlib\nfor name in {sorted(file.stem for file in FILTERS.glob('*.py'))}:\n"
        f"    importlib.import_module('{PACKAGE}.plugins.filter.' + name)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def test_scapy_is_imported_in_one_place_where_it_does_not_read_all_routes_of_the_machine():
    files = [file for file in (ROOT / "tests").rglob("*.py") if "scapy" in file.read_text()]
    found = [file for file in files if re.search(r"^\s*(import|from) scapy\b", file.read_text(), re.MULTILINE)]
    assert [str(file.relative_to(ROOT)) for file in found] == ["tests/support/scapy_layers.py"]
