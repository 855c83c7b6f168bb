#include "nbd/handshake.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "nbd/proto.h"

/* Nobody needs more; a client that goes on asking is closed.  LIST allows one more per export. */
#define OPTIONS_MAX 32u

void
nbd_handshake_init(struct nbd_handshake *handshake, const struct nbd_directory *directory,
                   struct nbd_outbox *out)
{
    *handshake = (struct nbd_handshake){.directory = directory, .options_left = OPTIONS_MAX};
    struct nbd_greeting greeting = {
        .magic = be64_make(NBD_GREETING_MAGIC),
        .option_magic = be64_make(NBD_OPTION_MAGIC),
        .flags = be16_make(NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES),
    };
    nbd_outbox_append(out, &greeting, sizeof(greeting));
}

enum nbd_next
nbd_handshake_flags(struct nbd_handshake *handshake, uint32_t flags)
{
    handshake->greeted = true;
    handshake->fixed = (flags & NBD_FLAG_FIXED_NEWSTYLE) != 0;
    handshake->no_zeroes = (flags & NBD_FLAG_NO_ZEROES) != 0;
    bool unknown = (flags & ~(NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES)) != 0;
    return unknown ? NBD_NEXT_CLOSE : NBD_NEXT_OPTION;
}

static void
reply_header(struct nbd_outbox *out, uint32_t option, uint32_t type, size_t bytes)
{
    struct nbd_option_reply reply = {
        .magic = be64_make(NBD_OPTION_REPLY_MAGIC),
        .option = be32_make(option),
        .type = be32_make(type),
        .length = be32_make((uint32_t)bytes),
    };
    nbd_outbox_append(out, &reply, sizeof(reply));
}

static enum nbd_next
reply(struct nbd_outbox *out, uint32_t option, uint32_t type, const void *data, size_t bytes)
{
    reply_header(out, option, type, bytes);
    nbd_outbox_append(out, data, bytes);
    return NBD_NEXT_OPTION;
}

static enum nbd_next PRINTF_LIKE(4, 5)
    refuse(struct nbd_outbox *out, uint32_t option, uint32_t type, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    check_gt(bytes, 0);
    return reply(out, option, type, text, MIN((size_t)bytes, sizeof(text) - 1));
}

/* A name as it may be shown: short, and without anything that moves a terminal's cursor. */
static const char *
shown(char text[81], const uint8_t *name, size_t bytes)
{
    size_t count = MIN(bytes, (size_t)80);
    for (size_t i = 0; i < count; i++)
        text[i] = name[i] < 0x20 || name[i] == 0x7f ? '?' : (char)name[i];
    text[count] = '\0';
    return text;
}

/* EXPORT_NAME has no way to say no but to close. */
static enum nbd_next
take_export_name(struct nbd_handshake *handshake, const uint8_t *name, uint32_t bytes,
                 struct nbd_outbox *out)
{
    if (name == NULL || bytes > NBD_STRING_BYTES_MAX)
        return NBD_NEXT_CLOSE;
    struct nbd_export *export = nbd_directory_find(handshake->directory, name, bytes);
    if (export == NULL || !nbd_directory_has_room(handshake->directory, export))
        return NBD_NEXT_CLOSE;
    struct nbd_export_reply answer = {
        .size_bytes = be64_make(export->size_bytes),
        .flags = be16_make(nbd_export_flags(export)),
    };
    size_t answer_bytes =
        handshake->no_zeroes ? offsetof(struct nbd_export_reply, zeroes) : sizeof(answer);
    nbd_outbox_append(out, &answer, answer_bytes);
    handshake->chosen = export;
    return NBD_NEXT_TRANSMISSION;
}

static enum nbd_next
take_list(struct nbd_handshake *handshake, uint32_t bytes, struct nbd_outbox *out)
{
    if (bytes != 0)
        return refuse(out, NBD_OPT_LIST, NBD_REP_ERR_INVALID, "LIST takes no data");
    list_for_each (node, &handshake->directory->exports) {
        const struct nbd_export *export = CONTAINER_OF(node, struct nbd_export, node);
        size_t name_bytes = strlen(export->name), text_bytes = strlen(export->description);
        struct be32 length = be32_make((uint32_t)name_bytes);
        reply_header(out, NBD_OPT_LIST, NBD_REP_SERVER, sizeof(length) + name_bytes + text_bytes);
        nbd_outbox_append(out, &length, sizeof(length));
        nbd_outbox_append(out, export->name, name_bytes);
        nbd_outbox_append(out, export->description, text_bytes);
        handshake->options_left++; /* qemu asks INFO about each */
    }
    return reply(out, NBD_OPT_LIST, NBD_REP_ACK, NULL, 0);
}

/* The payload of INFO and GO: u32 name length, name, u16 count, count times u16. */
struct info_query {
    const uint8_t *name;
    uint32_t name_bytes;
    const uint8_t *kinds;
    uint32_t kind_count;
};

static bool
parse_info_query(const uint8_t *payload, uint32_t bytes, struct info_query *query)
{
    struct be32 name_bytes;
    struct be16 kind_count;
    if (payload == NULL || bytes < sizeof(name_bytes) + sizeof(kind_count))
        return false;
    uint32_t room = bytes - (uint32_t)(sizeof(name_bytes) + sizeof(kind_count));
    memcpy(&name_bytes, payload, sizeof(name_bytes));
    query->name = payload + sizeof(name_bytes);
    query->name_bytes = be32_get(name_bytes);
    if (query->name_bytes > NBD_STRING_BYTES_MAX || query->name_bytes > room)
        return false;
    if (memchr(query->name, '\0', query->name_bytes) != NULL)
        return false;
    memcpy(&kind_count, query->name + query->name_bytes, sizeof(kind_count));
    query->kinds = query->name + query->name_bytes + sizeof(kind_count);
    query->kind_count = be16_get(kind_count);
    return room - query->name_bytes == query->kind_count * sizeof(struct be16);
}

