# shellcheck shell=bash
# Inside the guest: the kernel's NBD client on sr5d, as people use it.
#
#   nbd_job.sh BUILD        where sr5d and sr5 are
# A RAID 5 on tmpfs, /dev/nbd0 on it, a partition table, ext4, a tree of files, a member that fails
# meanwhile, fsck; everything is there after a restart, too.
build=$1
tree=/usr/include/linux
export SR5_CONTROL=/run/control.sock

serve() {
    "$build/sr5d" --foreground --socket /run/nbd.sock --control $SR5_CONTROL --members '/run/m?.img' \
        >>/run/sr5d.log 2>&1 &
    daemon=$!
    wait_for 20 test -S /run/nbd.sock &&
        wait_for 20 nbdinfo --size 'nbd+unix:///r5?socket=/run/nbd.sock'
}

stop() { # SIGTERM with a clean end, within seconds
    local before=$SECONDS
    kill "$daemon"
    wait "$daemon" || { echo "sr5d: exit code $?"; tail -n 20 /run/sr5d.log; return 1; }
    [ $((SECONDS - before)) -lt 15 ] && [ ! -e /run/nbd.sock ]
}

connect() {
    nbd-client -unix /run/nbd.sock /dev/nbd0 -N r5 -C 2 && wait_for 5 test -b /dev/nbd0
}

partition() {
    sfdisk --quiet /dev/nbd0 <<END && wait_for 5 test -b /dev/nbd0p2
label: gpt
size=24MiB
size=4MiB
END
}

state() {
    "$build/sr5" status r5 --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["arrays"][0]["state"])'
}

check "sr5 creates a RAID 5" "$build/sr5" create r5 --level 5 --size-each 16M /run/m{0,1,2,3}.img
check "sr5d serves it" serve
check "nbd-client connects" connect
check "the kernel knows its size" same "$(blockdev --getsize64 /dev/nbd0)" \
    "$(nbdinfo --size 'nbd+unix:///r5?socket=/run/nbd.sock')"
check "it may flush" grep -q 'write back' /sys/block/nbd0/queue/write_cache
check "it may use FUA" grep -q 1 /sys/block/nbd0/queue/fua
check "sfdisk makes two partitions" partition
check "mkfs.ext4" mkfs.ext4 -q /dev/nbd0p1
mkdir /run/mnt
check "mount" mount /dev/nbd0p1 /run/mnt
check "a tree is copied in" cp -r "$tree" /run/mnt/first
sync
check "a member fails" "$build/sr5" fail r5 2 --confirm r5
check "a second tree is copied in, degraded" cp -r "$tree" /run/mnt/second
check "fstrim" fstrim /run/mnt
check "umount" umount /run/mnt
check "fsck finds nothing" e2fsck -fn /dev/nbd0p1
echo 3 >/proc/sys/vm/drop_caches
check "mount again" mount -o ro /dev/nbd0p1 /run/mnt
check "the first tree is the same" diff -r "$tree" /run/mnt/first
check "the second tree is the same" diff -r "$tree" /run/mnt/second
check "umount again" umount /run/mnt
check "what was written is zeroed by blkdiscard -z" blkdiscard -z /dev/nbd0p2
check "and reads as zeroes" cmp -n $((4 << 20)) /dev/zero /dev/nbd0p2
check "the array is degraded" same "$(state)" degraded
check "nbd-client disconnects" nbd-client -d /dev/nbd0
check "sr5d ends on SIGTERM" stop
check "sr5d serves it again" serve
check "nbd-client connects again" connect
check "partitions are found" wait_for 10 test -b /dev/nbd0p1
check "mount after the restart" mount -o ro /dev/nbd0p1 /run/mnt
check "both trees are there" diff -r /run/mnt/first /run/mnt/second
check "umount after the restart" umount /run/mnt
check "nbd-client disconnects again" nbd-client -d /dev/nbd0
check "sr5d ends on SIGTERM again" stop
verdict nbd
