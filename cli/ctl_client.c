#include "cli/ctl_client.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "engine/base/check.h"
#include "engine/base/codes.h"

static int
no_daemon(const char *path, int err, struct diag *diag)
{
    (void)diag_set(diag, DIAG_NO_DAEMON, "E_NO_DAEMON", -err, "no sr5d answers on %s: %s", path,
                   strerror(err));
    diag_fix(diag, "sr5d --members PATH    (or name the daemon: --control PATH, SR5_CONTROL)");
    return -err;
}

static int
connect_to(const char *path, struct diag *diag)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path))
        return no_daemon(path, ENAMETOOLONG, diag);
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return no_daemon(path, errno, diag);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        int err = errno;
        close(fd);
        return no_daemon(path, err, diag);
    }
    return fd;
}

/* The daemon's refusal becomes ours, code for code. */
static int
take_error(const json_t *error, struct diag *diag)
{
    const char *name = json_string_value(json_object_get(error, "code"));
    const char *message = json_string_value(json_object_get(error, "message"));
    json_int_t class = json_integer_value(json_object_get(error, "class"));
    const struct code_text *code = name != NULL ? code_find(name) : NULL;
    if (code == NULL || message == NULL || class < DIAG_FAILED || class > DIAG_NO_DAEMON)
        return diag_set(diag, DIAG_FAILED, "E_PROTOCOL", -EPROTO,
                        "the daemon failed without saying why; are sr5 and sr5d the same version?");
    (void)diag_set(diag, (enum diag_class) class, code->code, -EIO, "%s", message);
    size_t i;
    json_t *fix;
    json_array_foreach (json_object_get(error, "fix"), i, fix) {
        if (json_is_string(fix))
            diag_fix(diag, "%s", json_string_value(fix));
    }
    return -EIO;
}

static int
exchange(int fd, const char *verb, json_t *args, json_t **answer, struct diag *diag)
{
    json_t *request = json_pack("{s:i, s:s, s:O}", "sr5", 1, "verb", verb, "args", args);
    char *text = request != NULL ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    if (text == NULL)
        return diag_set(diag, DIAG_USAGE, "E_USAGE", -EINVAL, "an argument is not valid UTF-8");
    size_t len = strlen(text), sent = 0;
    text[len++] = '\n'; /* in place of the NUL */
    while (sent < len) {
        ssize_t n = send(fd, text + sent, len - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            break; /* the answer, if any, says why */
        sent += n > 0 ? (size_t)n : 0;
    }
    free(text);
    FILE *from = fdopen(dup(fd), "r");
    json_error_t where;
    *answer = from != NULL ? json_loadf(from, JSON_DISABLE_EOF_CHECK, &where) : NULL;
    if (from != NULL)
        fclose(from);
    if (*answer != NULL && json_is_object(*answer))
        return 0;
    json_decref(*answer);
    return diag_set(diag, DIAG_FAILED, "E_PROTOCOL", -EPROTO,
                    "sr5d closed the connection without an answer to \"%s\"", verb);
}

int
ctl_client_ask(const char *path, const char *verb, json_t *args, json_t **result, struct diag *diag)
{
    json_t *answer = NULL;
    if (args == NULL)
        args = json_object();
    int fd = connect_to(path, diag);
    int err = fd < 0 ? fd : exchange(fd, verb, args, &answer, diag);
    json_decref(args);
    if (fd >= 0)
        close(fd);
    if (err < 0)
        return err;
    *result = json_object_get(answer, "result");
    const json_t *error = json_object_get(answer, "error");
    if (error != NULL)
        err = take_error(error, diag);
    else if (json_integer_value(json_object_get(answer, "sr5")) != 1 || *result == NULL)
        err = diag_set(diag, DIAG_FAILED, "E_PROTOCOL", -EPROTO,
                       "what answers on %s does not speak version 1 of sr5's protocol", path);
    else
        json_incref(*result);
    json_decref(answer);
    return err;
}
