# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Keeps the names of the cluster's nodes in the files that the host's resolver reads.

Every node has a name, whatever its labels are and whether it is ready or not. A node that changes its address alone
changes the files, too. They are never emptied.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, List, Optional

from ..runtime.loop import MILLION, Earliest, Loop
from . import files, nodes
from .changes import Refused
from .hosts import hosts, local, nameless, said
from .nodes import Node
from .settings import Hosts, Settings
from .watching import Changed, Listed, News, Removed

SETTLE = MILLION // 2  # from an event to what it changes: a storm of events is one change
RECHECK = 60 * MILLION  # somebody may have written the files, or their file system may be writable again


class Names:
    """Writes the files until ``stop``."""

    def __init__(self, loop: Loop, log: Any, settings: Settings, about: Hosts) -> None:
        self._loop, self._log, self._about, self._settings = loop, log, about, settings
        self._nodes: Dict[str, Node] = {}
        self._named: Dict[str, List[str]] = {}  # the last addresses of each
        self._writing = Earliest(loop, self._write)
        self.fault: Optional[str] = None

    def stop(self) -> None:
        self._writing.cancel()

    def take(self, news: News) -> None:
        """Take what is new of a node, whatever its labels are."""
        before = self._nodes
        if isinstance(news, Listed):
            self._nodes = {node.name: node for node in news.nodes}
        elif isinstance(news, Changed) and before.get(news.node.name) != news.node:  # most say only that it lives
            self._nodes = {**before, news.node.name: news.node}
        elif isinstance(news, Removed):
            self._nodes = {name: node for name, node in before.items() if name != news.name}
        if self._nodes is not before:
            self._writing.after(SETTLE)

    def report(self) -> Dict[str, Any]:
        return {"name": "names", "fault": self.fault}

    def _write(self) -> None:
        found = {name: nodes.addresses(node, self._settings.nodes) for name, node in self._nodes.items()}
        # A node that is there keeps its name although the API server has no address of it.
        self._named = {name: each or self._named.get(name, []) for name, each in found.items()}
        addressed = {name: addresses for name, addresses in self._named.items() if addresses}
        refused = nameless(addressed, self._about.domain, self._about.reserved)
        self._say(refused)
        named = {name: addresses for name, addresses in addressed.items() if name not in refused}
        why = f"a name below {self._about.domain}" if addressed else "an address"
        faults = self._write_files(named) if named else [f"no node has {why}."]
        self.fault = " ".join(faults) or None
        if self.fault:
            self._log.fault("names", f"The names of the nodes stay as they are: {self.fault}")
        else:
            self._log.cured("names", "The names of the nodes are written again.")
        self._writing.after(RECHECK)

    def _say(self, refused: Dict[str, str]) -> None:
        """Say which nodes get no name, once for as long as there are any."""
        if refused:
            self._log.fault("refused", said(refused))
        else:
            self._log.cured("refused", "The resolver gives every node its name.")

    def _write_files(self, named: Dict[str, List[str]]) -> List[str]:
        """Write each file, whatever is wrong with the other one; return what is."""
        about, faults = self._about, []
        texts = [
            (about.local, local(named, about.domain, about.reserved)),
            (about.file, hosts(named, about.domain, about.reserved)),  # the last one: its change reloads the resolver
        ]
        for path, text in texts:
            if path and _differs(path, text):
                try:
                    files.replace(path, text, lambda _path: None, mode=0o644)
                except Refused as refused:
                    faults.append(str(refused))
                else:
                    self._log.info(f"{path} has the names of {len(named)} node{'' if len(named) == 1 else 's'}.")
        return faults


def _differs(path: str, text: str) -> bool:
    with contextlib.suppress(Refused):
        return files.load(path) != text
    return True
