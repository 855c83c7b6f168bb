/* Superblocks and areas to test with: of arrays as mdadm makes them, on members of 24 MiB. */
#pragma once

#include "engine/meta/decide.h"

#define SAMPLE_DEVICE_BYTES MIB(24)

/* Member `dev` of an array of `disks` members: role = dev, clean, all listed. */
void sample_super(struct super *super, int32_t level, uint32_t disks, uint32_t dev,
                  uint64_t events);
/* An area that goes with the superblock: everybody last in sync at its events. */
void sample_area(struct area *area, const struct super *super);
