# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a user says of all pods: their images, by the grammar of the registries, and Kubernetes' own words."""

from __future__ import annotations

import re
from typing import Any

from ..._agent.config.schema import Field, one_of
from .values import Checked, optional

COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
HOST = r"(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?"
IMAGE = re.compile(
    rf"(?:{HOST}/)?{COMPONENT}(?:/{COMPONENT})*(?::\w[\w.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}}|@sha512:[0-9a-f]{{128}})?",
    re.ASCII,
)
NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")  # RFC 1123's label


def image(value: Any) -> Checked:
    """The name of an image, as the OCI distribution specification and its digests have it."""
    if isinstance(value, str) and IMAGE.fullmatch(value):
        return value, None
    return None, (
        "the name of an image is required, such as registry.example/haproxy:3.0: its path in lower case, and behind @ "
        "a whole digest."
    )


def namespace(value: Any) -> Checked:
    """A namespace of Kubernetes."""
    if isinstance(value, str) and NAMESPACE.fullmatch(value):
        return value, None
    return None, "the name of a namespace is required: lower-case letters, digits and -, 63 characters at most."


AGENT, OTHER = Field(image, required=True), Field(optional(image), "")
OTHERS = ("haproxy_image", "keepalived_image", "follow_image")  # that of the agent by default
OPTIONS = {
    "agent_image": AGENT,
    **dict.fromkeys(OTHERS, OTHER),
    "namespace": Field(namespace, "kube-system"),
    "pull_policy": Field(one_of("Always", "IfNotPresent", "Never"), "IfNotPresent"),
}
