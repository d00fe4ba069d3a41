# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The usual table, counter and refusal of an haproxy.cfg as `rate_limit` of a service. Pure."""

from __future__ import annotations

import re
from typing import Any, Collection, Dict, List, Optional, Sequence, Tuple

from ..._agent.config.schema import Faults, read
from ..model import values
from ..model.stick import RATE, RATE_LIMIT, name_of
from .sections import Line
from .servers import timed

TABLE = re.compile(r"stick-table type (ip|ipv6) size (\w+) expire (\w+) store http_req_rate\((\w+)\)")
TRACK = re.compile(r"http-request track-sc([012]) src")
REFUSE = re.compile(
    r"http-request deny deny_status 429 if \{ (?:sc_http_req_rate\(([012])\)|sc([012])_http_req_rate) gt (\d+) \}"
)
COUNTER = re.compile(r"\bsrc_\w+|\bsc\d?_\w+|\btrack-sc\d")


def limit(
    lines: Sequence[Line], name: str, hosts: Collection[str], taken: Collection[str]
) -> Tuple[Optional[Dict[str, Any]], List[Line]]:
    """Return the key, and the three lines that it says; None where they have to stay as they are.

    :param lines: of the frontend
    :param hosts: at which the service listens
    :param taken: the names of all sections
    """
    rules = [line for line in lines if line.keyword == "http-request"]
    tables = [line for line in lines if line.keyword == "stick-table"]
    mine = [*tables, *rules[:2]]  # another rule before them may have answered a request that they do not count
    if len(tables) != 1 or len(rules) < 2 or name_of(name, RATE) in taken:
        return None, []
    table, track, refuse = (
        pattern.fullmatch(" ".join(line.words)) for pattern, line in zip((TABLE, TRACK, REFUSE), mine)
    )
    if not table or not track or not refuse or track[1] != (refuse[1] or refuse[2]):
        return None, []
    kind, size, expire, period = table.groups()
    if any(COUNTER.search(line.text) for line in lines if line not in mine) or not _lasts(expire, period):
        return None, []
    found = {"requests": int(refuse[3]), "period": timed(period), "size": size}
    faults: Faults = []
    read(RATE_LIMIT, found, "rate_limit", faults)
    if faults or (kind == "ip" and any(":" in host for host in hosts)):
        return None, []
    return found, mine


def _lasts(expire: str, period: str) -> bool:
    """Return whether a client is known for as long as its requests count."""
    known, counted = (values.seconds(timed(each))[0] for each in (expire, period))
    return bool(known and counted and known >= counted)
