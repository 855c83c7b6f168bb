#include "engine/io/io_sim_image.h"

#include <string.h>

#define SECTORS_PER_PAGE (BLOCK_BYTES / SECTOR_BYTES)
#define VERSIONS_MAX     8u

struct sim_version {
    struct list_node node;
    uint64_t sequence;
    uint8_t sectors;
    bool zero; /* data is not used */
    uint8_t data[BLOCK_BYTES];
};

struct sim_page {
    struct hash_node hash;
    struct list_node all_node;
    struct list_node dirty_node;
    struct list versions; /* oldest first */
    uint32_t version_count;
    uint8_t bad; /* sectors that cannot be read */
    uint8_t durable[BLOCK_BYTES];
};

/* ---- pages ----------------------------------------------------------------------------------- */

int
sim_image_init(struct sim_image *image)
{
    *image = (struct sim_image){0};
    list_init(&image->all);
    list_init(&image->dirty);
    return hash_init(&image->pages, 4096);
}

static struct sim_page *
page_find(const struct sim_image *image, uint64_t page_index)
{
    struct hash_node *node = hash_find(&image->pages, page_index);
    return node == NULL ? NULL : CONTAINER_OF(node, struct sim_page, hash);
}

static struct sim_page *
page_get(struct sim_image *image, uint64_t page_index)
{
    struct sim_page *page = page_find(image, page_index);
    if (page != NULL)
        return page;
    page = calloc(1, sizeof(*page));
    check(page != NULL);
    list_init(&page->versions);
    list_push_back(&image->all, &page->all_node);
    hash_insert(&image->pages, &page->hash, page_index);
    return page;
}

static void
version_free(struct sim_page *page, struct sim_version *version)
{
    list_remove(&version->node);
    free(version);
    if (--page->version_count == 0)
        list_remove(&page->dirty_node);
}

static struct sim_version *
oldest_version(struct sim_page *page)
{
    struct list_node *node = list_first(&page->versions);
    return node == NULL ? NULL : CONTAINER_OF(node, struct sim_version, node);
}

void
sim_image_destroy(struct sim_image *image)
{
    if (image->pages.buckets == NULL)
        return;
    for (struct list_node *node; (node = list_pop_front(&image->all)) != NULL;) {
        struct sim_page *page = CONTAINER_OF(node, struct sim_page, all_node);
        for (struct sim_version *version; (version = oldest_version(page)) != NULL;)
            version_free(page, version);
        hash_remove(&image->pages, &page->hash);
        free(page);
    }
    hash_destroy(&image->pages);
    *image = (struct sim_image){0};
}

/* ---- sectors --------------------------------------------------------------------------------- */

static void
sector_set(struct sim_page *page, uint32_t sector, const uint8_t *data)
{
    uint8_t *to = page->durable + sector * SECTOR_BYTES;
    if (data == NULL)
        memset(to, 0, SECTOR_BYTES);
    else
        memcpy(to, data + sector * SECTOR_BYTES, SECTOR_BYTES);
    page->bad &= (uint8_t) ~(1u << sector);
}

static const uint8_t *
version_data(const struct sim_version *version)
{
    return version->zero ? NULL : version->data;
}

static void
version_commit(struct sim_page *page, struct sim_version *version)
{
    for (uint32_t s = 0; s < SECTORS_PER_PAGE; s++)
        if ((version->sectors >> s & 1) != 0)
            sector_set(page, s, version_data(version));
    version_free(page, version);
}

static void
page_commit(struct sim_page *page, uint64_t sequence)
{
    struct sim_version *version;
    while ((version = oldest_version(page)) != NULL && version->sequence <= sequence)
        version_commit(page, version);
}

/* The newest version of a sector; NULL: only the durable one. */
static const struct sim_version *
newest_version(const struct sim_page *page, uint32_t sector)
{
    for (struct list_node *n = page->versions.head.prev; n != &page->versions.head; n = n->prev) {
        const struct sim_version *version = CONTAINER_OF(n, struct sim_version, node);
        if ((version->sectors >> sector & 1) != 0)
            return version;
    }
    return NULL;
}

static int
sector_get(const struct sim_page *page, uint32_t sector, uint8_t *to)
{
    const struct sim_version *version = newest_version(page, sector);
    if (version == NULL && (page->bad >> sector & 1) != 0)
        return -EIO;
    if (version != NULL && version->zero)
        memset(to, 0, SECTOR_BYTES);
    else
        memcpy(to, (version == NULL ? page->durable : version->data) + sector * SECTOR_BYTES,
               SECTOR_BYTES);
    return 0;
}