static bool
wants(const struct info_query *query, uint16_t kind)
{
    for (uint32_t i = 0; i < query->kind_count; i++) {
        struct be16 asked;
        memcpy(&asked, query->kinds + i * sizeof(asked), sizeof(asked));
        if (be16_get(asked) == kind)
            return true;
    }
    return false;
}

static void
reply_info_text(struct nbd_outbox *out, uint32_t option, uint16_t kind, const char *text)
{
    struct be16 type = be16_make(kind);
    reply_header(out, option, NBD_REP_INFO, sizeof(type) + strlen(text));
    nbd_outbox_append(out, &type, sizeof(type));
    nbd_outbox_append(out, text, strlen(text));
}

static void
reply_info(struct nbd_outbox *out, uint32_t option, const struct nbd_export *export,
           const struct info_query *query)
{
    struct nbd_info_export info = {
        .type = be16_make(NBD_INFO_EXPORT),
        .size_bytes = be64_make(export->size_bytes),
        .flags = be16_make(nbd_export_flags(export)),
    };
    (void)reply(out, option, NBD_REP_INFO, &info, sizeof(info)); /* asked for or not */
    if (wants(query, NBD_INFO_NAME))
        reply_info_text(out, option, NBD_INFO_NAME, export->name);
    if (wants(query, NBD_INFO_DESCRIPTION) && export->description[0] != '\0')
        reply_info_text(out, option, NBD_INFO_DESCRIPTION, export->description);
    if (!wants(query, NBD_INFO_BLOCK_SIZE))
        return;
    struct nbd_info_block_size sizes = {
        .type = be16_make(NBD_INFO_BLOCK_SIZE),
        .minimum = be32_make(1),
        .preferred = be32_make(export->preferred_bytes),
        .payload_max = be32_make(NBD_PAYLOAD_BYTES_ADVERTISED),
    };
    (void)reply(out, option, NBD_REP_INFO, &sizes, sizeof(sizes));
}

static enum nbd_next
take_info(struct nbd_handshake *handshake, uint32_t option, const uint8_t *payload, uint32_t bytes,
          struct nbd_outbox *out)
{
    struct info_query query;
    char text[81];
    if (!parse_info_query(payload, bytes, &query))
        return refuse(out, option, NBD_REP_ERR_INVALID, "lengths do not add up");
    struct nbd_export *export =
        nbd_directory_find(handshake->directory, query.name, query.name_bytes);
    if (export == NULL)
        return refuse(out, option, NBD_REP_ERR_UNKNOWN, "no export is called '%s'",
                      shown(text, query.name, query.name_bytes));
    if (option == NBD_OPT_GO && !nbd_directory_has_room(handshake->directory, export))
        return refuse(out, option, NBD_REP_ERR_POLICY, "too many clients are connected");
    reply_info(out, option, export, &query);
    (void)reply(out, option, NBD_REP_ACK, NULL, 0);
    if (option == NBD_OPT_INFO)
        return NBD_NEXT_OPTION;
    handshake->chosen = export;
    return NBD_NEXT_TRANSMISSION;
}

/* Options that are refused, but only when well-formed: theirs is an empty payload. */
static enum nbd_next
refuse_empty(struct nbd_outbox *out, uint32_t option, uint32_t bytes, uint32_t type,
             const char *text)
{
    if (bytes != 0)
        return refuse(out, option, NBD_REP_ERR_INVALID, "this option takes no data");
    return refuse(out, option, type, "%s", text);
}

enum nbd_next
nbd_handshake_option(struct nbd_handshake *handshake, uint32_t option, const uint8_t *payload,
                     uint32_t bytes, struct nbd_outbox *out)
{
    check(handshake->greeted);
    if (handshake->options_left == 0)
        return NBD_NEXT_CLOSE;
    handshake->options_left--;
    if (!handshake->fixed && option != NBD_OPT_EXPORT_NAME)
        return NBD_NEXT_CLOSE; /* it would not understand the answer */
    switch (option) {
    case NBD_OPT_EXPORT_NAME:
        return take_export_name(handshake, payload, bytes, out);
    case NBD_OPT_ABORT:
        (void)reply(out, option, NBD_REP_ACK, NULL, 0);
        return NBD_NEXT_CLOSE;
    case NBD_OPT_LIST:
        return take_list(handshake, bytes, out);
    case NBD_OPT_INFO:
    case NBD_OPT_GO:
        return take_info(handshake, option, payload, bytes, out);
    case NBD_OPT_STARTTLS:
        return refuse_empty(out, option, bytes, NBD_REP_ERR_POLICY, "TLS is not set up");
    case NBD_OPT_STRUCTURED_REPLY:
        return refuse_empty(out, option, bytes, NBD_REP_ERR_UNSUP, "simple replies only");
    case NBD_OPT_EXTENDED_HEADERS:
        return refuse_empty(out, option, bytes, NBD_REP_ERR_UNSUP, "compact headers only");
    case NBD_OPT_LIST_META_CONTEXT:
    case NBD_OPT_SET_META_CONTEXT:
        if (payload == NULL)
            return refuse(out, option, NBD_REP_ERR_TOO_BIG, "too many queries");
        return refuse(out, option, NBD_REP_ERR_UNSUP, "no metadata contexts here");
    default: /* any number a client thinks of */
        return refuse(out, option, NBD_REP_ERR_UNSUP, "option %u is unknown", option);
    }
}
