#include "cli/specs.h"

#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/check.h"

#include "engine/io/member_dev.h"

bool
specs_have(const struct specs *specs, const char *spec)
{
    for (uint32_t i = 0; i < specs->count; i++)
        if (strcmp(specs->list[i], spec) == 0)
            return true;
    return false;
}

void
specs_add(struct specs *specs, const char *spec)
{
    if (specs_have(specs, spec))
        return;
    char **grown = realloc(specs->list, (specs->count + 2) * sizeof(*grown));
    char *copy = strdup(spec);
    check(grown != NULL && copy != NULL);
    specs->list = grown;
    specs->list[specs->count++] = copy;
    specs->list[specs->count] = NULL;
}

/* `path` behind the first prefix_len bytes of `text` (its fault: part). */
static void
add_behind(struct specs *specs, const char *text, size_t prefix_len, const char *path)
{
    char *spec;
    check(asprintf(&spec, "%.*s%s", (int)prefix_len, text, path) >= 0);
    specs_add(specs, spec);
    free(spec);
}

static int
visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void
add_folder(struct specs *specs, const char *text, size_t prefix_len, const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, visible, alphasort);
    int folder_len = (int)strlen(folder);
    while (folder_len > 1 && folder[folder_len - 1] == '/')
        folder_len--;
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        struct stat st;
        int len = snprintf(path, sizeof(path), "%.*s/%s", folder_len, folder, entries[i]->d_name);
        if (len > 0 && (size_t)len < sizeof(path) && stat(path, &st) == 0 &&
            (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)))
            add_behind(specs, text, prefix_len, path);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

void
specs_expand(struct specs *specs, const char *text)
{
    const char *path = member_spec_path(text);
    size_t prefix_len = (size_t)(path - text);
    struct stat st;
    glob_t found = {0};
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        add_folder(specs, text, prefix_len, path);
    } else if (strpbrk(path, "*?[") == NULL || access(path, F_OK) == 0) {
        specs_add(specs, text);
    } else if (glob(path, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            add_behind(specs, text, prefix_len, found.gl_pathv[i]);
    }
    globfree(&found);
}

char *
specs_absolute(const char *spec)
{
    const char *path = member_spec_path(spec);
    int prefix_len = (int)(path - spec);
    char folder[PATH_MAX];
    char *out = NULL;
    int len;
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    if (path[0] == '/' || getcwd(folder, sizeof(folder)) == NULL)
        len = asprintf(&out, "%s", spec);
    else
        len = asprintf(&out, "%.*s%s/%s", prefix_len, spec, folder, path);
    check_ge(len + 1, 1);
    return out;
}

bool
specs_same_file(const char *a, const char *b)
{
    struct stat st_a, st_b;
    if (strcmp(a, b) == 0)
        return true;
    if (stat(member_spec_path(a), &st_a) < 0 || stat(member_spec_path(b), &st_b) < 0)
        return false;
    if (S_ISBLK(st_a.st_mode) && S_ISBLK(st_b.st_mode))
        return st_a.st_rdev == st_b.st_rdev;
    return st_a.st_dev == st_b.st_dev && st_a.st_ino == st_b.st_ino;
}

void
specs_destroy(struct specs *specs)
{
    for (uint32_t i = 0; i < specs->count; i++)
        free(specs->list[i]);
    free(specs->list);
    *specs = (struct specs){0};
}
