#!/bin/sh
# A system of its own with systemd as its first process: unshare --mount --pid --net --uts --ipc --cgroup --fork container.sh
# SCRATCH RXO UNIT. Its files are those of the machine, and what it writes is in memory; it has no units but rxo's.
set -e
scratch=$1 rxo=$2 unit=$3

mount --make-rprivate /
mount -t tmpfs none "$scratch"
mkdir "$scratch/upper" "$scratch/work" "$scratch/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work" "$scratch/root"
root=$scratch/root

for folder in run tmp var/tmp var/log etc/systemd/system; do
    mkdir -p "$root/$folder"
    mount -t tmpfs none "$root/$folder"
done
printf '[Unit]\nDescription=Nothing but what is asked for\n' > "$root/etc/systemd/system/rxo-test.target"
cp "$unit" "$root/etc/systemd/system/"
cp "$rxo" "$root/usr/bin/rxo"
mkdir -p "$root/etc/rxo"

mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 none "$root/sys/fs/cgroup"
mount -t tmpfs none "$root/dev"
mkdir "$root/dev/net" "$root/dev/pts" "$root/dev/shm"
for device in null zero full random urandom tty net/tun; do
    : > "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"

mkdir -p "$root/old"
cd "$root"
pivot_root . old
umount -l /old

ip link set lo up
ip link add eth1 type veth peer name far
ip address add 10.9.0.1/24 dev eth1
ip link set eth1 up
ip link set far up

export container=rxo
exec /lib/systemd/systemd --system --unit=rxo-test.target --log-target=console --show-status=no
