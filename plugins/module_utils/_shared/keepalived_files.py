# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which files a keepalived.conf names that keepalived reads at its start and at a reload. Pure.

Scripts are run anew each time, and the files that it tracks are read when they change. What an included file names
itself is not known.
"""

from __future__ import annotations

import posixpath
import re
from typing import List

from .loaded_files import PATTERN, PLAIN, Named

INCLUDE = re.compile(r"^\s*include[a-z]?\s+([^\s#!]+)", re.MULTILINE)
SSL = re.compile(r"^\s*SSL\s*\{([^}]*)\}", re.MULTILINE)
OF_SSL = re.compile(r'^\s*(?:ca|certificate|keyfile)\s+"?([^\s"#!]+)', re.MULTILINE)


def named(text: str, path: str) -> List[Named]:
    """Return what a configuration names, once each, with absolute paths.

    :param path: the configuration's own
    """
    folder = posixpath.dirname(path)
    included = [Named(posixpath.join(folder, name), PATTERN) for name in INCLUDE.findall(text)]
    of_ssl = [Named(posixpath.join("/", name), PLAIN) for block in SSL.findall(text) for name in OF_SSL.findall(block)]
    return list(dict.fromkeys([*included, *of_ssl]))
