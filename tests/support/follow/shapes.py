# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shapes of a kube-apiserver's answers about nodes, with all their keys: lists, watches, bookmarks, refusals."""

from __future__ import annotations

KIND = {"apiVersion": "v1"}
DETAILS = {"kind": "nodes"}
TOO_LARGE = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
UNKNOWN = dict.fromkeys(
    (
        *("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion"),
        *("kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture"),
    ),
    "",
)


def status(code, reason, message, details=None, **metadata):
    """Return a Status, as an answer or as the object of an ERROR."""
    about = {"status": "Failure", "message": message, "reason": reason}
    return {
        "kind": "Status",
        **KIND,
        "metadata": metadata,
        **about,
        **({"details": details} if details else {}),
        "code": code,
    }


def unauthorized():
    return status(401, "Unauthorized", "Unauthorized")


def forbidden(verb="list"):
    who = f'User "lb" cannot {verb} resource "nodes" in API group "" at the cluster scope'
    return status(403, "Forbidden", f"nodes is forbidden: {who}", DETAILS)


def expired(version, oldest):
    return status(410, "Expired", f"too old resource version: {version} ({oldest})")


def expired_page(page):
    return status(410, "Expired", "The provided continue parameter is too old to display a list", **{"continue": page})


def too_many_requests():
    return status(429, "TooManyRequests", "too many requests, please try again later", {"retryAfterSeconds": 1})


def too_large(version, current):
    details = {"causes": [TOO_LARGE], "retryAfterSeconds": 1}
    return status(504, "Timeout", f"Timeout: Too large resource version: {version}, current: {current}", details)


def a_list(version, items, page="", left=0):
    """Return a page of a list, whose items are without a kind."""
    rest = {"continue": page, "remainingItemCount": left} if page else {}
    bare = [{key: value for key, value in item.items() if key not in ("kind", "apiVersion")} for item in items]
    return {"kind": "NodeList", **KIND, "metadata": {"resourceVersion": str(version), **rest}, "items": bare}


def event(kind, node, version):
    metadata = {**node["metadata"], "resourceVersion": str(version)}
    return {"type": kind, "object": {**node, "kind": "Node", **KIND, "metadata": metadata}}


def bookmark(version):
    """Return one: a node of which nothing is said but the version."""
    metadata = {"resourceVersion": str(version), "creationTimestamp": None}
    empty = {"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}, "nodeInfo": UNKNOWN}
    return {"type": "BOOKMARK", "object": {"kind": "Node", **KIND, "metadata": metadata, "spec": {}, "status": empty}}


def error(about):
    return {"type": "ERROR", "object": about}
