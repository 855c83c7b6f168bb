/* A load generator for NBD servers that is not itself the limit.
 *
 *   nbdload [--op randread|randwrite|read|write] [--bs BYTES] [--depth N] [--seconds S]
 *           [--connections N] [--size BYTES] [--export NAME] SOCKET|HOST:PORT
 *
 * Keeps --depth requests in flight on each connection.  All requests that may be sent leave in one
 * send, one recv takes all replies that are there; data read is dropped, data written is whatever.
 * One thread; simple replies.  Ends with DISC when all replies are in.  --size limits the range
 * that is used (default: the whole export). Prints one line of JSON.  Latency is measured from the
 * send to the recv that completes it. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "engine/base/clock.h"
#include "engine/base/rng.h"

#include "nbd/proto.h"

#define CONNECTIONS_MAX 64
#define DEPTH_MAX       1024
#define INBOX_BYTES     MIB(1)
/* Latencies are counted in steps of 1/16 of their power of two, in ns: at most 6 % off. */
#define BUCKETS (64 * 16)

struct options {
    const char *op, *export_name, *target;
    uint32_t bytes, depth, connections;
    uint64_t size_bytes;
    double seconds;
    bool write, random;
};

struct client {
    int fd;
    uint64_t size_bytes;
    uint64_t sent_ns[DEPTH_MAX]; /* by cookie */
    uint32_t free[DEPTH_MAX], free_count;
    uint64_t next_off_bytes;
    uint8_t *outbox;
    size_t out_used, out_sent;
    uint8_t *inbox;
    size_t in_used;
    uint64_t data_left; /* of the reply that is being received */
    uint32_t data_cookie;
};

static struct options options = {.op = "randread",
                                 .export_name = "",
                                 .bytes = 4096,
                                 .depth = 32,
                                 .connections = 1,
                                 .seconds = 3};
static uint64_t histogram[BUCKETS];
static uint64_t done_count;
static struct rng rng;

NORETURN static void
die(const char *what)
{
    fprintf(stderr, "nbdload: %s: %s\n", what, errno != 0 ? strerror(errno) : "protocol error");
    exit(1);
}

/* ---- connecting -------------------------------------------------------------------------- */
static int
connect_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path))
        die(path);
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        die(path);
    return fd;
}

static int
connect_to(const char *target)
{
    const char *colon = strrchr(target, ':');
    if (colon == NULL)
        return connect_unix(target);
    char host[128];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *info;
    snprintf(host, sizeof(host), "%.*s", (int)(colon - target), target);
    if (getaddrinfo(host, colon + 1, &hints, &info) != 0)
        die(target);
    int yes = 1, fd = socket(info->ai_family, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, info->ai_addr, info->ai_addrlen) < 0)
        die(target);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    freeaddrinfo(info);
    return fd;
}

