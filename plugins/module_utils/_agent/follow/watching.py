# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Lists and watches, as Kubernetes defines them for its clients. Pure: ``(state, outcome) -> (news, next request)``.

A list, in pages, says which nodes there are and at which resourceVersion. A watch from there on says what changes;
its bookmarks, one a minute, say how far it is and that it lives. One without a line for two of them is dead, whatever
its connection says: the next API server is asked for a list. A watch that ends early is resumed where it was, at once.
A new list is read every ten minutes, because a watch cannot tell that etcd was restored, and earlier if a
resourceVersion has expired (410) or the versions go back. A failure changes no list: it is tried at the next API
server, and after the last one with a back-off from the first one on.
"""

from __future__ import annotations

import math
import random
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple, Union

from . import nodes
from .nodes import Malformed, Node

PAGE = 50  # nodes; one of them may have tens of kilobytes
BOOKMARK = 60.0  # seconds between those of an API server
SILENT = 2 * BOOKMARK  # without a line for so long a watch is dead
LIST = 600.0  # seconds from a list to the next one; a watch lasts until then
RETRY = 60.0  # seconds from a list that fails to the next one, while a watch may go on
FLOOR = 1.0  # seconds from one watch to the next; one that ends earlier has failed
HOUR = 3600.0  # for which another API server comes first, if a watch of the first one was dead; between two log lines
FIRST_DELAY, LAST_DELAY = 1.0, 30.0  # seconds, of the back-off

UNAUTHORIZED, FORBIDDEN, GONE, GATEWAY_TIMEOUT = 401, 403, 410, 504


class PageRequest(NamedTuple):
    """Request: a page of the list."""

    server: int
    page: str = ""  # what the API server has returned with the last page


class WatchRequest(NamedTuple):
    """Request: the changes since a resourceVersion."""

    server: int
    version: str
    seconds: int = int(LIST)  # how long it is to last


class Wait(NamedTuple):
    """No request for some seconds."""

    seconds: float


Request = Union[PageRequest, WatchRequest, Wait]


class Page(NamedTuple):
    """Outcome: a page of the list."""

    items: List[Any]
    version: str
    page: str  # '' if it is the last one


class Ended(NamedTuple):
    """Outcome: a watch that was accepted has ended."""

    lasted: float  # seconds
    cut: str = ""  # by what, if the API server has not ended it itself


class Silent(NamedTuple):
    """Outcome: a watch that was accepted is dead, because it has had no line for too long."""

    seconds: float = SILENT


class Refused(NamedTuple):
    """Outcome: the API server has answered with another status than 200, or with an ERROR in a watch."""

    status: int
    detail: str = ""
    retry_after: float = 0.0  # seconds


class Failed(NamedTuple):
    """Outcome: there was no answer, or none that makes sense."""

    detail: str


class Waited(NamedTuple):
    """Outcome of a wait."""


Outcome = Union[Page, Ended, Silent, Refused, Failed, Waited]


class Listed(NamedTuple):
    """News: these are the nodes."""

    nodes: Tuple[Node, ...]


class Changed(NamedTuple):
    """News: this node is there, and it is so."""

    node: Node


class Removed(NamedTuple):
    """News: a node is gone."""

    name: str


class Connected(NamedTuple):
    """News: an API server answers."""

    server: int


class Trouble(NamedTuple):
    """News: a request has failed."""

    server: int
    outcome: Union[Ended, Silent, Refused, Failed]


class Interrupted(NamedTuple):
    """News, once an hour: a watch has ended too early, and is resumed at once."""

    server: int
    outcome: Ended


News = Union[Listed, Changed, Removed, Connected, Trouble, Interrupted]


class Unusable(Exception):
    """A line after which a watch must end."""

    def __init__(self, outcome: Union[Refused, Failed]) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class Watching:
    """The state of one client. Give it each outcome, and each line of a watch; it returns what follows."""

    def __init__(
        self,
        servers: int,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        :param chance: returns a number from 0 to 1, for the back-off
        :param clock: returns seconds
        """
        self._servers, self._chance, self._clock = servers, chance, clock
        self._version = ""  # where the next watch begins; '' if a list is needed
        self._listed: List[Node] = []  # of the pages so far
        self._list_due = -math.inf
        self._failures = 0  # since an API server has last been of use
        self._reread = False  # whether the credentials were read anew because of a 401
        self._relisted = False  # whether the last list was because a version was of no use
        self._preferred, self._preferred_until = 0, -math.inf  # the API server that is asked first
        self._silent: Set[int] = set()  # API servers of which no line has come since their watch was dead
        self._told: Dict[int, float] = {}  # when a watch of each was last said to end too early
        self._request: Request = PageRequest(0)

    @property
    def request(self) -> Request:
        """What to do now."""
        return self._request

    def after(self, outcome: Outcome) -> List[News]:
        """Return what is new after a request; ``request`` is the next one."""
        server = getattr(self._request, "server", 0)
        if isinstance(outcome, Page):
            return self._after_page(server, outcome)
        if isinstance(outcome, Waited):
            self._begin(self._first())
            return []
        if isinstance(outcome, Silent):
            return self._after_silence(server, outcome)
        if isinstance(outcome, Ended) and outcome.lasted >= FLOOR:
            return self._after_watch(server, outcome)
        if isinstance(outcome, Refused) and self._mends(outcome, server):
            return []
        return self._after_failure(server, outcome)

    def opened(self) -> List[News]:
        """Return what is new when a watch has been accepted, and with each bookmark: an API server answers."""
        server = getattr(self._request, "server", 0)
        return [] if server in self._silent else [Connected(server)]

    def line(self, document: Any) -> List[News]:
        """Return what is new in a line of a watch. Raises Unusable, after which the watch is to be closed."""
        kind, thing = (document.get("type"), document.get("object")) if isinstance(document, dict) else (None, None)
        if kind == "ERROR":
            raise Unusable(refusal(thing))
        version = nodes.version(thing)
        if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK") or not version:
            self._discard()
            raise Unusable(Failed("a line of the watch is not an event"))
        if _is_before(version, self._version):
            raise Unusable(Refused(GONE, "its versions have gone back"))
        node = self._node(thing) if kind != "BOOKMARK" else None
        was_silent = self._heard()
        self._version = version
        self._works()
        change: List[News] = [] if node is None else [Removed(node.name) if kind == "DELETED" else Changed(node)]
        return [*(self.opened() if was_silent or not change else []), *change]

    def _heard(self) -> bool:
        """Note that a line has come; return whether the watch before was dead."""
        server = getattr(self._request, "server", 0)
        was_silent = server in self._silent
        self._silent.discard(server)
        return was_silent

    def _node(self, thing: Any) -> Node:
        try:
            return nodes.read(thing)
        except Malformed as fault:
            self._discard()
            raise Unusable(Failed(f"the watch has {fault}")) from fault

    def _works(self) -> None:
        self._failures, self._reread, self._relisted = 0, False, False

    def _after_page(self, server: int, page: Page) -> List[News]:
        try:
            self._listed += [nodes.read(item) for item in page.items]
        except Malformed as fault:
            return self._after_failure(server, Failed(f"the list has {fault}"))
        if page.page:
            self._request = PageRequest(server, page.page)
            return []
        if not page.version:
            return self._after_failure(server, Failed("the list has no resourceVersion"))
        listed, self._listed = tuple(self._listed), []
        self._version, self._reread, self._list_due = page.version, False, self._clock() + LIST
        if not self._relisted:  # else it is of use only if the watch from there on is
            self._failures = 0
        self._begin(server)
        return [Listed(listed)]

    def _begin(self, server: int) -> None:
        """Go on at an API server: with the watch, or with a list if that is needed or due."""
        self._listed, left = [], self._list_due - self._clock()
        if self._version and left > FLOOR:
            self._request = WatchRequest(server, self._version, math.ceil(left))
            return
        self._list_due = self._clock() + RETRY
        self._request = PageRequest(server)

    def _first(self) -> int:
        return self._preferred if self._clock() < self._preferred_until else 0

    def _discard(self) -> None:
        """Forget a version that is of no use: a list is needed."""
        self._version, self._relisted = "", True

    def _after_watch(self, server: int, ended: Ended) -> List[News]:
        """Resume where it was. Where it ended too early, at the same API server: the first one may not answer."""
        wanted = getattr(self._request, "seconds", LIST)
        self._works()
        if not ended.cut and ended.lasted + FLOOR >= wanted:
            self._begin(self._first())
            return []
        self._begin(server)
        if self._clock() < self._told.get(server, -math.inf) + HOUR:
            return []
        self._told[server] = self._clock()
        return [Interrupted(server, ended)]

    def _after_silence(self, server: int, silent: Silent) -> List[News]:
        """Read a list from the next API server, which comes first for a while. What was not heard cannot be resumed."""
        self._preferred, self._preferred_until = (server + 1) % self._servers, self._clock() + HOUR
        self._list_due = -math.inf
        self._silent.add(server)
        self._begin(self._preferred)
        return [Trouble(server, silent)]

    def _mends(self, refused: Refused, server: int) -> bool:
        """Mend at once, and once only, what can be: a token that has rotated, a resourceVersion that has expired."""
        if refused.status == UNAUTHORIZED and not self._reread:
            self._reread = True
            return True
        # 504: this API server does not know a version yet that another one has returned.
        if refused.status in (GONE, GATEWAY_TIMEOUT) and not self._relisted:
            self._discard()
            self._begin(server)
            return True
        return False

    def _after_failure(self, server: int, outcome: Union[Ended, Refused, Failed]) -> List[News]:
        if isinstance(outcome, Refused) and outcome.status in (GONE, GATEWAY_TIMEOUT):
            self._discard()
        self._reread = False
        following = (server + 1) % self._servers
        if following != self._first():
            self._begin(following)
        else:
            self._failures += 1
            asked = outcome.retry_after if isinstance(outcome, Refused) else 0.0
            self._request = Wait(max(min(asked, LAST_DELAY), self._delay()))
        return [Trouble(server, outcome)]

    def _delay(self) -> float:
        """Return the seconds of the back-off, of which a part is by chance: many clients fail at the same moment."""
        longest = min(LAST_DELAY, FIRST_DELAY * 2.0 ** min(self._failures - 1, 16))
        return longest * (0.5 + 0.5 * self._chance())


def _is_before(version: str, known: str) -> bool:
    """Whether a version is older than another one: they are numbers that only grow, while etcd is the same."""
    return version.isdecimal() and known.isdecimal() and int(version) < int(known)


def refusal(status: Any, code: Optional[int] = None, retry_after: float = 0.0) -> Refused:
    """Return what a Status of the API says.

    :param code: of the answer that had it
    """
    found: Dict[str, Any] = status if isinstance(status, dict) else {}
    number, message = found.get("code"), found.get("message")
    known = number if isinstance(number, int) else 500
    return Refused(code or known, message if isinstance(message, str) else "", retry_after)


def page_of(document: Any) -> Union[Page, Failed]:
    """Return a page of a list from its JSON."""
    items = document.get("items") if isinstance(document, dict) else None
    metadata = document.get("metadata") if isinstance(document, dict) else None
    if items is None and isinstance(document, dict) and str(document.get("kind")) == "NodeList":
        items = []  # Go writes an empty list as null
    if not isinstance(items, list) or not isinstance(metadata, dict):
        return Failed("the answer is not a list of nodes")
    return Page(items, nodes.version(document), str(metadata.get("continue") or ""))
