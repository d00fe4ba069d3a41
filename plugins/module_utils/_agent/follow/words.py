# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What goes wrong between ``follow`` and an API server, in sentences with the mend. Pure."""

from __future__ import annotations

from typing import Optional

from .settings import Api
from .watching import FORBIDDEN, UNAUTHORIZED, Failed, Interrupted, Refused, Silent, Trouble

NOT_FOUND = 404
KEPT = "The last list stays in force."


def sentence(trouble: Trouble, api: Api, expired: bool) -> str:
    """Return a failure in words.

    :param expired: whether the client's certificate has expired
    """
    url, outcome = api.servers[trouble.server], trouble.outcome
    if isinstance(outcome, Refused):
        return f"{_refused(url, outcome, api, expired)} {KEPT}"
    if isinstance(outcome, Failed):
        return f"{url}: {outcome.detail}. {KEPT}"
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


def no_servers(problem: Optional[str]) -> Optional[str]:
    """Return why a list is not taken."""
    return f"The last list stays in force: {problem}" if problem else None
