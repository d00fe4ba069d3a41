#!/bin/sh
# Restarts a container, and waits until it runs anew. `podman restart` fails in podman 4.3, if it is the only one of its pod.
process() { podman container inspect --format '{{.State.Pid}}' "$1"; }
before=$(process "$1")
podman kill --signal TERM "$1"
for _each in $(seq 100); do
    now=$(process "$1")
    [ "$now" != 0 ] && [ "$now" != "$before" ] && exit 0
    sleep 0.1
done
echo "$1 does not run again after 10 s." >&2
exit 1
