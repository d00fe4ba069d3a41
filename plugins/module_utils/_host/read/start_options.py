# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The options that /etc/default and /etc/sysconfig add to the start of haproxy and keepalived.

Those such as ``-L NAME`` stay in force. With another configuration the program would go on with that one, whatever
this collection writes. haproxy's unit of RedHat also loads a folder, next to the configuration.
"""

from __future__ import annotations

import glob
import re
from typing import Callable, Iterator, List, Tuple

FOLDERS = ("/etc/default", "/etc/sysconfig")  # of Debian and of RedHat
SETTING = re.compile(r"^\s*(?:export\s+)?(\w+)=(.*?)\s*$", re.MULTILINE)
CONFIG = "CONFIG"  # the variable with which haproxy's units name the configuration
BESIDE = "/etc/haproxy/conf.d"
FILE_OPTION = re.compile(r"(?:^|\s)(?:-f\s*|--use-file[=\s]\s*)([^\s\"']+)")


def files(program: str) -> List[str]:
    return [f"{folder}/{program}" for folder in FOLDERS]


def other_configs(text: str, config: str) -> Iterator[str]:
    """Yield the lines of such a file that make a program load another configuration.

    :param config: the path of the one that this collection writes
    """
    for found in SETTING.finditer(text):
        value = found[2].strip("\"'")
        files = [value] if found[1] == CONFIG else FILE_OPTION.findall(value)
        if any(file != config for file in files):
            yield found[0].strip()


def loaded(config: str, run: Callable[[List[str]], Tuple[int, str, str]]) -> List[str]:
    """Return the options with which haproxy loads a configuration, and what its unit loads next to that."""
    options = ["-f", config]
    if glob.glob(f"{BESIDE}/*.cfg"):
        environment = run(["systemctl", "show", "--property=Environment", "haproxy.service"])[1]
        options += ["-f", BESIDE] if f"={BESIDE}" in environment else []
    return options
