# Copyright (c) 2026 The onprem.lb authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Fake hosts for test_firewall: they print what ufw, nft and firewall-cmd print on Debian 12 and 13, and keep the
rules that they get."""

from __future__ import annotations

import copy
import json
import shlex

from ansible_collections.onprem.lb.plugins.module_utils._host.firewall import ruleset, ufw


class FakeHost:
    """A host without a firewall. Each subclass has one."""

    def __init__(self):
        self.files = {}
        self.calls = []

    def run(self, args, data=""):
        self.calls.append(" ".join(args))
        answer = getattr(self, "_" + args[0].replace("-", "_"), None)
        return answer(list(args[1:]), data) if answer else (127, "", f"{args[0]} is not installed")

    def read(self, path):
        return self.files.get(path)

    def write(self, path, content, mode):
        self.files[path] = content

    def remove(self, path):
        del self.files[path]

    def state(self):
        return copy.deepcopy({name: value for name, value in vars(self).items() if name != "calls"})


class FakeFirewalld(FakeHost):
    # firewalld 1.3.3 with eth0 in the zone internal. The administrator's rule is like ours, but has another priority.
    ADMIN = 'rule family="ipv4" source address="10.9.9.9" protocol value="vrrp" accept'

    def __init__(self):
        super().__init__()
        self.interface_zone = "internal"
        self.rules = {scope: {"internal": [self.ADMIN], "public": []} for scope in ("permanent", "runtime")}

    def _firewall_cmd(self, args, _data):
        scope = "permanent" if "--permanent" in args else "runtime"
        if args == ["--state"]:
            return 0, "running\n", ""
        if args == ["--get-default-zone"]:
            return 0, "public\n", ""
        if args[-1] == "--list-all-zones":
            return 0, "".join(self._zone(scope, zone) for zone in sorted(self.rules[scope])), ""
        zone = next(arg for arg in args if arg.startswith("--zone=")).partition("=")[2]
        for arg in args:
            option, _equals, rule = arg.partition("=")
            if option == "--add-rich-rule":
                assert rule not in self.rules[scope][zone]
                self.rules[scope][zone].append(rule)
            if option == "--remove-rich-rule":
                self.rules[scope][zone].remove(rule)
        return 0, "success\n", ""

    def _zone(self, scope, zone):
        interfaces = "eth0" if scope == "runtime" and zone == self.interface_zone else ""
        rules = "".join(f"\t{rule}\n" for rule in self.rules[scope][zone])
        active = " (active)" if interfaces else ""
        return (
            f"{zone}{active}\n  target: default\n  icmp-block-inversion: no\n  interfaces: {interfaces}\n"
            f"  services: dhcpv6-client ssh\n  ports: \n  icmp-blocks: \n  rich rules: \n{rules}\n"
        )


class FakeUfw(FakeHost):
    RULES = "*filter\n:ufw-before-input - [0:0]\n-A ufw-before-input -i lo -j ACCEPT\nCOMMIT\n"

    def __init__(self, version="0.36.2"):
        super().__init__()
        self.version = version
        self.files = {"/etc/default/ufw": "IPV6=yes\n"}
        self.files.update((path, "*nat\nCOMMIT\n" + self.RULES) for path, _chain in ufw.BLOCKS.values())
        self.rules = ["ufw allow 22/tcp", "ufw limit 2222/tcp comment 'mine'"]

    def _ufw(self, args, _data):
        if args == ["status"]:
            return 0, "Status: active\n\nTo                         Action      From\n", ""
        if args == ["version"]:
            return 0, f"ufw {self.version}\nCopyright 2008-2023 Canonical Ltd.\n", ""
        if args == ["show", "added"]:
            head = "Added user rules (see 'ufw status' for running firewall):\n"
            return 0, head + "\n".join(self.rules or ["(None)"]) + "\n", ""
        if args == ["reload"]:
            return 0, "Firewall reloaded\n", ""
        if args[0] == "delete":
            rule = shlex.join(["ufw", *args[1:]]) + " comment 'onprem.lb'"
            self.rules.remove(rule)
            return 0, "Rule deleted\n", ""
        if "vrrp" in args and self.version < "0.36.2":
            return 1, "", "ERROR: Unsupported protocol 'vrrp'\n"
        self.rules.append(shlex.join(["ufw", *args[:-1]]) + f" '{args[-1]}'")
        return 0, "Rule added\nRule added (v6)\n", ""


def match(left, right, op="=="):
    return {"match": {"op": op, "left": left, "right": right}}


DPORT = {"payload": {"protocol": "tcp", "field": "dport"}}
SADDR = {"payload": {"protocol": "ip", "field": "saddr"}}
STATE = {"ct": {"key": "state"}}
LO = match({"meta": {"key": "iifname"}}, "lo")


def saddr(text):
    address, slash, length = text.partition("/")
    return {"prefix": {"addr": address, "len": int(length)}} if slash else address


class FakeNft(FakeHost):
    """Tables as (family, name) -> chain -> (policy or None, rules), printed as nft 1.0.6 and 1.1.3 do."""

    def __init__(self, tables, service=True, vrrp="vrrp"):
        super().__init__()
        self.service, self.vrrp = service, vrrp
        self.handle = 100
        self.chains = {}
        for (family, table), chains in tables.items():
            for name, (policy, rules) in chains.items():
                self.chains[family, table, name] = (policy, [{"expr": expr} for expr in rules])
        for _policy, rules in self.chains.values():
            for rule in rules:
                rule["handle"] = self._next()

    def _next(self):
        self.handle += 1
        return self.handle

    def state(self):
        return copy.deepcopy((self.files, self.chains))

    def _systemctl(self, args, _data):
        return (0 if self.service or args == ["daemon-reload"] else 3), "", ""

    def _nft(self, args, data):
        if args[-1] == "ruleset":
            return 0, json.dumps({"nftables": list(self._items())}), ""
        for line in data.splitlines():
            verb, _rule, family, table, chain, *rest = shlex.split(line)
            rules = self.chains[family, table, chain][1]
            if verb == "insert":
                rules.insert(0, self._parse(rest))
            else:
                rules.remove(next(rule for rule in rules if rule["handle"] == int(rest[-1])))
        return 0, "", ""

    def _items(self):
        yield {"metainfo": {"version": "1.0.6", "release_name": "Lester Gooch #5", "json_schema_version": 1}}
        for (family, table, name), (policy, _rules) in self.chains.items():
            chain = {"family": family, "table": table, "name": name, "handle": 1}
            if policy:
                chain.update({"type": "filter", "hook": "input", "prio": 0, "policy": policy})
            yield {"chain": chain}
        for (family, table, name), (_policy, rules) in self.chains.items():
            for rule in rules:
                yield {"rule": {"family": family, "table": table, "chain": name, **rule}}

    def _parse(self, words):
        expr, rest = [], words
        if words[1] == "saddr":
            expr, rest = [match({"payload": {"protocol": words[0], "field": "saddr"}}, saddr(words[2]))], words[3:]
        vrrp = match({"meta": {"key": "l4proto"}}, self.vrrp)
        expr.append(
            vrrp if rest[0] == "meta" else match({"payload": {"protocol": rest[0], "field": "dport"}}, int(rest[2]))
        )
        return {"expr": [*expr, {"accept": None}], "comment": words[-1], "handle": self._next()}

    def show(self, family, table, chain):
        return [ruleset.opening_of(rule) or "theirs" for rule in self.chains[family, table, chain][1]]


INPUT = ("inet", "filter", "input")
BANNED = [match(SADDR, "@banned"), {"drop": None}]


def base(*rules, policy="drop", **chains):
    others = {name: (None, list(of)) for name, of in chains.items()}
    return FakeNft({("inet", "filter"): {"input": (policy, list(rules)), **others}})


def dropping(**options):
    rules = [[LO, {"accept": None}], BANNED, [match(DPORT, {"set": [22, 2222]}), {"accept": None}]]
    return FakeNft({("inet", "filter"): {"input": ("drop", rules)}}, **options)


def accepting(*rules, **chains):
    others = {name: (None, [rule]) for name, rule in chains.items()}
    return FakeNft({("inet", "filter"): {"input": ("accept", list(rules)), **others}})
