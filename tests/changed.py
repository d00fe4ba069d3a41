# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints what tests the files that have changed since a commit: scenarios, as SCENARIO:IMAGE, and interruptions.

    make scenarios SINCE=main
    make molecule RUNS="$(make --silent scenarios SINCE=main)"

In a GitHub workflow it also sets the output `runs`, a list in JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from typing import Iterable, List, Mapping, Tuple

from support.paths import ROOT
from support.scenarios import IMAGE_OF

# Emulated machines are slow: besides each night they go with what nothing else plays as well.
MACHINES = ("machines",)
ALL = tuple(scenario for scenario in IMAGE_OF if scenario not in MACHINES)
NONE: Tuple[str, ...] = ()
DEPLOYED = ("examples",)
DIRECT = ("direct",)
PAIR = ("default", "agent", "mixed", "rke2", *DIRECT, *DEPLOYED)
PODS = ("pods",)
CLUSTER = ("ipi", "ipi-agent", "cluster", *PODS)
ALONE = ("roles",)
NAMES = ("names",)
NATIVE = ("default", "mixed", "rke2", *DIRECT, "ipi", "cluster", "roles", *DEPLOYED, *PODS)
# The first matching prefix decides. A path without one needs all scenarios.
SCENARIOS: Mapping[str, Tuple[str, ...]] = {
    # No scenario runs these.
    ".ansible-lint": NONE,
    ".ci/": NONE,
    ".github/": NONE,
    ".gitignore": NONE,
    ".yamllint": NONE,
    "LICENSE": NONE,
    "bench/": NONE,
    "changelogs/": NONE,
    "docs/": NONE,
    "examples/": DEPLOYED,
    "lab/demo.yml": NONE,
    "lab/": (*ALL, *MACHINES),
    "playbooks/dns.yml": NONE,
    "playbooks/import.yml": NONE,
    "playbooks/survey.yml": NONE,
    "plugins/filter/imported.py": NONE,
    "plugins/filter/dns": NAMES,
    "plugins/module_utils/_agent/resolver/": NAMES,
    "plugins/module_utils/_plan/dns/": NAMES,
    "plugins/module_utils/_plan/imported/": NONE,
    "plugins/modules/resolv_conf.py": NAMES,
    "roles/resolver/": (*NAMES, "cluster"),
    "tests/controllers/": NONE,
    "tests/interruptions/": NONE,
    "tests/netns/": NONE,
    "tests/pictures/": NONE,
    "tests/unit/": NONE,
    # Only one scenario runs these.
    "playbooks/maintenance.yml": ("default", *MACHINES),
    "playbooks/status.yml": ("default",),
    "playbooks/switchover.yml": ("default",),
    "playbooks/tasks/": ("default", *MACHINES),
    "playbooks/vars/": ("default",),
    "plugins/module_utils/_plan/operations/": ("default",),
    "molecule/pods/": PODS,
    "playbooks/pods.yml": PODS,
    "plugins/filter/pods": PODS,
    "plugins/module_utils/_agent/sidecar/": PODS,
    "plugins/module_utils/_plan/pods/": PODS,
    "roles/ipi/tasks/pods.yml": PODS,
    "roles/layout/tasks/pods/": PODS,
    "roles/layout/tasks/routers/start_pods.yml": PODS,
    # Only one layout uses these.
    "playbooks/ipi.yml": CLUSTER,
    "playbooks/pair.yml": PAIR,
    "plugins/filter/api_redirect": CLUSTER,
    "plugins/filter/nftables": CLUSTER,
    "plugins/module_utils/_plan/ipi/": CLUSTER,
    "plugins/module_utils/_plan/pair/": PAIR,
    "roles/ipi/": CLUSTER,
    "roles/pair/": PAIR,
    "plugins/module_utils/_host/direct/": DIRECT,
    "roles/direct_server/": DIRECT,
    # Only one engine uses these.
    "roles/haproxy/": NATIVE,
    "roles/keepalived/": NATIVE,
    # The scenarios themselves, and the files that they read.
    "molecule/agent/": ("agent",),
    "molecule/bgp-move/": ("bgp-move",),
    "molecule/bgp/": ("bgp", "bgp-move"),
    "molecule/cluster/": ("cluster",),
    "molecule/default/tasks/nftables.yml": ("default", *DEPLOYED),
    "molecule/default/": ("default",),
    "molecule/direct/": DIRECT,
    "molecule/examples/": DEPLOYED,
    "molecule/ipi-agent/": ("ipi-agent",),
    "molecule/ipi/": ("ipi", "ipi-agent", "cluster"),  # both of them run its playbooks and tests, too
    "molecule/mixed/": ("mixed",),
    "molecule/machines/": MACHINES,
    "molecule/names/": NAMES,
    "molecule/rke2/": ("rke2",),
    "molecule/roles/": ALONE,
    "tests/golden/": ("default",),  # haproxy and keepalived test these files there
}
PROSE = ".md"
ENOUGH = 40  # files, which take sanity and ansible-lint a minute of a processor
# What a killed run leaves depends on these. Each layout's interruptions go with the scenario that has both its engines.
INTERRUPTED = ("playbooks/", "plugins/module_utils/_host/states/", "roles/", "tests/interruptions/")
CYCLES = {
    "mixed": ("interruptions:pair:deployment", "interruptions:pair:change", "interruptions:pair:engine"),
    "ipi": ("interruptions:ipi:change",),
}
EXAMPLES = ("roles/agent/README.md", "roles/haproxy/README.md", "roles/keepalived/README.md")  # `roles` runs these


