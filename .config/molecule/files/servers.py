"""Prints a line for each server of a service in this node's balancer: its name, and how many sessions it has had."""

import argparse
import csv
import json
import os
import socket
import subprocess

AGENT = ["python3", "/usr/local/lib/onprem-lb-agent/agent.pyz", "status", "--format", "json"]
ADMIN_SOCKETS = ("/run/haproxy/admin.sock", "/var/lib/haproxy/stats")  # of Debian and of the RedHat family
PROXY = ["--socket", "/run/onprem-lb-proxy/status.sock"]


def of_haproxy(service, admin_socket):
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(admin_socket)
        asked.sendall(b"show stat\n")
        rows = [row for row in csv.DictReader(asked.makefile()) if row["# pxname"] == service]
    return [(row["svname"], row["stot"]) for row in rows if row["svname"] not in ("FRONTEND", "BACKEND")]


def of_agent(service, _admin_socket):
    report = json.loads(subprocess.run([*AGENT, *PROXY], stdout=subprocess.PIPE, check=True).stdout)
    services = {service["name"]: service["servers"] for service in report["services"]}
    return [(server["name"], server["sessions"]) for server in services[service]]


ENGINES = {"native": of_haproxy, "agent": of_agent}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("--service", default="masters")
    parser.add_argument("--admin-socket", default=next(filter(os.path.exists, ADMIN_SOCKETS), ""))
    args = parser.parse_args()
    for name, sessions in ENGINES[args.engine](args.service, args.admin_socket):
        print(name, sessions)
