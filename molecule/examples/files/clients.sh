#!/bin/sh
# Prints who answers each client: by its session, and by its address. The arguments: the VIP, the network's first part, the clients.
vip=$1 network=$2
shift 2
for client; do
    echo "session $client $(curl --silent --max-time 10 --header "X-Session: $client" "http://$vip:8080/")"
    echo "source $client $(curl --silent --max-time 10 --interface "$network$client" "http://$vip:389/")"
done
