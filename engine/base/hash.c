#include "engine/base/hash.h"

uint64_t
hash_mix(uint64_t key)
{
    key = (key ^ (key >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    key = (key ^ (key >> 27)) * UINT64_C(0x94d049bb133111eb);
    return key ^ (key >> 31);
}

static struct hash_node **
bucket_of(const struct hash *hash, uint64_t key)
{
    return &hash->buckets[hash_mix(key) & (hash->bucket_count - 1)];
}

int
hash_init(struct hash *hash, uint32_t bucket_count)
{
    check_le(bucket_count, UINT32_C(1) << 31);
    uint32_t rounded = 1;
    while (rounded < bucket_count)
        rounded <<= 1;
    *hash = (struct hash){.bucket_count = rounded};
    hash->buckets = calloc(rounded, sizeof(struct hash_node *));
    return hash->buckets != NULL ? 0 : -ENOMEM;
}

void
hash_destroy(struct hash *hash)
{
    free(hash->buckets);
    *hash = (struct hash){0};
}

void
hash_insert(struct hash *hash, struct hash_node *node, uint64_t key)
{
    struct hash_node **bucket = bucket_of(hash, key);
    node->key = key;
    node->next = *bucket;
    *bucket = node;
    hash->count++;
}

void
hash_remove(struct hash *hash, struct hash_node *node)
{
    struct hash_node **link = bucket_of(hash, node->key);
    while (*link != node) {
        check(*link != NULL); /* the node is in the table */
        link = &(*link)->next;
    }
    *link = node->next;
    node->next = NULL;
    hash->count--;
}

struct hash_node *
hash_find(const struct hash *hash, uint64_t key)
{
    struct hash_node *node = *bucket_of(hash, key);
    while (node != NULL && node->key != key)
        node = node->next;
    return node;
}
