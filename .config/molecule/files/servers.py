"""Prints a line for each server of `masters` that this node's balancer has: its name, and how many sessions it has had.

servers.py native|agent [ADMIN_SOCKET]
"""

import csv
import json
import socket
import subprocess
import sys

HAPROXY = sys.argv[2] if len(sys.argv) > 2 else "/run/haproxy/admin.sock"
AGENT = ["python3", "/usr/local/lib/onprem-lb-follow/agent.pyz", "status", "--format", "json"]
PROXY = ["--socket", "/run/onprem-lb-proxy/status.sock"]


def of_haproxy():
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(HAPROXY)
        asked.sendall(b"show stat\n")
        rows = [row for row in csv.DictReader(asked.makefile()) if row["# pxname"] == "masters"]
    return [(row["svname"], row["stot"]) for row in rows if row["svname"] not in ("FRONTEND", "BACKEND")]


def of_agent():
    report = json.loads(subprocess.run([*AGENT, *PROXY], stdout=subprocess.PIPE, check=True).stdout)
    services = {service["name"]: service["servers"] for service in report["services"]}
    return [(server["name"], server["sessions"]) for server in services["masters"]]


for name, sessions in {"native": of_haproxy, "agent": of_agent}[sys.argv[1]]():
    print(name, sessions)
