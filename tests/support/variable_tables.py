# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of variables in the roles' READMEs, made from their argument specs."""

from __future__ import annotations

import functools
import json
import re
from typing import Any, Dict, Iterator, List

import yaml

from .paths import ROLES

HEADING = "## Variables\n"
# Ansible's markup, and what Markdown has for it.
MARKUP = (
    (r"[CVOE]\((?:onprem\.lb\.\w+#role:\w+:)?(.*?)\)", r"`\1`"),
    (r"P\(onprem\.lb\.(\w+)#role\)", r"[\1](../\1/README.md)"),
    (r"[PM]\((.*?)(?:#\w+)?\)", r"`\1`"),
    (r"B\((.*?)\)", r"**\1**"),
    (r"L\((.*?),\s*(.*?)\)", r"[\1](\2)"),
)


@functools.lru_cache(maxsize=None)
def options(role: str) -> Dict[str, Any]:
    """Return the variables of a role, as its argument specs describe them."""
    specs = yaml.safe_load((ROLES / role / "meta" / "argument_specs.yml").read_text())
    return specs["argument_specs"]["main"]["options"]


def section(role: str) -> str:
    """Return the section of a role's README that lists its variables."""
    head = ["| variable | default | meaning |", "|---|---|---|"]
    about = (
        f"`ansible-doc -t role onprem.lb.{role}` describes them in full, including the keys of lists and mappings.\n\n"
        "<!-- `make golden` writes this table from meta/argument_specs.yml. -->\n"
    )
    return "\n".join([HEADING, about, *head, *_rows(options(role)), ""])


def _rows(variables: Dict[str, Any]) -> Iterator[str]:
    for name, option in variables.items():
        meaning = markdown(first_sentence(option["description"])).replace("|", "\\|")
        yield f"| `{name}` | {_default(option)} | {meaning} |"


def _default(option: Dict[str, Any]) -> str:
    if option.get("required"):
        return "required"
    value = option.get("default", "")
    if value == "":
        return ""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def first_sentence(description: str | List[str]) -> str:
    """Return a description's first sentence, which ends at a full stop before a capital letter, or at the end."""
    text = description if isinstance(description, str) else description[0]
    return re.split(r"(?<=\.) (?=[A-Z])", " ".join(text.split()))[0]


def markdown(text: str) -> str:
    for pattern, replacement in MARKUP:
        text = re.sub(pattern, replacement, text)
    return text
