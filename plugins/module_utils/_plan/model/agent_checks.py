# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Health checks that HAProxy has a word for: the options of its backends, and agents beside the servers. Pure.

Such an agent is a program on the server that says in a line how much the server can take (HAProxy's `agent-check`).
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

from ..._agent.checks.settings import LDAP, MYSQL, PGSQL, REDIS, SMTP
from ..._agent.config.schema import Faults, Field, number, port, read
from ..._agent.proxy.settings import ASKING

AGENT = {
    "port": Field(port, required=True),
    "interval": Field(number(0.1, 3600, " seconds"), 2),
}
# The options of a backend by the type of its check. The word for MySQL's is what newer ones take as a matter of course.
OPTIONS = {
    MYSQL: "mysql-check user {user} post-41",
    PGSQL: "pgsql-check user {user}",
    REDIS: "redis-check",
    LDAP: "ldap-check",
    SMTP: "smtpchk EHLO {host}",
}


def completed(given: Any, place: str, faults: Faults) -> Optional[Dict[str, Any]]:
    """Return how often, and at which port, HAProxy asks the servers' agents; None where it does not."""
    found = None if given is None else read(AGENT, given, place, faults)
    return found if found and found["port"] else None


def option(check: Mapping[str, Any]) -> str:
    """Return the option of a backend that is checked in its own protocol, '' for others."""
    named = OPTIONS.get(check["type"], "")
    return named.format(user=check["user"], host=check["host"] or "localhost")


def asks(check: Mapping[str, Any]) -> bool:
    """Return whether a check asks for an answer, which a process that hangs does not give."""
    kinds = {step["type"] for step in check["steps"]} or {check["type"]}
    return not kinds.isdisjoint(ASKING)


def words(check: Mapping[str, Any]) -> List[str]:
    """Return what a server's line has for its agent."""
    agent = check["agent"]
    if not agent:
        return []
    return [f"agent-check agent-port {agent['port']} agent-inter {round(1000 * agent['interval'])}ms"]
