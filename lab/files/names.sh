#!/bin/sh
# Runs inside a new host whose /etc/resolv.conf podman has not mounted, and lets it have its names as hosts do.
# Environment: NAMES, the way, and NAME_SERVER.
set -eu

case "$NAMES" in
    file)
        rm -f /etc/resolv.conf
        echo "nameserver $NAME_SERVER" >/etc/resolv.conf
        ;;
    systemd-resolved)
        mkdir -p /etc/systemd/resolved.conf.d
        printf '[Resolve]\nDNS=%s\n' "$NAME_SERVER" >/etc/systemd/resolved.conf.d/lab.conf
        systemctl enable --now --quiet systemd-resolved.service
        ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf
        ;;
    NetworkManager)
        rm -f /etc/resolv.conf
        # It takes the address that podman has set over, and sets it again after a reboot.
        address=$(ip -4 -oneline address show dev eth0 | awk '{print $4}')
        gateway=$(ip -4 route show default | awk '{print $3}')
        mkdir -p /etc/NetworkManager/system-connections
        (umask 077; cat >/etc/NetworkManager/system-connections/lab.nmconnection <<END
[connection]
id=lab
uuid=6c61622d-6e61-4d65-8d65-74682d657468
type=ethernet
interface-name=eth0
[ipv4]
method=manual
address1=$address,$gateway
dns=$NAME_SERVER
[ipv6]
method=ignore
END
        )
        # systemd-resolved, which is installed and does not run, brings a resolvconf, which NetworkManager would call.
        printf '[main]\nrc-manager=file\n' >/etc/NetworkManager/conf.d/10-lab.conf
        # On an ordinary host it manages a link that udev has initialized. No udev runs here, and it expects none where /sys cannot
        # be written.
        mkdir -p /etc/systemd/system/NetworkManager.service.d
        printf '[Service]\nReadOnlyPaths=/sys\n' >/etc/systemd/system/NetworkManager.service.d/lab.conf
        systemctl daemon-reload
        systemctl enable --now --quiet NetworkManager.service
        nm-online --wait-for-startup --quiet --timeout=30
        nmcli --wait 20 connection up lab >/dev/null
        ;;
    dhclient)
        rm -f /etc/resolv.conf
        # As after a lease: the test has a server that gives another one.
        echo "nameserver $NAME_SERVER" >/etc/resolv.conf
        ;;
    *)
        echo "names.sh knows no way $NAMES" >&2
        exit 1
        ;;
esac
