#!/bin/sh
# Runs inside a new host and prepares it like a user's machine: reachable over ssh as an ordinary user with
# sudo. Installs sshd, sudo and Python if the image lacks them, and starts the backend if PORTS is not empty.
# Environment: LAB_USER, LAB_KEY, PORTS, NAMES, NAME_SERVER, ROUTERS, ROUTERS6, OUTSIDE, KEEPALIVED; with SYSTEMD_OFFLINE=1 it
# prepares the container of a machine, which has yet to boot.
set -eu

install_missing() {
    command -v sshd >/dev/null && command -v sudo >/dev/null && command -v python3 >/dev/null && return
    if command -v apt-get >/dev/null; then
        export DEBIAN_FRONTEND=noninteractive
        apt-get -qq update
        apt-get -qq install --no-install-recommends openssh-server sudo python3 python3-apt iproute2 procps curl
    elif command -v dnf >/dev/null; then
        dnf -q -y install openssh-server sudo python3 iproute procps-ng
    elif command -v zypper >/dev/null; then
        zypper -q -n install openssh-server sudo python3 iproute2 procps
    else
        echo "this image lacks sshd, sudo or python3, and has no apt-get, dnf or zypper to install them" >&2
        exit 1
    fi
}

wait_for_systemd() {
    [ -z "${SYSTEMD_OFFLINE-}" ] || return 0
    tries=300
    until state=$(systemctl is-system-running 2>/dev/null) || [ "$state" = degraded ]; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || { echo "systemd is still '$state' after 60 s" >&2; exit 1; }
        sleep 0.2
    done
    [ "$state" = running ] || systemctl --failed --plain --no-legend
}

make_user() {
    id "$LAB_USER" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$LAB_USER"
    usermod --password '*' "$LAB_USER"
    home=$(getent passwd "$LAB_USER" | cut -d: -f6)
    install -d -m 0700 -o "$LAB_USER" "$home/.ssh"
    echo "$LAB_KEY" | install -m 0600 -o "$LAB_USER" /dev/stdin "$home/.ssh/authorized_keys"
    echo "$LAB_USER ALL=(ALL) NOPASSWD: ALL" | install -m 0440 /dev/stdin "/etc/sudoers.d/$LAB_USER"
}

keep_compiled_modules() {
    folder=$(python3 -c 'import site; print(site.getsitepackages()[0])')
    install -d "$folder" /var/cache/lab-modules
    echo 'import os; exec(open("/lab/module_cache.py").read(), {})' >"$folder/lab.pth"
}

start_services() {
    now=--now
    [ -z "${SYSTEMD_OFFLINE-}" ] || now=
    systemctl enable $now --quiet sshd.service 2>/dev/null || systemctl enable $now --quiet ssh.service
    [ -n "$PORTS" ] || return 0
    echo "PORTS=$PORTS" >/etc/lab-backend
    systemctl enable $now --quiet /lab/backend.service
}

start_routing() {
    [ -n "$ROUTERS$OUTSIDE" ] || return 0
    printf 'ROUTERS=%s\nROUTERS6=%s\nOUTSIDE=%s\n' "$ROUTERS" "$ROUTERS6" "$OUTSIDE" >/etc/lab-routing
    systemctl enable --now --quiet /lab/routing.service
    [ -n "$KEEPALIVED" ] || return 0
    echo "$KEEPALIVED" >/etc/keepalived/keepalived.conf
    systemctl enable --now --quiet keepalived.service
}

wait_for_systemd
start_routing
[ -z "$NAMES" ] || sh /lab/names.sh
install_missing >/dev/null
keep_compiled_modules
make_user
start_services
[ -z "${SYSTEMD_OFFLINE-}" ] || sh /lab/disk.sh
