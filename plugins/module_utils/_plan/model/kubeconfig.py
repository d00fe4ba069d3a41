# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A kubeconfig: how to reach an API server, and with which credentials. Pure.

Its parts are those of client-go's ``api.Config``: the cluster and the user of the current context.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from typing import Any, Dict, NamedTuple, Optional, Tuple
from urllib.parse import urlsplit

from ..._agent.config.schema import Faults
from ..._agent.follow import config

# By the agent's name of a credential: where the kubeconfig has its path, where it embeds it, and whether as base64.
CA, CERTIFICATE, KEY, TOKEN = "ca", "certificate", "key", "token"
SECRETS = (KEY, TOKEN)
OF_CLUSTER = {CA: ("certificate-authority", "certificate-authority-data", True)}
OF_USER = {
    CERTIFICATE: ("client-certificate", "client-certificate-data", True),
    KEY: ("client-key", "client-key-data", True),
    TOKEN: ("tokenFile", "token", False),
}
INSTEAD = (
    "Have `kubectl create token` write a ServiceAccount's token to a file by a timer, and name it as tokenFile; or use "
    "a client certificate"
)
REFUSED = {
    "exec": f"no program is run for credentials. {INSTEAD}.",
    "auth-provider": f"no provider is asked for credentials. {INSTEAD}.",
    "username": f"an API server takes no password. {INSTEAD}.",
    "password": f"an API server takes no password. {INSTEAD}.",
    "as": f"requests are not made as another user. {INSTEAD}.",
}
REFUSED_OF_CLUSTER = {
    "insecure-skip-tls-verify": "an API server that is not verified could be anybody. Name its certificate-authority.",
    "proxy-url": "requests go to the API server itself. Name the URL of one that this host reaches.",
}
PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\s(.*?)-----END \1-----", re.DOTALL)  # RFC 7468
# The unit does not see them, or sees others: ProtectHome and PrivateTmp of systemd.exec(5).
HIDDEN = ("/root", "/home", "/run/user", "/tmp", "/var/tmp")


class Credentials(NamedTuple):
    """What a kubeconfig says.

    :ivar paths: of the files with credentials, by the agent's names
    :ivar embedded: the texts of the others
    """

    server: str
    server_name: str  # that the API servers' certificates are for
    paths: Dict[str, str]
    embedded: Dict[str, str]


def read(data: Any, path: str) -> Tuple[Optional[Credentials], Faults]:
    """Return the credentials of the current context, or what is wrong with them.

    :param data: the parsed kubeconfig
    :param path: where it lies: relative paths in it start in its folder
    """
    faults: Faults = []
    context = _entry(data, "contexts", "context", _text(data, "current-context"), faults)
    cluster = _entry(data, "clusters", "cluster", _text(context, "cluster"), faults) if not faults else {}
    user = _entry(data, "users", "user", _text(context, "user"), faults) if not faults else {}
    if faults:
        return None, [f"{path}: {faults[0]}"]
    url, paths, embedded = _text(cluster, "server"), {}, {}
    _url, wrong = config.api_url(url)
    faults += [f"server is wrong: {wrong}"] if wrong else []  # which may have a password
    for part, known, refused in ((cluster, OF_CLUSTER, REFUSED_OF_CLUSTER), (user, OF_USER, REFUSED)):
        faults += [f"{key} is set, and {why}" for key, why in refused.items() if part.get(key)]
        for name, (named, inside, encoded) in known.items():
            # As in client-go data wins over a path, and a token's file over a token.
            if part.get(inside) and not (name == TOKEN and part.get(named)):
                embedded[name] = _decoded(part[inside], encoded, inside, faults)
            elif part.get(named):
                paths[name] = _whole(str(part[named]), path, named, faults)
    faults += _incomplete({*paths, *embedded})
    if faults:
        return None, [f"{path}: {fault}" for fault in faults]
    return Credentials(url, _text(cluster, "tls-server-name") or urlsplit(url).hostname or "", paths, embedded), []


def _entry(data: Any, listed: str, key: str, name: str, faults: Faults) -> Dict[str, Any]:
    """Return the entry of a name in one of a kubeconfig's lists."""
    entries = data.get(listed) if isinstance(data, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(key), dict):
            return entry[key]
    faults.append(
        f"its {listed} lack the named one: a kubeconfig with a current-context, its cluster and its user is required."
    )
    return {}


def _text(part: Any, key: str) -> str:
    found = part.get(key) if isinstance(part, dict) else None
    return found if isinstance(found, str) else ""


def _decoded(value: Any, encoded: bool, key: str, faults: Faults) -> str:
    """Return a credential, if its reader can use it."""
    if not encoded:
        found = value.strip() if isinstance(value, str) else ""
        if not (found and found.isascii() and found.isprintable() and " " not in found):
            faults.append(f"{key} is no token: it is one word of ASCII. Write it again.")
        return found
    try:
        found = base64.b64decode("".join(str(value).split()), validate=True).decode()
        bodies = [base64.b64decode("".join(pem[2].split()), validate=True) for pem in PEM.finditer(found)]
    except (binascii.Error, ValueError):
        bodies = []
    if not any(bodies):
        faults.append(
            f"{key} is not base64-encoded PEM: write it again, for example with `kubectl config set-credentials`."
        )
        return ""
    return found


def _whole(value: str, path: str, key: str, faults: Faults) -> str:
    found = posixpath.normpath(posixpath.join(posixpath.dirname(path), value))
    if any(f"{found}/".startswith(f"{hidden}/") for hidden in HIDDEN):
        faults.append(f"{key} is {found}, which services do not see: copy it to /etc, or embed it.")
    return found


def _incomplete(known: Any) -> Faults:
    """Return what is missing for a request that an API server grants."""
    if CERTIFICATE in known and KEY not in known:
        return ["its user has a client-certificate and no client-key: add it."]
    if TOKEN in known and CERTIFICATE in known:
        return ["its user has a token and a client-certificate: leave one of them out."]
    if TOKEN not in known and CERTIFICATE not in known:
        return [f"its user has neither a token nor a client-certificate. {INSTEAD}."]
    return []
