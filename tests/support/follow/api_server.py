# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for a Kubernetes API server, as far as a client of nodes sees it.

It has TLS, tokens and client certificates, label selectors, lists in pages, and watches with bookmarks and expired
versions. A test changes its nodes and makes it fail; `shapes` has what it answers. The official Python client is held
against it, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import ssl
import threading

from aiohttp import web

from support.follow import shapes

TOKEN = "a-token"
REFUSALS = {403: shapes.forbidden, 429: shapes.too_many_requests}


class ApiServer:
    """Serves in a thread, inside ``with``. Methods may be called by any thread; each returns when it is done."""

    def __init__(self, certificate, clients=None) -> None:
        """
        :param certificate: a Certificate of 127.0.0.1
        :param clients: a Certificate that a client may have instead of a token
        """
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificate.file, certificate.key)
        if clients:
            self._tls.verify_mode = ssl.CERT_OPTIONAL
            self._tls.load_verify_locations(clients.file)
        self.tokens = {TOKEN}
        self.requests = []  # the queries of all that it has answered
        self.refusing = []  # answers of the next requests: a status, and headers
        self.piece = 0  # bytes that it sends at a time, slowly; 0: all at once
        self.expired_as_status = False  # 410 instead of an ERROR in a watch
        self.frozen = False  # accepts watches, and sends nothing on any, as a process that hangs does
        self.idle_limit = None  # seconds without a line after which a balancer in between cuts a watch
        self.waits_for_versions = False  # watches from a version that it has not reached, instead of 504
        self._nodes, self._version, self._history, self._oldest = {}, 100, [], 0
        self._watches, self._snapshots = [], {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}"

    def __enter__(self):
        self._thread.start()
        self._call(self._open())
        return self

    def __exit__(self, *_fault) -> None:
        self.away()
        self._call(self._end_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    # -- what happens in the cluster

    def put(self, *nodes) -> None:
        """Add nodes, or change them."""
        self._call(self._put(nodes))

    def remove(self, name) -> None:
        self._call(self._remove(name))

    def bookmark(self) -> None:
        """Tell all watches that allow it how far they are, after a change that none of them sees."""
        self._call(self._bookmark())

    def expire(self) -> None:
        """Forget all changes, as etcd does by and by, and end each page of a list."""
        self._call(self._expire())

    def snapshot(self):
        return copy.deepcopy((self._nodes, self._version))

    def restore(self, snapshot) -> None:
        """Restore etcd from a snapshot: the versions go back, and the API servers begin anew."""
        self._call(self._restore(snapshot))

    # -- how it fails

    def away(self) -> None:
        """Go away: open connections are cut, new ones are refused."""
        self._call(self._runner.cleanup())

    def back(self) -> None:
        self._call(self._open())

    def cut(self) -> None:
        """Cut the connections of all watches in the midst of them."""
        self._call(self._each(lambda watch: watch.abort()))

    def say(self, line) -> None:
        """Send a line of the test's own to all watches."""
        self._call(self._each(lambda watch: watch.lines.put_nowait(line)))

    def end_watches(self) -> None:
        self._call(self._each(lambda watch: watch.lines.put_nowait(None)))

    @property
    def watches(self) -> int:
        return len(self._watches)

    def lists(self):
        return [query for query in self.requests if "watch" not in query]

    # -- inside

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _open(self) -> None:
        application = web.Application()
        application.router.add_get("/api/v1/nodes", self._answer)
        self._runner = web.AppRunner(application, shutdown_timeout=0.05)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._tls)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _end_tasks(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _put(self, nodes) -> None:
        for node in nodes:
            node, name = copy.deepcopy(node), node["metadata"]["name"]
            self._version += 1
            node["metadata"]["resourceVersion"] = str(self._version)
            before, self._nodes[name] = self._nodes.get(name), node
            self._record(before, node)

    async def _remove(self, name) -> None:
        self._version += 1
        self._record(self._nodes.pop(name), None)

    async def _bookmark(self) -> None:
        self._version += 1
        for watch in self._watches:
            watch.bookmark(self._version)

    async def _expire(self) -> None:
        self._version += 1
        self._history, self._oldest, self._snapshots = [], self._version, {}

    async def _restore(self, snapshot) -> None:
        self._nodes, self._version = copy.deepcopy(snapshot)
        self._history, self._oldest, self._snapshots = [], 0, {}
        await self._each(lambda watch: watch.abort())

    async def _each(self, do) -> None:
        for watch in list(self._watches):
            do(watch)

    def _record(self, before, after) -> None:
        change = (self._version, before, after)
        self._history.append(change)
        for watch in self._watches:
            watch.tell(*change)

    async def _answer(self, request):
        query = dict(request.query)
        self.requests.append(query)
        if self.refusing:
            status, headers = self.refusing.pop(0)
            known = REFUSALS.get(status, lambda: shapes.status(status, "Unknown", "as the test wants it"))
            return _answer(known(), status, headers)
        if not self._knows(request):
            return _answer(shapes.unauthorized())
        return await (self._watch(request, query) if query.get("watch") in ("1", "true", "True") else self._list(query))

    def _knows(self, request) -> bool:
        _word, _space, token = request.headers.get("Authorization", "").partition(" ")
        return token in self.tokens or bool(request.transport.get_extra_info("peercert"))

    async def _list(self, query):
        token, limit = query.get("continue"), int(query.get("limit", 0))
        if token and token not in self._snapshots:
            return _answer(shapes.expired_page(f"{self._version}-0"))
        version, items = self._snapshots.pop(token) if token else (self._version, self._selected(query))
        page, rest = (items[:limit], items[limit:]) if limit else (items, [])
        following = f"{version}-{len(rest)}" if rest else ""
        if rest:
            self._snapshots[following] = (version, rest)
        return web.json_response(shapes.a_list(version, page, following, len(rest)))

    def _selected(self, query):
        return [node for _name, node in sorted(self._nodes.items()) if selects(query.get("labelSelector", ""), node)]

    async def _watch(self, request, query):
        since = int(query.get("resourceVersion") or 0)
        if since > self._version and not self.waits_for_versions:
            return _answer(shapes.too_large(since, self._version))
        if since < self._oldest and self.expired_as_status:
            return _answer(shapes.expired(since, self._oldest))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        watch = Watch(request, query)
        if since == 0:
            for node in self._selected(query):
                watch.tell(self._version, None, node)
        elif since < self._oldest:
            watch.lines.put_nowait(shapes.error(shapes.expired(since, self._oldest)))
            watch.lines.put_nowait(None)
        for change in self._history:
            if 0 < since < change[0]:
                watch.tell(*change)
        self._watches.append(watch)
        try:
            await watch.send(response, self, float(query.get("timeoutSeconds", 1800)))
        finally:
            self._watches.remove(watch)
        return response


class Watch:
    """One watch: what it still has to send. None ends it."""

    def __init__(self, request, query) -> None:
        self.lines = asyncio.Queue()
        self._request, self._selector = request, query.get("labelSelector", "")
        self._since = int(query.get("resourceVersion") or 0)
        self._bookmarks = query.get("allowWatchBookmarks") in ("1", "true", "True")

    def tell(self, version, before, after) -> None:
        """Send a change as this watch sees it: a node that loses the label is deleted."""
        was, there = (bool(node) and selects(self._selector, node) for node in (before, after))
        if (was or there) and version > self._since:
            kind = "DELETED" if not there else "MODIFIED" if was else "ADDED"
            self.lines.put_nowait(shapes.event(kind, copy.deepcopy(after or before), version))

    def bookmark(self, version) -> None:
        if self._bookmarks and version > self._since:
            self.lines.put_nowait(shapes.bookmark(version))

    def abort(self) -> None:
        self._request.transport.abort()

    async def send(self, response, server, seconds) -> None:
        """Send until it is at its end.

        :param server: says how
        """
        with contextlib.suppress(ConnectionError):
            while True:
                try:
                    line = await asyncio.wait_for(self.lines.get(), server.idle_limit or seconds)
                except asyncio.TimeoutError:
                    line = None
                    if server.idle_limit:
                        self.abort()
                        return
                while server.frozen and self._request.transport:
                    await asyncio.sleep(0.01)
                if line is None:
                    await response.write_eof()
                    return
                data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
                for at in range(0, len(data), server.piece or len(data)):
                    await response.write(data[at : at + (server.piece or len(data))])
                    await asyncio.sleep(0.002 if server.piece else 0)


def selects(selector, node) -> bool:
    """Whether a label selector, of equalities, selects a node."""
    labels = node["metadata"].get("labels", {})
    return all(_matches(term.strip(), labels) for term in selector.split(",") if term.strip())


def _matches(term, labels) -> bool:
    if "!=" in term:
        key, _sign, value = term.partition("!=")
        return labels.get(key) != value
    if "=" in term:
        key, _sign, value = term.partition("=")
        return labels.get(key) == value.lstrip("=")
    return term[1:] not in labels if term.startswith("!") else term in labels


def _answer(status, code=None, headers=None):
    return web.json_response(status, status=code or status["code"], headers=headers)
