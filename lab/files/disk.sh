#!/bin/sh
# Runs inside the container of a new machine, when host.sh has prepared it: makes the machine's disk of what the container has.
set -eu
tree=/mnt
mount --bind / "$tree" # without what podman has mounted over it

write_network() {
    echo 'auto lo eth0'
    echo 'iface lo inet loopback'
    for family in 4 6; do
        address=$(ip "-$family" -oneline address show dev eth0 scope global | awk '{print $4}')
        gateway=$(ip "-$family" route show default dev eth0 | awk '{print $3}')
        [ -n "$address" ] || continue
        echo "iface eth0 inet${family#4} static"
        echo "    address $address"
        [ -z "$gateway" ] || echo "    gateway $gateway"
    done
}

cp --recursive /lab "$tree"
for file in hostname hosts resolv.conf; do
    cp "/etc/$file" "$tree/etc/$file"
done
write_network >"$tree/etc/network/interfaces"
echo '/dev/vda / ext4 errors=remount-ro 0 1' >"$tree/etc/fstab"
# Who answers over ssh lets users in.
install -d "$tree/etc/systemd/system/ssh.service.d"
printf '[Unit]\nAfter=systemd-user-sessions.service\n' >"$tree/etc/systemd/system/ssh.service.d/lab.conf"
truncate --size=4G /machine/partial
mke2fs -q -t ext4 -d "$tree" /machine/partial
umount "$tree"
mv /machine/partial /machine/disk
