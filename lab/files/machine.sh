#!/bin/sh
# A host with a kernel of its own: what its container runs in place of systemd. Once disk.sh has made the disk, a machine boots from
# it, by emulation, with the hardware address of the container, which is a mere cable from then on. When the container ends,
# the power is cut; when it starts again, the machine boots from the disk as it is.
set -eu

until [ -e /machine/disk ]; do sleep 0.2; done
mac=$(cat /sys/class/net/eth0/address)
echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
ip address flush dev eth0
ip link set eth0 address "06${mac#02}"
ip link add cable type bridge mcast_snooping 0
ip tuntap add machine mode tap
for port in eth0 machine cable; do
    [ "$port" = cable ] || ip link set "$port" master cable
    ip link set "$port" up
done
exec qemu-system-x86_64 -accel tcg,tb-size=256 -cpu max -m 768 -display none -monitor none -serial stdio \
    -kernel /vmlinuz -initrd /initrd.img -append 'root=/dev/vda rw console=ttyS0 net.ifnames=0' \
    -drive file=/machine/disk,if=virtio,format=raw,cache=unsafe \
    -netdev tap,id=cable,ifname=machine,script=no,downscript=no -device "virtio-net-pci,netdev=cable,mac=$mac"
