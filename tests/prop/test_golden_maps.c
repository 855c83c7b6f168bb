/* Maps, parity and recovery against member images made by the kernel's md.
 *
 * Takes the sets from tests/golden/sets (or $SR5_GOLDEN), what it needs to know from their
 * MANIFEST.txt: superblocks are somebody else's test.  SR5_GOLDEN_ALL=1 takes the large ones, too.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "engine/base/endian.h"

#include "layouts/parity.h"
#include "tests/prop/plan_exec.h"
#include "tests/unit/suite.h"

#define PIECE KIB(64)

struct set {
    char dir[512], tmp[512], sha256[65];
    bool pattern; /* the content is SR5P all over */
    uint64_t array_bytes;
    struct geometry geometry;
    struct exec exec;
    void *map[MEMBERS_MAX];
    size_t map_bytes[MEMBERS_MAX];
};

static const char *
golden_dir(void)
{
    const char *dir = getenv("SR5_GOLDEN");
    return dir != NULL ? dir : "tests/golden/sets";
}

/* Not for a map alone; or large to unpack, with a map that a small set has as well. */
static bool
left_out(const char *name)
{
    static const char *const words[] = {"dirty", "reshape", "badblocks"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strstr(name, words[i]) != NULL)
            return true;
    char path[1024];
    struct stat archive;
    snprintf(path, sizeof(path), "%s/%s/members.tar.xz", golden_dir(), name);
    bool large = stat(path, &archive) == 0 && archive.st_size > (off_t)KIB(100);
    return large && strstr(name, "unequal") == NULL && getenv("SR5_GOLDEN_ALL") == NULL;
}

/* "  m0.img BYTES SHA | dev=0 role=0 events=1 fm=0x0 do=2048 ds=14336 ..." */
static void
map_member(struct set *set, const char *line, uint64_t freshest)
{
    char file[32], path[1024];
    unsigned role;
    uint64_t bytes, events, flags, data_off, data_size;
    const char *facts = strchr(line, '|');
    if (facts == NULL || sscanf(line, " %31s %" SCNu64, file, &bytes) != 2 ||
        sscanf(facts,
               "| dev=%*u role=%u events=%" SCNu64 " fm=%" SCNx64 " do=%" SCNu64 " ds=%" SCNu64,
               &role, &events, &flags, &data_off, &data_size) != 5 ||
        role >= set->geometry.member_count || (flags & 0x10) != 0 || events + 1 < freshest)
        return; /* a spare, a replacement, a stale one */
    snprintf(path, sizeof(path), "%s/%s", set->tmp, file);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY);
    CU_ASSERT_FATAL(fd >= 0);
    set->map_bytes[role] = bytes;
    set->map[role] = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    CU_ASSERT_FATAL(set->map[role] != MAP_FAILED);
    set->exec.member[role] = (uint8_t *)set->map[role] + data_off * SECTOR_BYTES;
    set->geometry.role_bytes[role] = data_size * SECTOR_BYTES;
    set->exec.readable |= mask_of(role);
}

static void
read_manifest(struct set *set)
{
    char path[1024], line[4096], text[64];
    snprintf(path, sizeof(path), "%s/MANIFEST.txt", set->dir);
    FILE *file = fopen(path, "r");
    CU_ASSERT_FATAL(file != NULL);
    uint64_t freshest = 0;
    char members[16][512];
    unsigned member_count = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        uint64_t value;
        if (sscanf(line, "level: %63s", text) == 1)
            CU_ASSERT(level_parse(text, &set->geometry.level));
        if (sscanf(line, "raid_disks: %" SCNu64, &value) == 1)
            set->geometry.member_count = (uint32_t)value;
        if (sscanf(line, "layout: %" SCNx64, &value) == 1)
            set->geometry.layout = (uint32_t)value;
        if (sscanf(line, "chunk_bytes: %" SCNu64, &value) == 1)
            set->geometry.chunk_bytes = value;
        if (sscanf(line, "component_bytes: %" SCNu64, &value) == 1)
            set->geometry.member_bytes = value;
        if (sscanf(line, "array_bytes: %" SCNu64, &value) == 1)
            set->array_bytes = value;
        sscanf(line, "array_sha256: %64s", set->sha256);
        if (strcmp(line, "content: SR5P over the whole array\n") == 0)
            set->pattern = true;
        if (strncmp(line, "  m", 3) == 0 && member_count < 16) {
            snprintf(members[member_count++], sizeof(members[0]), "%.511s", line);
            const char *events = strstr(line, "events=");
            if (events != NULL && strstr(line, "role=spare") == NULL)
                freshest = MAX(freshest, strtoull(events + 7, NULL, 10));
        }
    }
    fclose(file);
    for (unsigned i = 0; i < member_count; i++)
        map_member(set, members[i], freshest);
}

