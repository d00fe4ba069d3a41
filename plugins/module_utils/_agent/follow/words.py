# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What goes wrong between ``follow`` and an API server, in sentences with the mend. Pure."""

from __future__ import annotations

from typing import Mapping, Sequence

from .settings import Api
from .watching import FORBIDDEN, UNAUTHORIZED, Failed, Interrupted, Refused, Silent, Trouble

NOT_FOUND = 404
KEPT = "The last list stays in force."
MOST_NAMES = 5  # in a sentence
MENDED = {"list": "The servers are those of the list again.", "address": "Each node has an address."}


def sentence(trouble: Trouble, api: Api, expired: bool) -> str:
    """Return a failure in words.

    :param expired: whether the client's certificate has expired
    """
    url, outcome = api.servers[trouble.server], trouble.outcome
    if isinstance(outcome, Refused):
        return f"{_refused(url, outcome, api, expired)} {KEPT}"
    if isinstance(outcome, Failed):
        return f"{url}: {outcome.detail.rstrip('.')}. {KEPT}"
    if isinstance(outcome, Silent):
        return f"{url} has sent no line for {outcome.seconds:.0f} s, not even a bookmark: does it hang? {KEPT}"
    return f"{url} has ended the watch after {outcome.lasted:.0f} s. {KEPT}"


def interruption(news: Interrupted, api: Api) -> str:
    """Return in words that a watch has ended too early."""
    how = f" ({news.outcome.cut})" if news.outcome.cut else ""
    return (
        f"{api.servers[news.server]}: the watch has ended after {news.outcome.lasted:.0f} s{how}, and is resumed at "
        "once. If something between limits idle connections, let it allow 2 minutes. This is logged once an hour."
    )


def _refused(url: str, outcome: Refused, api: Api, expired: bool) -> str:
    detail = f": {outcome.detail.rstrip('.')}" if outcome.detail else ""
    if outcome.status == UNAUTHORIZED:
        return f"{url} does not accept the credentials (401): {_renewal(api, expired)}."
    if outcome.status == FORBIDDEN:
        return (
            f"{url} does not allow reading the nodes (403{detail}): allow this user to list and watch nodes, with a "
            "ClusterRole."
        )
    if outcome.status == NOT_FOUND:
        return f"{url} knows no nodes (404): is it the API server of a cluster? Correct api.servers."
    return f"{url} refuses ({outcome.status}{detail})."


def _renewal(api: Api, expired: bool) -> str:
    again = "it is read again for each request"
    if api.token:
        return f"renew the token in {api.token}; {again}"
    if api.certificate:
        return f"renew the certificate in {api.certificate}{', which has expired' if expired else ''}; {again}"
    return "set api.certificate or api.token"


def all_stay(why: str) -> str:
    return f"All servers stay: {why}"


def majority_stays(names: Sequence[str], leaving: int, count: int) -> str:
    """Return why nodes that are there stay servers although they would leave.

    :param leaving: the number of nodes that are not ready or taken off, those too that are no servers any more
    :param count: of the nodes that are there
    """
    return (
        f"{_some(names)} {'stays a server' if len(names) == 1 else 'stay servers'}: {leaving} of {count} nodes are "
        "not ready or taken off, and of more than half none is removed for that: see `kubectl get nodes`."
    )


def without_label(label: str) -> str:
    return f"its node does not have the label {label}: label it, or take it off with `onprem.lb/server=false`"


def not_at_its_address(internal: Sequence[str], fit: Sequence[str], answers: bool) -> str:
    """Return why a server stays at an address that the API server does not have.

    :param internal: what it has
    :param fit: those at which the node may be a server
    :param answers: whether the server may still answer
    """
    if not internal:
        return "the API has no address of its node: see the kubelet there, and --node-ip"
    if not fit:
        return f"no address of its node in the API can be a server's ({', '.join(internal)}): see --node-ip"
    if answers:
        return f"the API has its node at {fit[0]}, but no check says that the server is gone: that may be a VIP"
    return f"the API has its node at {fit[0]}, where another node is: see --node-ip"


def kept(server: Mapping[str, str]) -> str:
    """Return why a server stays although the API server does not say that it is one."""
    return f"{server['name']} stays a server at {server['address']}: {server['why']}."


def without_address(names: Sequence[str]) -> str:
    """Return which nodes are no servers for want of an address; '' if none is."""
    if not names:
        return ""
    return f"Nodes without an address of their own that can be a server's are not servers: {_some(names)}."


def _some(names: Sequence[str]) -> str:
    return f"{', '.join(names[:MOST_NAMES])}{f' and {len(names) - MOST_NAMES} more' if len(names) > MOST_NAMES else ''}"
