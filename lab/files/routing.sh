#!/bin/sh
# Runs at each boot of a host in a lab with routers.
# Environment: ROUTERS and ROUTERS6, which are a host's way out, and OUTSIDE, a router's interface that leads out of the lab.
set -eu

route_over() {
    family=$1
    shift
    hops=""
    for router; do
        hops="$hops nexthop via $router"
    done
    # shellcheck disable=SC2086
    [ -z "$hops" ] || ip "$family" route replace default $hops
}

# What leaves the lab has the router's own address, so that the answer finds the way.
masquerade() {
    nft -f - <<END
table inet lab
delete table inet lab
table inet lab {
    chain postrouting {
        type nat hook postrouting priority srcnat
        oifname "$1" masquerade
    }
}
END
}

# shellcheck disable=SC2086
route_over -4 $ROUTERS
# shellcheck disable=SC2086
route_over -6 $ROUTERS6
[ -z "$OUTSIDE" ] || masquerade "$OUTSIDE"
