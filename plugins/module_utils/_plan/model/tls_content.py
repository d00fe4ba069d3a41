# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Certificates whose text is in the inventory: which file of a host each gets, and what may be said of it. Pure, but
that OpenSSL judges them.

The name of a file has the checksum of its text. So a renewed one never takes the place of one that is in use, and each
saved state finds its own. The text goes to the file alone: a service names the path.
"""

from __future__ import annotations

import hashlib
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

from ..._agent.config import certificates
from ..._agent.config.schema import place_of
from ..._shared import pem
from ..._shared.paths import CERTIFICATES
from .values import Checked

DIGITS = 16  # of the checksum
MODE = "0600"
PARTS = "a certificate, its chain and its private key"


def contents(value: Any) -> Checked:
    """The text of a certificate, or a list of such texts."""
    texts = value if isinstance(value, list) else [value]
    for at, text in enumerate(texts):
        wrong = _wrong(text)
        if wrong:
            return None, wrong if len(texts) == 1 else f"in text {at + 1} of {len(texts)}, {wrong}"
    found = [_normal(text) for text in texts]
    if len({*found}) < len(found):
        return None, "a certificate is there twice: give each once."
    return found, None


def _wrong(text: Any) -> str:
    if not isinstance(text, str):
        return f"the text of {PARTS} is required (PEM)."
    if not _encodes(text):
        return "there is a character that no file can have: give PEM."
    return pem.wrong(text) or ""


def _encodes(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _normal(text: str) -> str:
    return f"{text.strip()}\n"


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def path_of(name: str, text: str) -> str:
    """Return the file of a certificate that a service of this name shows."""
    return f"{CERTIFICATES}/{name}-{_checksum(text)[:DIGITS]}.pem"


def taken(services: Sequence[Mapping[str, Any]]) -> Tuple[List[Dict[str, Any]], Dict[str, str]]:
    """Return services without the texts, and these by the paths of their files."""
    texts = {path_of(each["name"], text): text for each in services if each["tls"] for text in each["tls"]["content"]}
    bare = [{**each, "tls": {**each["tls"], "content": []}} if each["tls"] else {**each} for each in services]
    return bare, texts


def files(texts: Mapping[str, str]) -> List[Dict[str, Any]]:
    """Return the files as `config_files` takes them, whose differences nobody sees."""
    return [{"path": path, "content": text, "mode": MODE, "diff": False} for path, text in texts.items()]


def renewed_elsewhere(services: Iterable[Mapping[str, Any]]) -> List[str]:
    """Return the files and folders of certificates that services name, but for those that a run alone writes."""
    tls = [service["tls"] for service in services if service.get("tls")]
    named = [path for each in tls for path in (*each["certificate"], each["ca"], each["crl"]) if path]
    return [path for path in dict.fromkeys(named) if not path.startswith(f"{CERTIFICATES}/")]


def secrets(texts: Mapping[str, str]) -> List[str]:
    """Return what nobody may see of the texts, line by line: a log may have them in one line."""
    lines = [line.strip() for text in texts.values() for line in text.splitlines()]
    return sorted({line for line in lines if line and not line.startswith(pem.BORDER)})


def to_read(services: Any) -> Any:
    """Return services as the user wrote them, whatever they are, with what a host is to know of each text in its place:
    its path, its checksum, and when it expires.
    """
    if not isinstance(services, list):
        return services
    return [_to_read(service) if _has_content(service) else service for service in services]


def paths(services: Any) -> List[str]:
    """Return the files of the texts in services that `to_read` has returned."""
    own = services if isinstance(services, list) else []
    return [each["path"] for service in own if _has_content(service) for each in service["tls"]["content"]]


def _has_content(service: Any) -> bool:
    tls = service.get("tls") if isinstance(service, dict) else None
    return isinstance(tls, dict) and "content" in tls


def _to_read(service: Dict[str, Any]) -> Dict[str, Any]:
    found = [
        {"path": path_of(str(service.get("name")), text), "checksum": _checksum(text), "expires": expires}
        for text in _texts(service)
        for expires in [certificates.expires(text)]
        if expires is not None
    ]
    return {**service, "tls": {**service["tls"], "content": found}}


def _texts(service: Mapping[str, Any]) -> List[str]:
    given = service["tls"]["content"]
    return [_normal(text) for text in (given if isinstance(given, list) else [given]) if isinstance(text, str)]


def expired(services: Any, place: str, now: float) -> Iterator[str]:
    """Yield a sentence for each text that has expired, for a forecast, which reads no host."""
    for at, service in enumerate(services if isinstance(services, list) else []):
        for text in _texts(service) if _has_content(service) else []:
            if (certificates.expires(text) or now) < now:
                yield f"{place_of(place, at, service)}.tls.content has expired: set a renewed one, or a run refuses it."
