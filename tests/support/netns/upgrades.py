# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An agent that runs from one file, as it is deployed, and is replaced by later versions of itself."""

from __future__ import annotations

import sys

from ansible_collections.onprem.lb.plugins.module_utils._host.deploy import archive as _archive

from support.netns.stages import ReloadableAgent
from support.paths import AGENT
from support.waiting import until


class ArchivedAgent(ReloadableAgent):
    @property
    def archive(self):
        return self.folder / "agent.pyz"

    def prepare(self):
        super().prepare()
        self.install("1.0.0")

    def install(self, version="", content=b"", change=lambda modules: None):
        """Replace the archive atomically; the running process keeps its own.

        :param change: of the modules' texts
        """
        modules = _archive.sources(str(AGENT))
        change(modules)
        modules["__init__.py"] += f'VERSION = "{version}"\n'.encode()
        new = self.archive.with_suffix(".new")
        new.write_bytes(content or _archive.pack(modules))
        new.rename(self.archive)

    def command(self):
        return [sys.executable, "-I", str(self.archive), "vrrp", "--config", str(self.folder / "agent.json")]


def archived_agent(stage, *instances, **others):
    """Start an ArchivedAgent on the first member."""
    agent = ArchivedAgent(stage.link.lb1, stage.folder / "archived", list(instances))
    stage.agents.append(agent)
    if others:
        agent.write(**others)
    return stage.start(agent)


def upgrade_repeatedly(agent, times):
    """Upgrade to several versions, one after the other. Each serves for a while."""
    pids, before = [agent.process.pid], agent.instance()["state"]
    for number in range(1, times + 1):
        version = f"0.1.{number}"
        agent.install(version)
        agent.upgrade()
        until(lambda: agent.instance()["state"] in ("Active", "Backup"), agent.log)
        assert (agent.report()["version"], agent.report()["config_fault"]) == (version, None)
        pids.append(agent.process.pid)
        until(lambda: agent.instance()["state"] == before, agent.log)
    assert len(set(pids)) == times + 1
    return agent


def persistent_state(agent):
    """Return the part of the status that must survive an upgrade."""
    front = agent.instance()
    kept = ("state", "priority", "waiting_for", "held", "source")
    return {key: front[key] for key in kept}
