# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tests see a break in a file of tasks or a playbook: those of its name, and those of one table."""

from __future__ import annotations

from typing import Dict, List

from support.paths import PLAYBOOKS, ROLES, ROOT

UNIT = "tests/unit"
# By the test, roles/undo for tests/unit/roles/test_undo.py: what it plays beside the playbook of its own name. The file
# roles/layout/tasks/undo/arm.yml is layout/undo/arm.
ALSO_PLAYED: Dict[str, str] = {
    "playbooks/backup": "playbooks/tasks/begin",
    "playbooks/drill_announced": "drill/main drill/round drill/announced",
    "playbooks/drill_report": "drill/report",
    "playbooks/drill_rounds": "drill/main drill/rounds drill/round drill/rebooted drill/report",
    "playbooks/first_contact": """
        playbooks/remove layout/plan pair/plan ipi/plan playbooks/layouts/both playbooks/layouts/site_both
        playbooks/layouts/remove_both playbooks/layouts/remove_ipi""",
    "playbooks/forecast": """
        playbooks/layouts/pair playbooks/layouts/ipi layout/forecast pair/forecast ipi/forecast layout/validate""",
    "playbooks/inputs": """
        playbooks/site playbooks/ipi pair/main ipi/main layout/members variables/main""",
    "playbooks/leave": """
        playbooks/tasks/leave playbooks/tasks/announce playbooks/tasks/move playbooks/tasks/prove
        playbooks/maintenance playbooks/switchover""",
    "playbooks/maintenance": """
        playbooks/tasks/maintain playbooks/tasks/work playbooks/tasks/update playbooks/tasks/prove
        playbooks/tasks/proved playbooks/tasks/read playbooks/tasks/move""",
    "playbooks/nothing_to_do": "playbooks/survey playbooks/checks/require_hosts",
    "playbooks/pair": """
        playbooks/remove playbooks/layouts/remove_pair pair/main layout/plan layout/outside_limit layout/validate
        layout/members layout/present layout/check layout/check_more
        layout/configure layout/absent haproxy/configure keepalived/configure""",
    "playbooks/pods": "layout/forecast layout/validate ipi/pods",
    "playbooks/restore": "playbooks/rollback",
    "playbooks/rollback": """
        layout/undo/heartbeat layout/undo/confirm layout/unlock layout/undo/abandon
        playbooks/tasks/read playbooks/tasks/turn""",
    "playbooks/status": "pair/draft ipi/draft layout/members playbooks/tasks/begin",
    "playbooks/switchover": "playbooks/tasks/move playbooks/tasks/read",
    "roles/check_before_change": "layout/check haproxy/check keepalived/check agent/check",
    "roles/components": """
        haproxy/main haproxy/read haproxy/preflight haproxy/check packages/install haproxy/configure haproxy/verify
        haproxy/remove roles/haproxy/handlers/main keepalived/main keepalived/read keepalived/check keepalived/preflight
        keepalived/configure keepalived/verify keepalived/remove
        roles/keepalived/handlers/main agent/main agent/read agent/preflight agent/check agent/firewall agent/configure
        agent/verify agent/remove""",
    "roles/drop": "layout/drop layout/configure ipi/nftables ipi/nftables_apply",
    "roles/direct": "layout/direct layout/direct_absent",
    "roles/direct_server": """
        direct_server/main direct_server/preflight direct_server/configure direct_server/verify
        direct_server/remove""",
    "roles/frr": "frr/main frr/preflight frr/check frr/configure frr/verify frr/remove",
    "roles/follow": "layout/units layout/follow_check layout/unlock layout/undo/abandon",
    "roles/lock": "layout/lock layout/undo/resume",
    "roles/members": """
        layout/outside_limit layout/departed layout/undo/arm layout/undo/heartbeat""",
    "roles/migration": """
        layout/migrate
        agent/migrate_to_agent agent/migrate_to_native ipi/nftables ipi/nftables_apply ipi/nftables_check
        ipi/nftables_absent ipi/nftables_files_absent""",
    "roles/obstacles": """
        haproxy/preflight haproxy/configure packages/install keepalived/preflight
        agent/preflight""",
    "roles/order": """
        layout/routers/wave layout/routers/prove layout/routers/start layout/routers/stop
        layout/routers/announce layout/routers/leave""",
    "roles/platforms": """
        packages/install haproxy/configure haproxy/selinux keepalived/configure keepalived/selinux""",
    "roles/proof": """
        layout/verify layout/undo/confirm layout/unlock layout/undo/abandon layout/routers/left_stopped""",
    "roles/removal": """
        layout/absent haproxy/remove keepalived/remove agent/remove layout/unused packages/remove packages/purge""",
    "roles/resolver": """
        resolver/main resolver/preflight resolver/install resolver/configure resolver/tell resolver/apply
        resolver/on_the_way resolver/remove""",
    "roles/servers": """
        resolver/main resolver/preflight resolver/install resolver/configure resolver/tell resolver/apply
        resolver/turn resolver/on_the_way resolver/remove
        direct_server/main direct_server/preflight direct_server/configure direct_server/verify direct_server/remove""",
    "roles/stages": """
        layout/routers/wave layout/routers/prove layout/routers/together
        layout/routers/start layout/routers/stop layout/routers/migrate layout/migrate
        layout/unused agent/migrate_to_native agent/migrate_to_agent
        agent/remove""",
    "roles/static_pods": "layout/pods/static_pods layout/routers/start_pods layout/check_more",
    "roles/undo": "layout/present layout/undo/arm layout/undo/heartbeat",
    "roles/units": """
        layout/configure layout/openings layout/direct layout/direct_absent layout/units
        layout/follow_check layout/unused
        layout/routers/start_pods layout/check_more layout/pods/static_pods""",
}


def test_file(name: str) -> str:
    """Return the path of a test, such as tests/unit/roles/test_undo.py of roles/undo."""
    folder, _slash, stem = name.rpartition("/")
    return f"{UNIT}/{folder}/test_{stem}.py"


def table() -> Dict[str, List[str]]:
    """Return the table by the file of tasks or playbook."""
    found: Dict[str, List[str]] = {}
    for name, paths in ALSO_PLAYED.items():
        for path in paths.split():
            role, _slash, file = path.partition("/")
            full = f"{path}.yml" if role in ("playbooks", "roles") else f"roles/{role}/tasks/{file}.yml"
            found.setdefault(full, []).append(test_file(name))
    return found


def tests_of(path: str) -> List[str]:
    """Return the tests that play a file of tasks or a playbook, as paths below the checkout; empty if none does."""
    own = test_file(path[: -len(".yml")])
    return [own] * (ROOT / own).exists() + table().get(path, [])


def mirrored() -> List[str]:
    """Return every file of tasks or handlers, and every playbook."""
    files = [*ROLES.glob("*/tasks/**/*.yml"), *ROLES.glob("*/handlers/*.yml"), *PLAYBOOKS.glob("**/*.yml")]
    return sorted(str(file.relative_to(ROOT)) for file in files if file.parent.name != "vars")
