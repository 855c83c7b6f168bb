#include "tests/unit/golden.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/check.h"

static const char *
golden_root(void)
{
    static const char *const places[] = {"tests/golden/sets", "tests/golden"};
    const char *asked = getenv("SR5_GOLDEN");
    if (asked != NULL)
        return asked;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        char probe[256];
        snprintf(probe, sizeof(probe), "%s/raid5x4/MANIFEST.txt", places[i]);
        if (access(probe, R_OK) == 0)
            return places[i];
    }
    return NULL;
}

static int
is_set(const struct dirent *entry)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s/MANIFEST.txt", golden_root(), entry->d_name);
    return entry->d_name[0] != '.' && access(path, R_OK) == 0;
}

bool
golden_names(char ***names, uint32_t *count)
{
    struct dirent **entries = NULL;
    *count = 0;
    if (golden_root() == NULL)
        return false;
    int found = scandir(golden_root(), &entries, is_set, alphasort);
    if (found <= 0)
        return false;
    *names = calloc((size_t)found, sizeof(**names));
    check(*names != NULL);
    for (int i = 0; i < found; i++) {
        (*names)[(*count)++] = strdup(entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return true;
}

void
golden_names_free(char **names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static bool
read_member(const char *line, const char *folder, struct golden_member *m)
{
    char file[32], role[16], resync[32];
    int fields =
        sscanf(line,
               " %31s %" SCNu64 " %*s | dev=%" SCNu32 " role=%15s events=%" SCNu64 " fm=0x%" SCNx32
               " do=%" SCNu64 " ds=%" SCNu64 " resync=%31s rec=%" SCNu64,
               file, &m->bytes, &m->dev_number, role, &m->events, &m->features,
               &m->data_offset_sectors, &m->data_sectors, resync, &m->recovery_offset_sectors);
    if (fields != 10)
        return false;
    snprintf(m->path, sizeof(m->path), "%s/%s", folder, file);
    m->role = strcmp(role, "spare") == 0 ? -1 : strcmp(role, "journal") == 0 ? -2 : atoi(role);
    m->resync_offset_sectors = strcmp(resync, "MAX") == 0 ? UINT64_MAX : strtoull(resync, NULL, 10);
    return true;
}

static void
read_line(const char *line, const char *folder, struct golden *g)
{
    char level[16];
    if (sscanf(line, "level: raid%15s", level) == 1)
        g->level = (uint32_t)atoi(level);
    (void)sscanf(line, "raid_disks: %" SCNu32, &g->raid_disks);
    (void)sscanf(line, "layout: 0x%" SCNx32, &g->layout);
    (void)sscanf(line, "chunk_bytes: %" SCNu64, &g->chunk_bytes);
    (void)sscanf(line, "component_bytes: %" SCNu64, &g->component_bytes);
    (void)sscanf(line, "array_bytes: %" SCNu64, &g->array_bytes);
    if (g->member_count < GOLDEN_MEMBERS_MAX &&
        read_member(line, folder, &g->members[g->member_count]))
        g->member_count++;
}

bool
golden_unpack(const char *name, const char *folder, struct golden *golden)
{
    char path[512], line[8192], command[1024];
    memset(golden, 0, sizeof(*golden));
    snprintf(golden->name, sizeof(golden->name), "%s", name);
    snprintf(path, sizeof(path), "%s/%s/MANIFEST.txt", golden_root(), name);
    FILE *manifest = fopen(path, "r");
    if (manifest == NULL)
        return false;
    while (fgets(line, sizeof(line), manifest) != NULL && strstr(line, "mdadm --examine") == NULL)
        read_line(line, folder, golden);
    fclose(manifest);
    snprintf(command, sizeof(command), "tar xJf %s/%s/members.tar.xz -C %s", golden_root(), name,
             folder);
    return golden->member_count > 0 && system(command) == 0;
}
