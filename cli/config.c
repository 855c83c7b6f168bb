#include "cli/config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define THREADS_MAX         64
#define DEGRADED_WAIT_S     30
#define CACHE_DEFAULT_BYTES (UINT64_C(256) << 20)

const struct option_spec config_options[] = {
    {"config", "FILE", "lines `option = value`; the command line goes first", 0},
    {"members", "PATH|GLOB", "look for arrays there: files, devices, folders; may be repeated",
     OPTION_REPEAT},
    {"socket", "PATH", "serve NBD on this unix socket ($RUNTIME/nbd.sock)", 0},
    {"listen", "ADDR:PORT", "serve NBD on TCP, too; needs --insecure-plaintext", OPTION_REPEAT},
    {"insecure-plaintext", NULL, "allow TCP without TLS: anyone on the way reads and changes data",
     0},
    {"control", "PATH", "the control socket for sr5 ($RUNTIME/control.sock)", 0},
    {"threads", "N", "threads for connections (1)", 0},
    {"cache-size", "SIZE", "memory for the write cache (256M)", 0},
    {"io", "libaio|io_uring", "how members are read and written (libaio)", 0},
    {"degraded", "now|wait|never",
     "start with a member missing: at once, after a wait (wait), never", 0},
    {"degraded-wait", "SECONDS", "how long that wait is (30)", 0},
    {"read-only", NULL, "serve for reading only; nothing is written to a member", 0},
    {"stdio", NULL, "serve one client on stdin and stdout, exit when it goes", 0},
    {"foreground", NULL, "stay in the foreground; always so, systemd does the rest", 0},
    {"verbose", NULL, "log debugging messages, too", 0},
    {"version", NULL, "print the version", 0},
    {"help", NULL, "this list", 0},
    {NULL, NULL, NULL, 0},
};

static char *
trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return text;
}

/* One line of the file.  `given` is how many values the command line had: those win. */
static int
take_line(struct config *config, char *line, const char *where, uint32_t given, struct diag *diag)
{
    char *key = trim(line);
    if (key[0] == '\0' || key[0] == '#')
        return 0;
    char *equals = strchr(key, '=');
    if (equals == NULL)
        return diag_set(diag, DIAG_USAGE, "E_CONFIG", -EINVAL, "%sa line is `option = value`",
                        where);
    *equals = '\0';
    key = trim(key);
    const char *value = trim(equals + 1);
    for (uint32_t i = 0; i < given; i++) {
        const struct option_spec *spec = config->options.values[i].spec;
        if (strcmp(spec->name, key) == 0 && !(spec->flags & OPTION_REPEAT))
            return 0;
    }
    return options_add(&config->options, key, value, where, diag);
}

static int
load_file(struct config *config, const char *path, struct diag *diag)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return diag_set(diag, DIAG_USAGE, "E_CONFIG", -errno, "%s: %s", path, strerror(errno));
    uint32_t given = config->options.value_count, number = 0;
    char *line = NULL;
    size_t room = 0;
    int err = 0;
    while (err == 0 && getline(&line, &room, file) >= 0) {
        char where[300];
        snprintf(where, sizeof(where), "%s:%u: ", path, ++number);
        err = take_line(config, line, where, given, diag);
    }
    free(line);
    fclose(file);
    return err;
}

bool
degraded_parse(const char *text, enum degraded_policy *policy)
{
    static const char *const names[] = {"now", "wait", "never"};
    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(text, names[i]) == 0) {
            *policy = (enum degraded_policy)i;
            return true;
        }
    return false;
}

static int
take_socket(struct config *config, const char *name, const char *file, char *out, struct diag *diag)
{
    const char *path = options_get(&config->options, name);
    if (path == NULL) {
        runtime_dir_path(file, out);
        config->own_runtime_dir = true;
    } else if (strlen(path) >= RUNTIME_PATH_BYTES) {
        return diag_set(diag, DIAG_USAGE, "E_USAGE", -EINVAL,
                        "--%s: a socket's path is at most %d bytes long", name,
                        RUNTIME_PATH_BYTES - 1);
    } else {
        snprintf(out, RUNTIME_PATH_BYTES, "%s", path);
    }
    return 0;
}

static int
take_numbers(struct config *config, struct diag *diag)
{
    const struct options *options = &config->options;
    uint64_t threads = 1, wait_s = DEGRADED_WAIT_S;
    int err = options_number(options, "threads", 1, THREADS_MAX, &threads, diag);
    if (err == 0)
        err = options_number(options, "degraded-wait", 0, 86400, &wait_s, diag);
    if (err == 0)
        err = options_size(options, "cache-size", CACHE_DEFAULT_BYTES, &config->cache_bytes, diag);
    if (err < 0)
        return err;
    config->threads = (uint32_t)threads;
    config->degraded_wait_s = (uint32_t)wait_s;
    return 0;
}

static int
take_all(struct config *config, struct diag *diag)
{
    const struct options *options = &config->options;
    config->help = options_have(options, "help");
    config->version = options_have(options, "version");
    config->stdio = options_have(options, "stdio");
    config->read_only = options_have(options, "read-only");
    config->verbose = options_have(options, "verbose");
    const char *io = options_get(options, "io"), *degraded = options_get(options, "degraded");
    config->io = io != NULL && strcmp(io, "io_uring") == 0 ? IO_URING : IO_LIBAIO;
    config->degraded = DEGRADED_WAIT;
    if (degraded != NULL)
        check(degraded_parse(degraded, &config->degraded)); /* options_parse() saw to it */
    const char *members;
    for (uint32_t i = 0; (members = options_nth(options, "members", i)) != NULL; i++)
        specs_add(&config->members, members);
    if (options_have(options, "listen") && !options_have(options, "insecure-plaintext")) {
        (void)diag_set(diag, DIAG_REFUSED, "E_PLAINTEXT", -EPERM,
                       "NBD over TCP is not encrypted, and TLS is not built yet");
        diag_fix(diag, "tunnel the unix socket (ssh -L), or add --insecure-plaintext");
        return -EPERM;
    }
    int err = take_numbers(config, diag);
    if (err == 0)
        err = take_socket(config, "socket", "nbd.sock", config->socket, diag);
    return err != 0 ? err : take_socket(config, "control", "control.sock", config->control, diag);
}

int
config_load(struct config *config, char *const *args, uint32_t count, struct diag *diag)
{
    *config = (struct config){.options.tables = {config_options}};
    int err = options_parse(&config->options, args, count, diag);
    if (err == 0 && config->options.operand_count != 0) {
        err = diag_set(diag, DIAG_USAGE, "E_USAGE", -EINVAL,
                       "sr5d takes options only; members are given by --members %s",
                       config->options.operands[0]);
    }
    const char *path = err == 0 ? options_get(&config->options, "config") : NULL;
    if (path != NULL)
        err = load_file(config, path, diag);
    return err != 0 ? err : take_all(config, diag);
}

void
config_destroy(struct config *config)
{
    specs_destroy(&config->members);
    options_destroy(&config->options);
}