static void
set_open(struct set *set, const char *name)
{
    *set = (struct set){0};
    snprintf(set->dir, sizeof(set->dir), "%s/%s", golden_dir(), name);
    snprintf(set->tmp, sizeof(set->tmp), "/tmp/sr5-golden-maps-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(set->tmp) != NULL);
    char command[2048];
    snprintf(command, sizeof(command), "tar xJf '%s/members.tar.xz' -C '%s'", set->dir, set->tmp);
    CU_ASSERT_FATAL(system(command) == 0);
    exec_init(&set->exec, &set->geometry); /* no members yet */
    set->exec.readable = 0;
    set->exec.poison = false; /* it would be most of the time */
    set->exec.member_max = UINT64_MAX / 2;
    read_manifest(set);
    CU_ASSERT_EQUAL_FATAL(geometry_init(&set->geometry, NULL), 0);
    CU_ASSERT_EQUAL(set->geometry.array_bytes, set->array_bytes);
}

static void
set_close(struct set *set)
{
    for (uint32_t role = 0; role < MEMBERS_MAX; role++) {
        set->exec.member[role] = NULL;
        if (set->map[role] != NULL)
            munmap(set->map[role], set->map_bytes[role]);
    }
    exec_destroy(&set->exec);
    char command[1024];
    snprintf(command, sizeof(command), "rm -rf '%s'", set->tmp);
    CU_ASSERT(system(command) == 0);
}

/* The content pattern (golden/README.md). */
static void
pattern_block(uint64_t n, uint8_t out[BLOCK_BYTES])
{
    uint64_t z = (n + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    z ^= z >> 31;
    for (uint64_t i = 0; i < BLOCK_BYTES / 8; i++) {
        uint64_t sector = i / (SECTOR_BYTES / 8);
        struct le64 word = le64_make((z & UINT64_C(0x00FFFFFFFFFFFFFF)) | sector << 56);
        memcpy(out + 8 * i, &word, 8);
    }
    struct le64 number = le64_make(n);
    memcpy(out, &number, 8);
}

static bool
is_pattern(const uint8_t *data, uint64_t off, uint64_t len)
{
    uint8_t block[BLOCK_BYTES];
    for (uint64_t at = 0; at < len; at += BLOCK_BYTES) {
        pattern_block((off + at) / BLOCK_BYTES, block);
        if (memcmp(data + at, block, MIN(len - at, BLOCK_BYTES)) != 0)
            return false;
    }
    return true;
}

/* Read with `kept` roles; feed `digest`, or compare with the pattern when there is none. */
static bool
read_set(struct set *set, uint64_t kept, uint64_t bytes, FILE *digest)
{
    static uint8_t data[PIECE];
    uint64_t readable = set->exec.readable;
    set->exec.readable = kept;
    bool good = true;
    for (uint64_t off = 0; good && off < bytes; off += PIECE) {
        uint64_t len = MIN(PIECE, bytes - off);
        good = exec_read(&set->exec, off, len, data) == 0 &&
               (digest != NULL ? fwrite(data, 1, len, digest) == len : is_pattern(data, off, len));
    }
    set->exec.readable = readable;
    return good;
}

/* The whole array, copy by copy through layout_places(). */
static bool
all_places_hold_the_pattern(const struct set *set)
{
    bool good = true;
    for (uint64_t off = 0; good && off < set->array_bytes; off += BLOCK_BYTES) {
        struct place places[MEMBERS_MAX];
        uint32_t count = layout_places(&set->geometry, off, places, ARRAY_LEN(places));
        for (uint32_t i = 0; i < count; i++)
            good = good && is_pattern(set->exec.member[places[i].role] + places[i].member_off_bytes,
                                      off, BLOCK_BYTES);
    }
    return good;
}

static bool
digest_agrees(struct set *set)
{
    char command[1024], path[600], got[65] = "";
    snprintf(path, sizeof(path), "%s/digest", set->tmp);
    snprintf(command, sizeof(command), "sha256sum > '%s'", path);
    FILE *digest = popen(command, "w");
    bool good = digest != NULL && read_set(set, set->exec.readable, set->array_bytes, digest);
    good = digest != NULL && pclose(digest) == 0 && good;
    FILE *file = fopen(path, "r");
    good = file != NULL && fscanf(file, "%64s", got) == 1 && good;
    if (file != NULL)
        fclose(file);
    return good && strcmp(got, set->sha256) == 0;
}

/* P and Q of every row as md wrote them. */
static bool
parity_is_mds(const struct set *set)
{
    const struct geometry *geometry = &set->geometry;
    static uint8_t sum[KIB(512)];
    for (uint64_t row = 0; row < geometry->row_count; row++) {
        struct row_roles roles;
        row_roles(geometry, row, &roles);
        const uint8_t *src[MEMBERS_MAX];
        uint8_t coef[2][MEMBERS_MAX];
        for (uint32_t i = 0; i < geometry->data_count; i++) {
            src[i] = set->exec.member[roles.data_role[i]] + row * geometry->chunk_bytes;
            coef[0][i] = 1;
            coef[1][i] = gf_pow2(roles.q_exponent[i]);
        }
        for (uint32_t parity = 0; parity < geometry->parity_count; parity++) {
            int32_t role = parity == 0 ? roles.p : roles.q;
            parity_sum(sum, src, coef[parity], geometry->data_count, geometry->chunk_bytes);
            if (memcmp(sum, set->exec.member[role] + row * geometry->chunk_bytes,
                       geometry->chunk_bytes) != 0)
                return false;
        }
    }
    return true;
}

static void
check_set(const char *name)
{
    struct set set;
    set_open(&set, name);
    uint64_t all = mask_below(set.geometry.member_count);
    bool whole = set.exec.readable == all;
    bool good = layout_enough(&set.geometry, set.exec.readable) && digest_agrees(&set);
    if (whole && set.pattern)
        good = good && all_places_hold_the_pattern(&set);
    if (whole && set.geometry.parity_count > 0)
        good = good && parity_is_mds(&set);
    /* with each tolerated loss; of the large sets the first MiBs will do */
    for (uint64_t kept = 0; whole && set.pattern && kept < all; kept++)
        if (layout_enough(&set.geometry, kept))
            good = good && read_set(&set, kept, MIN(set.array_bytes, MIB(3)), NULL);
    if (!good)
        printf("golden set %s\n", name);
    CU_ASSERT(good);
    set_close(&set);
}

static void
arrays_made_by_md_are_read_through_our_maps(void)
{
    struct dirent **entries;
    int count = scandir(golden_dir(), &entries, NULL, alphasort);
    unsigned checked = 0;
    for (int i = 0; i < count; i++) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/%s/MANIFEST.txt", golden_dir(), entries[i]->d_name);
        if (access(path, R_OK) == 0 && !left_out(entries[i]->d_name)) {
            check_set(entries[i]->d_name);
            checked++;
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    CU_ASSERT(count < 0 || checked > 0);
    printf("%u golden sets in %s%s\n", checked, golden_dir(), checked == 0 ? ": skipped" : "");
}

SUITE_MAIN("golden maps", T(arrays_made_by_md_are_read_through_our_maps))