def runs(paths: Iterable[str]) -> List[str]:
    """Return the scenarios that these paths need, each with its image, and the interruptions."""
    paths = list(paths)
    needed = {scenario for path in paths for scenario in scenarios(path)}
    killed = {cycle for path in paths for cycle in cycles(path)}
    return [
        *(f"{scenario}:{image}" for scenario, image in IMAGE_OF.items() if scenario in needed),
        *(cycle for each in CYCLES.values() for cycle in each if cycle in killed),
    ]


def scenarios(path: str) -> Tuple[str, ...]:
    """Return the scenarios that a path of the checkout needs."""
    if path.endswith(PROSE):
        return ALONE if path in EXAMPLES else NONE
    return next((needed for prefix, needed in SCENARIOS.items() if path.startswith(prefix)), ALL)


def cycles(path: str) -> Tuple[str, ...]:
    """Return the interruptions that a path of the checkout needs."""
    if path.endswith(PROSE) or not path.startswith(INTERRUPTED):
        return NONE
    needed = ALL if path.startswith("tests/") else scenarios(path)
    return tuple(cycle for scenario in CYCLES if scenario in needed for cycle in CYCLES[scenario])


def changed(since: str) -> List[str]:
    """Return the paths that differ from the merge base with `since`, including uncommitted ones."""
    differing = git("diff", "--name-only", "--no-renames", "--merge-base", since)
    new = git("ls-files", "--others", "--exclude-standard")
    return [*differing, *new]


def judged(since: str) -> List[str]:
    """Return the paths that a gate of each change judges: those that have changed since `since`.

    In a clone in which `since` has everything, nothing says where the last change begins. There it is what the newest
    commits have changed, as many as it takes for ENOUGH paths.
    """
    head = git("rev-parse", "HEAD")
    if git("merge-base", since, "HEAD") != head:
        return changed(since)
    for commit in git("rev-list", "--first-parent", "HEAD"):
        paths = changed(commit)
        if len(paths) >= ENOUGH:
            return paths
    return git("ls-files", "--cached", "--others", "--exclude-standard")


def git(*arguments: str) -> List[str]:
    command = ["git", "-c", "core.quotePath=false", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", required=True, help="a commit, a branch or a tag")
    needed = runs(changed(parser.parse_args().since))
    print(*needed)
    if os.environ.get("GITHUB_OUTPUT"):
        with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as output:
            output.write(f"runs={json.dumps(needed)}\n")


if __name__ == "__main__":
    main()
