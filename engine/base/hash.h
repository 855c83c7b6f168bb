/* Intrusive hash table with a fixed number of buckets (a power of two), chosen at creation. */
#pragma once

#include "engine/base/list.h"

struct hash_node {
    struct hash_node *next;
    uint64_t key;
};

struct hash {
    struct hash_node **buckets;
    uint32_t bucket_count; /* power of two */
    uint32_t count;
};

/* 0 or -ENOMEM.  bucket_count is rounded up to a power of two. */
MUST_CHECK int hash_init(struct hash *hash, uint32_t bucket_count);
void hash_destroy(struct hash *hash); /* accepts a zeroed one; nodes are the caller's */
/* Keys need not be unique; find returns the newest. */
void hash_insert(struct hash *hash, struct hash_node *node, uint64_t key);
void hash_remove(struct hash *hash, struct hash_node *node);
struct hash_node *hash_find(const struct hash *hash, uint64_t key);
uint64_t hash_mix(uint64_t key); /* a good 64-bit mixer (splitmix64 finaliser) */