int
sim_image_read(const struct sim_image *image, void *to, uint64_t off_bytes, uint64_t len_bytes)
{
    uint8_t *at = to;
    check_eq(off_bytes % SECTOR_BYTES + len_bytes % SECTOR_BYTES, 0);
    for (uint64_t done = 0; done < len_bytes;) {
        uint64_t off = off_bytes + done;
        uint64_t len = MIN(BLOCK_BYTES - off % BLOCK_BYTES, len_bytes - done);
        const struct sim_page *page = page_find(image, off / BLOCK_BYTES);
        if (page == NULL)
            memset(at + done, 0, len);
        for (uint64_t in = 0; page != NULL && in < len; in += SECTOR_BYTES) {
            uint32_t sector = (uint32_t)((off + in) % BLOCK_BYTES / SECTOR_BYTES);
            if (sector_get(page, sector, at + done + in) < 0)
                return -EIO;
        }
        done += len;
    }
    return 0;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Zeroes to where nothing ever was change nothing. */
static bool
is_void(const struct sim_image *image, const struct sim_patch *patch)
{
    return patch->sectors == 0 ||
           (patch->data == NULL && page_find(image, patch->page_index) == NULL);
}

void
sim_image_cache(struct sim_image *image, const struct sim_patch *patch)
{
    if (is_void(image, patch))
        return;
    struct sim_page *page = page_get(image, patch->page_index);
    if (page->version_count == VERSIONS_MAX)
        version_commit(page, oldest_version(page));
    struct sim_version *version = malloc(sizeof(*version));
    check(version != NULL);
    version->node = (struct list_node){0};
    version->sequence = ++image->sequence;
    version->sectors = patch->sectors;
    version->zero = patch->data == NULL;
    for (uint32_t s = 0; s < SECTORS_PER_PAGE && !version->zero; s++)
        if ((patch->sectors >> s & 1) != 0)
            memcpy(version->data + s * SECTOR_BYTES, patch->data + s * SECTOR_BYTES, SECTOR_BYTES);
    list_push_back(&page->versions, &version->node);
    if (page->version_count++ == 0)
        list_push_back(&image->dirty, &page->dirty_node);
}

void
sim_image_write_through(struct sim_image *image, const struct sim_patch *patch)
{
    if (is_void(image, patch))
        return;
    struct sim_page *page = page_get(image, patch->page_index);
    for (uint32_t s = 0; s < SECTORS_PER_PAGE; s++)
        if ((patch->sectors >> s & 1) != 0)
            sector_set(page, s, patch->data);
    list_for_each_safe (node, &page->versions) { /* older ones of these sectors are void */
        struct sim_version *version = CONTAINER_OF(node, struct sim_version, node);
        version->sectors &= (uint8_t)~patch->sectors;
        if (version->sectors == 0)
            version_free(page, version);
    }
}

void
sim_image_flush(struct sim_image *image, uint64_t sequence)
{
    list_for_each_safe (node, &image->dirty)
        page_commit(CONTAINER_OF(node, struct sim_page, dirty_node), sequence);
}

/* ---- the power cut --------------------------------------------------------------------------- */

enum cut_mode { CUT_ALL_LOST, CUT_ALL_KEPT, CUT_ANY, CUT_MOST_KEPT, CUT_MOST_LOST, CUT_MODES };

/* Of `count` versions: 0, none of them survives; else the nth. */
static uint32_t
choose(struct rng *rng, enum cut_mode mode, uint32_t count)
{
    uint32_t any = (uint32_t)rng_range(rng, 0, count);
    switch (mode) {
    case CUT_ALL_LOST:
        return 0;
    case CUT_ALL_KEPT:
        return count;
    case CUT_MOST_KEPT:
        return rng_chance(rng, 90) ? count : any;
    case CUT_MOST_LOST:
        return rng_chance(rng, 90) ? 0 : any;
    case CUT_ANY:
    case CUT_MODES:
        break;
    }
    return any;
}

static void
sector_cut(struct sim_page *page, uint32_t sector, struct rng *rng, enum cut_mode mode)
{
    uint32_t count = 0, nth = 0;
    list_for_each (node, &page->versions)
        count += CONTAINER_OF(node, struct sim_version, node)->sectors >> sector & 1;
    uint32_t keep = count == 0 ? 0 : choose(rng, mode, count);
    list_for_each (node, &page->versions) {
        const struct sim_version *version = CONTAINER_OF(node, struct sim_version, node);
        if ((version->sectors >> sector & 1) != 0 && ++nth == keep)
            sector_set(page, sector, version_data(version));
    }
}

void
sim_image_power_cut(struct sim_image *image, struct rng *rng)
{
    enum cut_mode mode = (enum cut_mode)rng_below(rng, CUT_MODES);
    list_for_each_safe (node, &image->dirty) {
        struct sim_page *page = CONTAINER_OF(node, struct sim_page, dirty_node);
        for (uint32_t s = 0; s < SECTORS_PER_PAGE; s++)
            sector_cut(page, s, rng, mode);
        for (struct sim_version *version; (version = oldest_version(page)) != NULL;)
            version_free(page, version);
    }
}

/* ---- damage ---------------------------------------------------------------------------------- */

void
sim_image_spoil(struct sim_image *image, uint64_t off_bytes, uint64_t len_bytes)
{
    uint64_t first = off_bytes / SECTOR_BYTES, end = div_ceil(off_bytes + len_bytes, SECTOR_BYTES);
    for (uint64_t s = first; s < end; s++) {
        struct sim_page *page = page_get(image, s / SECTORS_PER_PAGE);
        page_commit(page, UINT64_MAX);
        page->bad |= (uint8_t)(1u << s % SECTORS_PER_PAGE);
    }
}

void
sim_image_flip(struct sim_image *image, uint64_t off_bytes, uint64_t len_bytes)
{
    for (uint64_t off = off_bytes; off < off_bytes + len_bytes; off++) {
        struct sim_page *page = page_get(image, off / BLOCK_BYTES);
        page_commit(page, UINT64_MAX);
        page->durable[off % BLOCK_BYTES] ^= 0xff;
    }
}
