# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each block of code in the pages is tried as a reader would, or stands here with the reason why not.

An inventory is forecast, a configuration of the agent checked, a command's playbook, variables and options looked for.
"""

from __future__ import annotations

import functools
import itertools
import re
import shlex
from typing import Dict, List

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.onprem.lb.plugins.module_utils._agent import cli
from ansible_collections.onprem.lb.plugins.module_utils._plan.dns import layouts as dns
from support.certificates import certificate_text
from support.documents import argument_spec, fenced
from support.inventories import Inventory
from support.paths import DOCS, PLAYBOOKS, README, ROLES, ROOT
from support.rendering import haproxy_model
from support.variable_tables import options

from .monitoring.test_rules import promtool

PAGES = [README, *sorted(DOCS.glob("*.md")), *sorted(ROLES.glob("*/README.md"))]
# What each block of a page is, in their order. A word of REASONS is not tried here.
KINDS = {
    "README.md": "pair installation commands printed printed commands",
    "docs/acme.md": "pair issuer issuer",
    "docs/agent.md": "usage agent unit",
    "docs/anycast.md": "usage agent",
    "docs/bgp.md": "printed reach commands commands",
    "docs/changes.md": "commands commands",
    "docs/cluster.md": "cluster commands",
    "docs/direct.md": "usage pair cluster agent",
    "docs/dns.md": "commands cluster records records records records cluster",
    "docs/drills.md": "commands printed drill printed printed",
    "docs/failover.md": "host",
    "docs/follow.md": "preset usage agent kubernetes",
    "docs/import.md": "commands commands printed commands",
    "docs/monitoring.md": "pair prometheus usage",
    "docs/operations.md": "printed printed printed printed commands printed commands commands printed printed shell "
    "commands commands commands commands commands printed printed commands commands",
    "docs/openshift.md": "preset printed pair",
    "docs/pods.md": "cluster commands printed image kubernetes printed",
    "docs/proxy.md": "usage agent unit",
    "docs/services.md": "pair " * 19,
    "docs/symptoms.md": "commands commands commands commands commands host commands commands host host host commands "
    "commands commands host host host host usage",
    "docs/vrids.md": "printed",
    "roles/agent/README.md": "role",
    "roles/direct_server/README.md": "role",
    "roles/drill/README.md": "commands drill",
    "roles/frr/README.md": "role",
    "roles/haproxy/README.md": "role",
    "roles/ipi/README.md": "cluster cluster cluster cluster",
    "roles/keepalived/README.md": "role",
    "roles/pair/README.md": "pair preset pair pair pair pair pair",
    "roles/resolver/README.md": "role",
}
REASONS = {
    "printed": "what a run prints on hosts; test_pictures compares the forecast",
    "installation": "needs Galaxy and PyPI: tests/cores installs the archive",
    "shell": "test_renewals runs it beside a haproxy",
    "unit": "the agent's own, for who does without the roles: systemd reads it in test_units",
    "host": "needs a member: test_symptoms looks for its options and paths",
    "kubernetes": "needs an API server",
    "reach": "a part of examples/pair-two-racks.yml, which is forecast",
    "image": "needs a registry",
    "issuer": "needs a certificate authority, and what it has issued: tests/netns/test_acme.py has a stand-in",
}
PREFIXES = ("pair_", "ipi_", "haproxy_", "keepalived_", "agent_", "dns_")
# The layout of a kind of inventory, and the page whose first one variables are tried beside.
LAYOUTS = {
    "pair": ("pair", README),
    "preset": ("pair", ROLES / "pair" / "README.md"),
    "cluster": ("ipi", ROLES / "ipi" / "README.md"),
}
# What a reader has of their own.
ELSEWHERE = {
    "vault_stats_password": "Xy3Xy3Xy3",
    "acme_thumbprint": "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs",
    **dict.fromkeys(("vault_shop_pem", "vault_www_pem"), certificate_text()),
}
VARIABLES = {
    name for role in ROLES.iterdir() if (role / "meta/argument_specs.yml").exists() for name in options(role.name)
}
OF_PLAYBOOKS = {
    name for file in PLAYBOOKS.glob("*.yml") for name in re.findall(r"^#   (\w+)  ", file.read_text(), re.MULTILINE)
}
HOSTS = re.compile(r"^(\[|pair:)", re.MULTILINE)  # an inventory with groups of hosts
DESCRIPTION = {
    "layout": "cluster",
    "name": "lab",
    "domain": "example.com",
    "api_vips": ["192.0.2.10"],
    "ingress_vips": ["192.0.2.20"],
}


def name_of(page):
    return str(page.relative_to(ROOT))


BLOCKS = [
    pytest.param(kind, block, id=f"{name_of(page)}:{block.line}")
    for page in PAGES
    for kind, block in zip(KINDS.get(name_of(page), "").split(), fenced(page))
    if kind not in REASONS
]


def test_the_table_has_a_kind_for_each_block_and_no_other_page():
    assert {name_of(page): len(fenced(page)) for page in PAGES if fenced(page)} == {
        name: len(kinds.split()) for name, kinds in KINDS.items()
    }
    assert {kind for kinds in KINDS.values() for kind in kinds.split()} == TRIED.keys() | REASONS.keys()


@pytest.mark.parametrize("kind, block", BLOCKS)
def test_a_block_does_what_its_page_says(kind, block, tmp_path):
    TRIED[kind](block, tmp_path)


def inventory(kind, block, folder):
    """A whole inventory, or variables for all hosts of the first one of a page."""
    layout, page = LAYOUTS[kind]
    for number, each in enumerate(
        [block] if "_vips" in block.code and HOSTS.search(block.code) else [fenced(page)[0], block]
    ):
        if HOSTS.search(each.code):
            (folder / f"{number}.{each.language.replace('yaml', 'yml')}").write_text(each.code)
        elif each.language == "yaml":
            (folder / "group_vars").mkdir()
            (folder / "group_vars" / "all.yml").write_text(each.code)
        else:
            (folder / f"{number}.ini").write_text(f"[all:vars]\n{each.code}")
    (folder / "elsewhere.yml").write_text(yaml.safe_dump({"all": {"vars": ELSEWHERE}}))
    found = Inventory(folder)
    plans = found.plans(layout)
    assert plans.faults == [] and plans.plans
    for host in found.hosts(layout):
        named = {name for prefix in PREFIXES for name in found.variables(host, prefix)}
        assert named <= VARIABLES | OF_PLAYBOOKS
        assert haproxy_model(**found.variables(host, "haproxy_"))["faults"] == []


def agent(block, folder):
    file = folder / "agent.json"
    file.write_text(block.code)
    assert cli.main(["check-config", "--config", str(file)]) == cli.GOOD


def commands(block, _folder):
    for line in block.code.splitlines():
        command = line.partition("#")[0]
        program, *arguments = shlex.split(command) or ["#"]
        if program == "ansible-playbook":
            playbook(arguments)
        elif program == "make":
            assert re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line
        else:
            assert program in ("#", "ansible"), line


def playbook(arguments: List[str]):
    """Look for a playbook and for what it is told."""
    given: Dict[str, str] = {}
    named = [word for word in arguments if word.startswith("onprem.lb.")]
    for option, value in zip(arguments, arguments[1:]):
        if option == "-e":
            given.update([value.split("=")])
    (name,) = [word.split(".")[-1] for word in named]
    assert (PLAYBOOKS / f"{name}.yml").exists()
    assert given.keys() <= VARIABLES | OF_PLAYBOOKS


def usage(block, _folder):
    """Each command of the agent, in each way that is written."""
    for line in block.code.splitlines():
        command = re.split(r"\s{2,}", line)[0]
        if command.startswith("make "):
            commands(block._replace(code=command), None)
            continue
        words = [word.split("|") for word in command.replace("[", "").replace("]", "").split()[2:]]
        for arguments in itertools.product(*words):
            if arguments != ("--version",):
                cli._parse(list(arguments))


def drill(block, _folder):
    assert yaml.safe_load(block.code).keys() <= options("drill").keys()


def prometheus(block, folder):
    found = yaml.safe_load(block.code)
    found["rule_files"] = []
    for each in found["scrape_configs"]:
        each["basic_auth"]["password_file"] = str(folder / "password")
    (folder / "password").write_text("secret")
    (folder / "prometheus.yml").write_text(yaml.safe_dump(found))
    assert "SUCCESS" in promtool("check", "config", folder / "prometheus.yml")


def records(block, _folder):
    """What is printed of the records has these lines in this order; `...` stands for others."""
    answer = dns.describe(DESCRIPTION)
    texts = [answer[form] for form in ("zone", "dnsmasq", "nsupdate", "corefile")]
    assert any(re.fullmatch(pattern(block.code), text.strip(), re.DOTALL) for text in texts)


def pattern(code):
    parts = re.split(r"\n\s*\.\.\.\n", code.strip())
    return r"\n.*?".join(re.sub(r"[ ]+", r" +", re.escape(part).replace(r"\ ", " ")) for part in parts)


def role(block, _folder):
    """The variables of a role, as Ansible validates them before its first task."""
    ((play,),) = [yaml.safe_load(block.code)]
    for each in play["roles"]:
        of = each["role"].split(".")[-1]
        assert each["vars"].keys() <= options(of).keys()
        literal = {name: value for name, value in each["vars"].items() if "{{" not in str(value)}
        spec = argument_spec({name: option for name, option in options(of).items() if name in literal})
        assert ArgumentSpecValidator(spec).validate(literal).error_messages == []


def spec_of(option):
    """Return an option of a role's argument specs as Ansible's validator takes it."""
    kept = {key: option[key] for key in ("type", "elements", "choices", "required") if key in option}
    return {
        **kept,
        **({"options": {n: spec_of(o) for n, o in option["options"].items()}} if "options" in option else {}),
    }


TRIED = {
    **{kind: functools.partial(inventory, kind) for kind in LAYOUTS},
    "agent": agent,
    "commands": commands,
    "usage": usage,
    "drill": drill,
    "prometheus": prometheus,
    "records": records,
    "role": role,
}
