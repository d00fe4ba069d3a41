# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sentence names a variable as its user writes it, and everything else as an engineer does."""

from __future__ import annotations

import ast
import re

import pytest
import yaml
from support.paths import MODULES, PLAYBOOKS, ROLES

PLUGINS = MODULES.parent
NAME = re.compile(r"(?<![\w./%{<-])[a-z]+(?:_[a-z0-9]+)+(?![\w/(\[]|\.[a-z])")
SENTENCE = re.compile(r"\w \w+ \w+ \w")
# Those of other programs, and of what a sentence is not for its user.
OTHERS = {
    "haproxy": [
        "check_post",
        "deny_status",
        "sc_http_req_rate",
        "ssl_fc",
        "url_param",
        "use_backend",
        "use_domain_only",
    ],
    "keepalived": ["auth_type", "vrrp_instance", "vrrp_notify_fifo", "vrrp_sync_group"],
    "nft": ["inet_service"],
    "SELinux": ["haproxy_connect_any", "keepalived_connect_any"],
    "Prometheus": ["node_exporter"],
    "Ansible": [
        *("ansible_become_method", "ansible_become_user", "ansible_check_mode", "ansible_host"),
        *("ansible_python_interpreter", "ansible_user", "encrypt_string", "host_vars"),
    ],
    "a key in a file of the agent": ["state_file", "status_socket", "sync_groups"],
    "a key of what announces VIPs": ["hold_time", "local_address", "route_reflector", "ttl_security"],
    "a key in the prober's reply": ["interval_ms", "timeout_ms"],
    "a drill's event": ["disk_full"],
    "a role": ["direct_server"],
    "a pair's preset": ["openshift_upi"],
    "an example": ["pair_faults"],
}


def keys(node):
    """Yield all keys of nested dictionaries."""
    for key, value in node.items() if isinstance(node, dict) else ():
        yield from [key, *keys(value)]
    for value in node if isinstance(node, list) else ():
        yield from keys(value)


def values(node, key=""):
    """Yield the texts of a file in YAML that tasks say."""
    if isinstance(node, str) and re.fullmatch(r"msg|fail_msg|faults|__\w+_(mend|says|why\w*|step)", key):
        yield node
    if isinstance(node, list):
        node = dict(enumerate(node))
    for name, value in node.items() if isinstance(node, dict) else ():
        yield from values(value, key if isinstance(name, int) else str(name))


def known():
    """Return the names of variables, of the keys in their values, of plugins, and of modules' options."""
    found = {name for names in OTHERS.values() for name in names} | {file.stem for file in PLUGINS.glob("*/*.py")}
    for file in ROLES.glob("*/meta/argument_specs.yml"):
        found.update(map(str, keys(yaml.safe_load(file.read_text()))))
    for file in MODULES.glob("*.py"):
        options = re.search(r'DOCUMENTATION = r?"""(.*?)"""', file.read_text(), re.DOTALL)
        found.update(map(str, keys(yaml.safe_load(options[1]))))
    for file in PLAYBOOKS.glob("*.yml"):
        found.update(re.findall(r"(?:^#\s+(?=\w+  )|\b(?=\w+ \| default\())(\w+)", file.read_text(), re.MULTILINE))
    return found


def sentences(file):
    """Yield the texts of a file that may be shown; values are left out."""
    if file.suffix == ".yml":
        for text in values(yaml.safe_load(file.read_text())):
            yield from [*re.split(r"\{[{%].*?[}%]\}", text), *re.findall(r"'([^']*)'", text)]
        return
    tree = ast.parse(file.read_text())
    scopes = (ast.Module, ast.ClassDef, ast.FunctionDef)
    comments = {
        id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, scopes) and ast.get_docstring(node)
    }
    documentation = {id(node.value) for node in tree.body if isinstance(node, ast.Assign)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "{}".join(part.value for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in comments:
            yield node.value if id(node) not in documentation or "\n" not in node.value else ""


FILES = [
    *PLUGINS.rglob("*.py"),
    *ROLES.rglob("tasks/**/*.yml"),
    *ROLES.rglob("vars/**/*.yml"),
    *PLAYBOOKS.rglob("*.yml"),
]
# What a sentence to a user does not say, and what it says instead.
REPLACED = {
    r"\b(is|are) wanted\b": "is required",
    r"\bwhole path\b": "absolute path",
    r"\blast will\b": "resigns for a keepalived that was killed",
    r"\banew\b": "again, or a verb with re-",
    r"\ba text (is|of)\b": "a string",
    r"\bis no variable\b": "is not a variable",
    r"\ba fault of\b": "an error in, or a bug in",
}


@pytest.fixture(scope="module")
def names():
    return known()


@pytest.fixture(scope="module")
def said():
    """The sentences of each file, with its name."""
    return [(file.name, text) for file in FILES for text in sentences(file)]


def test_each_name_in_a_sentence_exists(names, said):
    unknown = {
        (file, name)
        for file, text in said
        if SENTENCE.search(text)
        for name in NAME.findall(text)
        if name not in names and not name.startswith("__")
    }
    assert unknown == set()
    assert len(names) > 200


@pytest.mark.parametrize("words, instead", REPLACED.items(), ids=REPLACED)
def test_no_sentence_has_words_of_no_engineer(words, instead, said):
    assert {(file, text) for file, text in said if re.search(words, text)} == set(), f"say: {instead}"


@pytest.mark.parametrize(
    "text, found",
    [
        ("Repeat the run, with a larger undo_after.", ["undo_after"]),
        ("set pair_adopt to true, or stop", ["pair_adopt"]),
        ("see /etc/node_exporter/x and some_file.yml", []),
    ],
)
def test_a_name_is_found_in_a_sentence(text, found):
    assert NAME.findall(text) == found
