# shellcheck shell=bash
# Inside the guest: the kernel's md takes over the arrays of /run/scratch/arrays/NAME/m*.img, as sr5 left them.
#
#   md_job.sh NAME...
# Of those that sr5 failed, arrays/NAME/failed has the number; arrays/NAME/fail names members that md is to fail (m0 ...).
# arrays/NAME/sha256 is what the array holds.  md leaves what it wrote in the members, and the digest of that in
# arrays/NAME/sha256.md.  What metadata says is compared on the host, where that is quick.

echo 1000000 >/proc/sys/dev/raid/speed_limit_min # in memory: as quick as it can

digest() { sha256sum <"$1" | cut -d' ' -f1; }

detail() { mdadm --detail /dev/md0 | sed -n "s/^ *$1 : *//p"; }

# A resync of what sr5 never initialised has to be over before `check` means anything.
idle() {
    local action
    read -r action </sys/block/md0/md/sync_action
    [ "$action" = idle ]
}

scrub() {
    wait_for 60 idle || return
    echo check >/sys/block/md0/md/sync_action
    wait_for 60 idle || return
    same "$(cat /sys/block/md0/md/mismatch_cnt)" 0
}

write_by_md() { # at places that make every kind of stripe update
    local blocks
    blocks=$(($(blockdev --getsize64 /dev/md0) / 4096))
    for at in 17 $((blocks / 3)) $((blocks - 1)); do
        dd if=/dev/urandom of=/dev/md0 bs=4k count=1 seek=$at conv=notrunc status=none || return
    done
    dd if=/dev/urandom of=/dev/md0 bs=1M count=1 seek=1 conv=notrunc,fsync status=none
}

take_over() {
    local name=$1 from=/run/scratch/arrays/$1 loops=() member level number failed fail
    failed=$(cat "$from/failed")
    read -ra fail <"$from/fail" || true # no line end
    mkdir "/run/$name"
    for member in "$from"/m*.img; do
        cp --sparse=always "$member" "/run/$name/"
        loops+=("$(losetup --find --show "/run/$name/${member##*/}")")
    done
    check "$name: md assembles it, read-only" mdadm --assemble --readonly /dev/md0 "${loops[@]}"
    if [ -e /sys/block/md0/md/array_state ]; then
        check "$name: md reads the same" same "$(digest /dev/md0)" "$(cat "$from/sha256")"
        check "$name: all members are in use, but for those that failed" \
            same "$(detail 'Active Devices')" $((${#loops[@]} - failed))
        level=$(detail 'Raid Level')
        check "$name: it may be written to" mdadm --readwrite /dev/md0
        [ "$level" = raid0 ] || check "$name: md's check finds no mismatch" scrub
        for member in "${fail[@]}"; do
            number=${member#m}
            check "$name: md fails $member" mdadm /dev/md0 --fail "${loops[number]}"
        done
        check "$name: md writes to it" write_by_md
        echo 3 >/proc/sys/vm/drop_caches
        digest /dev/md0 >"$from/sha256.md"
        check "$name: md stops it cleanly" mdadm --stop /dev/md0
    fi
    for member in "${loops[@]}"; do
        losetup --detach "$member"
    done
    cp --sparse=always "/run/$name"/m*.img "$from/"
    rm -r "/run/$name"
}

for name in "$@"; do
    take_over "$name"
done
verdict md
