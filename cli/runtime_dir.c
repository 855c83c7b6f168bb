#include "cli/runtime_dir.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *
runtime_dir(void)
{
    static char path[RUNTIME_PATH_BYTES];
    const char *xdg = getenv("XDG_RUNTIME_DIR");
    if (geteuid() == 0)
        snprintf(path, sizeof(path), "/run/sr5d");
    else if (xdg != NULL && xdg[0] == '/' && strlen(xdg) < 64)
        snprintf(path, sizeof(path), "%s/sr5d", xdg);
    else
        snprintf(path, sizeof(path), "/tmp/sr5d-%u", (unsigned)geteuid());
    return path;
}

int
runtime_dir_make(struct diag *diag)
{
    const char *path = runtime_dir();
    struct stat st;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return diag_set(diag, DIAG_FAILED, "E_OPEN", -errno, "%s cannot be made: %s", path,
                        strerror(errno));
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 022) != 0)
        return diag_set(diag, DIAG_REFUSED, "E_OPEN", -EPERM,
                        "%s is not a folder of yours that only you can write to", path);
    return 0;
}

void
runtime_dir_path(const char *name, char out[RUNTIME_PATH_BYTES])
{
    snprintf(out, RUNTIME_PATH_BYTES, "%s/%s", runtime_dir(), name);
}

void
runtime_dir_control(const char *given, char out[RUNTIME_PATH_BYTES])
{
    if (given == NULL)
        given = getenv("SR5_CONTROL");
    if (given != NULL && given[0] != '\0')
        snprintf(out, RUNTIME_PATH_BYTES, "%s", given);
    else
        runtime_dir_path("control.sock", out);
}