static void
send_all(int fd, const void *data, size_t bytes)
{
    if (send(fd, data, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
        die("send");
}

static void
recv_all(int fd, void *data, size_t bytes)
{
    errno = 0;
    if (bytes != 0 && recv(fd, data, bytes, MSG_WAITALL) != (ssize_t)bytes)
        die("recv");
}

static void
send_go(int fd)
{
    uint32_t name_bytes = (uint32_t)strlen(options.export_name);
    struct {
        struct be32 flags;
        struct nbd_option_header header;
        struct be32 name_bytes;
    } PACKED go = {.flags = be32_make(NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES),
                   .header = {.magic = be64_make(NBD_OPTION_MAGIC),
                              .option = be32_make(NBD_OPT_GO),
                              .length = be32_make(name_bytes + 6)},
                   .name_bytes = be32_make(name_bytes)};
    struct be16 no_infos = be16_make(0);
    send_all(fd, &go, sizeof(go));
    send_all(fd, options.export_name, name_bytes);
    send_all(fd, &no_infos, sizeof(no_infos));
}

static void
negotiate(struct client *client)
{
    struct nbd_greeting greeting;
    recv_all(client->fd, &greeting, sizeof(greeting));
    send_go(client->fd);
    for (;;) {
        struct nbd_option_reply reply;
        uint8_t data[4096];
        recv_all(client->fd, &reply, sizeof(reply));
        uint32_t bytes = be32_get(reply.length);
        if (bytes > sizeof(data))
            die("GO");
        recv_all(client->fd, data, bytes);
        if (be32_get(reply.type) == NBD_REP_ACK)
            return;
        if (be32_get(reply.type) != NBD_REP_INFO)
            die("GO refused");
        struct nbd_info_export info;
        memcpy(&info, data, MIN(sizeof(info), (size_t)bytes));
        if (bytes == sizeof(info) && be16_get(info.type) == NBD_INFO_EXPORT)
            client->size_bytes = be64_get(info.size_bytes);
    }
}

static void
start_client(struct client *client)
{
    client->fd = connect_to(options.target);
    negotiate(client);
    if (options.size_bytes != 0)
        client->size_bytes = MIN(client->size_bytes, options.size_bytes);
    if (client->size_bytes < options.bytes)
        die("the export is smaller than a block");
    client->inbox = malloc(INBOX_BYTES);
    client->outbox = calloc(options.depth, sizeof(struct nbd_request_header) + options.bytes);
    if (client->inbox == NULL || client->outbox == NULL)
        die("memory");
    for (uint32_t i = 0; i < options.depth; i++)
        client->free[client->free_count++] = i;
}

/* ---- load -------------------------------------------------------------------------------- */
static uint64_t
next_offset(struct client *client)
{
    uint64_t blocks = client->size_bytes / options.bytes;
    if (options.random)
        return rng_below(&rng, blocks) * options.bytes;
    uint64_t off_bytes = client->next_off_bytes;
    client->next_off_bytes = (off_bytes / options.bytes + 1) % blocks * options.bytes;
    return off_bytes;
}

static void
queue_requests(struct client *client, uint64_t now_ns)
{
    if (client->out_sent != client->out_used)
        return; /* the last batch first */
    client->out_sent = client->out_used = 0;
    while (client->free_count != 0) {
        uint32_t cookie = client->free[--client->free_count];
        struct nbd_request_header header = {
            .magic = be32_make(NBD_REQUEST_MAGIC),
            .type = be16_make(options.write ? NBD_CMD_WRITE : NBD_CMD_READ),
            .cookie = be64_make(cookie),
            .offset = be64_make(next_offset(client)),
            .length = be32_make(options.bytes),
        };
        client->sent_ns[cookie] = now_ns;
        memcpy(client->outbox + client->out_used, &header, sizeof(header));
        client->out_used += sizeof(header) + (options.write ? options.bytes : 0);
    }
}

static void
send_requests(struct client *client)
{
    if (client->out_sent == client->out_used)
        return;
    ssize_t sent = send(client->fd, client->outbox + client->out_sent,
                        client->out_used - client->out_sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0)
        client->out_sent += (size_t)sent;
    else if (errno != EAGAIN)
        die("send");
}

static uint32_t
bucket_of(uint64_t ns)
{
    uint32_t log = ns < 16 ? 4 : 63 - (uint32_t)__builtin_clzll(ns);
    return ns < 16 ? (uint32_t)ns : (log - 3) * 16 + (uint32_t)((ns >> (log - 4)) & 15);
}

static double
bucket_us(uint32_t bucket)
{
    uint32_t log = bucket / 16 + 3;
    return bucket < 16 ? bucket / 1e3 : (double)((UINT64_C(16) + bucket % 16) << (log - 4)) / 1e3;
}

static void
complete(struct client *client, uint32_t cookie, uint64_t now_ns)
{
    histogram[bucket_of(now_ns - client->sent_ns[cookie])]++;
    client->free[client->free_count++] = cookie;
    done_count++;
}

/* Take the replies out of the inbox. */
static void
take_replies(struct client *client, uint64_t now_ns)
{
    size_t at = 0;
    for (;;) {
        if (client->data_left != 0) {
            size_t dropped = MIN(client->data_left, (uint64_t)(client->in_used - at));
            at += dropped;
            client->data_left -= dropped;
            if (client->data_left != 0)
                break;
            complete(client, client->data_cookie, now_ns);
        }
        struct nbd_simple_reply reply;
        if (client->in_used - at < sizeof(reply))
            break;
        memcpy(&reply, client->inbox + at, sizeof(reply));
        at += sizeof(reply);
        uint64_t cookie = be64_get(reply.cookie);
        errno = 0;
        if (be32_get(reply.magic) != NBD_SIMPLE_REPLY_MAGIC || cookie >= options.depth)
            die("reply");
        errno = (int)be32_get(reply.error);
        if (errno != 0)
            die(options.op);
        client->data_cookie = (uint32_t)cookie;
        client->data_left = options.write ? 0 : options.bytes;
        if (options.write)
            complete(client, (uint32_t)cookie, now_ns);
    }
    client->in_used -= at;
    memmove(client->inbox, client->inbox + at, client->in_used);
}

static void
receive(struct client *client)
{
    ssize_t got = recv(client->fd, client->inbox + client->in_used, INBOX_BYTES - client->in_used,
                       MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
        errno = got == 0 ? 0 : errno;
        die("recv");
    }
    client->in_used += got > 0 ? (size_t)got : 0;
    take_replies(client, clock_now_ns(clock_real()));
}

/* Wait for what is in flight and say goodbye: hanging up with requests queued kills some servers.
 */
static void
finish(struct client *client)
{
    struct nbd_request_header header = {.magic = be32_make(NBD_REQUEST_MAGIC),
                                        .type = be16_make(NBD_CMD_DISC)};
    while (client->free_count != options.depth) {
        bool more = client->out_sent != client->out_used;
        struct pollfd wait = {client->fd, POLLIN | (more ? POLLOUT : 0), 0};
        if (poll(&wait, 1, 10000) <= 0)
            die("no reply for 10 s");
        send_requests(client);
        receive(client);
    }
    send_all(client->fd, &header, sizeof(header));
    close(client->fd);
}

static uint64_t
run(struct client *clients)
{
    struct pollfd polls[CONNECTIONS_MAX];
    uint64_t start_ns = clock_now_ns(clock_real()), now_ns = start_ns;
    uint64_t end_ns = start_ns + (uint64_t)(options.seconds * 1e9);
    while (now_ns < end_ns) {
        for (uint32_t i = 0; i < options.connections; i++) {
            queue_requests(&clients[i], now_ns);
            send_requests(&clients[i]);
            bool more = clients[i].out_sent != clients[i].out_used;
            polls[i] = (struct pollfd){clients[i].fd, POLLIN | (more ? POLLOUT : 0), 0};
        }
        if (poll(polls, options.connections, 1000) < 0)
            die("poll");
        for (uint32_t i = 0; i < options.connections; i++)
            if ((polls[i].revents & ~POLLOUT) != 0)
                receive(&clients[i]);
        now_ns = clock_now_ns(clock_real());
    }
    return now_ns - start_ns;
}

/* ---- the report -------------------------------------------------------------------------- */
static double
percentile_us(double share)
{
    uint64_t seen = 0;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        seen += histogram[i];
        if (seen != 0 && (double)seen >= share * (double)done_count)
            return bucket_us(i);
    }
    return 0;
}

static double
cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void
report(uint64_t elapsed_ns)
{
    double seconds = (double)elapsed_ns / 1e9, count = (double)done_count;
    printf("{\"op\":\"%s\",\"bs\":%u,\"depth\":%u,\"connections\":%u,\"seconds\":%.3f,"
           "\"requests\":%" PRIu64 ",\"iops\":%.0f,\"mb_per_s\":%.1f,\"latency_us\":"
           "{\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"p999\":%.1f,\"max\":%.1f},"
           "\"client_cpu_s\":%.3f}\n",
           options.op, options.bytes, options.depth, options.connections, seconds, done_count,
           count / seconds, count * options.bytes / seconds / 1e6, percentile_us(0.5),
           percentile_us(0.9), percentile_us(0.99), percentile_us(0.999), percentile_us(1.0),
           cpu_s());
}

static bool
parse_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"op", 1, NULL, 'o'},      {"bs", 1, NULL, 'b'},   {"depth", 1, NULL, 'd'},
        {"seconds", 1, NULL, 's'}, {"size", 1, NULL, 'z'}, {"connections", 1, NULL, 'c'},
        {"export", 1, NULL, 'e'},  {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        uint64_t number = optarg != NULL ? strtoull(optarg, NULL, 0) : 0;
        if (c == 'o')
            options.op = optarg;
        else if (c == 'e')
            options.export_name = optarg;
        else if (c == 'b')
            options.bytes = (uint32_t)number;
        else if (c == 'd')
            options.depth = (uint32_t)number;
        else if (c == 'z')
            options.size_bytes = number;
        else if (c == 'c')
            options.connections = (uint32_t)number;
        else if (c == 's')
            options.seconds = atof(optarg);
        else
            return false;
    }
    options.write = strstr(options.op, "write") != NULL;
    options.random = strncmp(options.op, "rand", 4) == 0;
    bool op_ok =
        strcmp(options.op + (options.random ? 4 : 0), options.write ? "write" : "read") == 0;
    options.target = argv[optind];
    return op_ok && optind + 1 == argc && options.bytes != 0 && options.bytes <= MIB(32) &&
           options.depth != 0 && options.depth <= DEPTH_MAX && options.connections != 0 &&
           options.connections <= CONNECTIONS_MAX;
}

int
main(int argc, char **argv)
{
    static struct client clients[CONNECTIONS_MAX];
    if (!parse_options(argc, argv)) {
        fprintf(stderr, "usage: nbdload [--op randread|randwrite|read|write] [--bs BYTES] "
                        "[--depth N] [--seconds S]\n               [--connections N] "
                        "[--size BYTES] [--export NAME] SOCKET|HOST:PORT\n");
        return 2;
    }
    rng_seed(&rng, 1);
    for (uint32_t i = 0; i < options.connections; i++)
        start_client(&clients[i]);
    report(run(clients));
    for (uint32_t i = 0; i < options.connections; i++)
        finish(&clients[i]);
    return 0;
}
