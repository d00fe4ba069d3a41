# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which certificates that haproxy serves, or would serve, have expired or soon will, and lists of revoked ones.

One that has expired is refused, unless haproxy serves it already, here or on another member: then the harm is done, and
a run that was refused could not mend anything else, nor replace a member. That is said instead. Where no record says
what haproxy has loaded, as of an older version or with a haproxy that somebody else has set up, what its present
configuration names counts as served.
"""

from __future__ import annotations

import datetime
import time
from typing import Any, Collection, Dict, Iterable, List, Mapping, Sequence

from ..._agent.config import certificates
from ..._shared.engines import CONFIGS, HAPROXY, NATIVE, UNITS
from ..._shared.load_records import Record, read_record, record_of
from ..._shared.paths import CERTIFICATES
from . import loaded_files

DAY = 86400
SOON, SOON_OF_LISTS = 14 * DAY, DAY  # the first as the alert has it
MEND, MEND_OF_CONTENT = "put a renewed one there on every member", "set a renewed one in the service's tls.content"
HAPROXY_CONFIG = CONFIGS[UNITS[NATIVE].balancer]


def refusals(paths: Iterable[str], served_elsewhere: Collection[str] = ()) -> Dict[str, str]:
    """Return why haproxy is not to be given a certificate, by its path. It follows "PATH is VALUE: ".

    :param served_elsewhere: the checksums of what other members serve
    """
    record = _record()
    expired = {path: at for path, at in _expire(paths).items() if at <= _now()}
    return {
        path: f"it expired on {_date(at)}, and {_refused(path, 'clients would refuse it')}: {MEND}."
        for path, at in expired.items()
        if not _is_served(path, record) and loaded_files.checksum(path) not in served_elsewhere
    }


def refusals_of_contents(contents: Sequence[Mapping[str, Any]]) -> Dict[str, str]:
    """Return the same of certificates whose text is in the inventory, whether their files are there or not.

    :param contents: ``{path, checksum, expires}`` of each
    """
    served_here = _record().others.values()
    return {
        each["path"]: f"it expired on {_date(each['expires'])}, and clients would refuse it: {MEND_OF_CONTENT}."
        for each in contents
        if each["expires"] <= _now() and each["checksum"] not in served_here
    }


def served() -> List[str]:
    """Return the checksums of what haproxy has loaded, certificates and other files."""
    record = _record()
    config = record.config or HAPROXY_CONFIG
    return sorted({*record.others.values()} or {*map(loaded_files.checksum, loaded_files.paths(HAPROXY, config))})


def of_host(services: Sequence[str], contents: Sequence[Mapping[str, Any]] = ()) -> List[str]:
    """Return a sentence for each certificate that has expired or expires soon.

    :param services: the paths of the services' certificates; those of haproxy's present configuration count, too
    :param contents: as `refusals_of_contents` takes them
    """
    config = _record().config or HAPROXY_CONFIG
    every = dict.fromkeys([*services, *loaded_files.certificates(loaded_files.text(config), config)])
    expire = {**_expire(every), **{each["path"]: each["expires"] for each in contents}}.items()
    return [_sentence(path, at) for path, at in expire if at - _now() < (SOON_OF_LISTS if _is_list(path) else SOON)]


def _sentence(path: str, at: int) -> str:
    mend, left = f"{MEND} and run this again, or reload haproxy", at - _now()
    if path.startswith(f"{CERTIFICATES}/"):
        mend = f"{MEND_OF_CONTENT}, and run this again"
    if left <= 0:
        return f"{path} expired on {_date(at)}, and {_refused(path, 'clients refuse it')}: {mend}."
    return f"{path} expires on {_date(at)}, in {left / DAY:.0f} days: {mend}."


def _refused(path: str, of_certificate: str) -> str:
    return "haproxy refuses every client's certificate" if _is_list(path) else of_certificate


def _is_list(path: str) -> bool:
    """Whether a file has lists of revoked certificates, which are renewed each day or week."""
    return certificates.next_update(loaded_files.text(path)) is not None


def _now() -> float:
    return time.time()


def _record() -> Record:
    return read_record(loaded_files.text(record_of(HAPROXY)))


def _is_served(path: str, record: Record) -> bool:
    if record.others:
        return record.others.get(path) == loaded_files.checksum(path)
    return path in loaded_files.paths(HAPROXY, record.config or HAPROXY_CONFIG)


def _expire(paths: Iterable[str]) -> Dict[str, int]:
    texts = {path: loaded_files.text(path) for path in paths}
    found = {path: certificates.next_update(text) or certificates.expires(text) for path, text in texts.items()}
    return {path: at for path, at in found.items() if at is not None}


def _date(at: int) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).date().isoformat()
