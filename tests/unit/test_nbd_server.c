/* Listening, threads, stopping. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/unit/nbd_fixture.h"
#include "tests/unit/suite.h"

static char directory[] = "/tmp/test_nbd_server.XXXXXX";

static const char *
socket_path(void)
{
    static char path[108];
    if (path[0] == '\0') {
        check(mkdtemp(directory) != NULL);
        snprintf(path, sizeof(path), "%s/nbd.sock", directory);
    }
    return path;
}

static int
connect_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strcpy(address.sun_path, path);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void
a_unix_socket_is_private_and_goes_with_the_server(void)
{
    struct nbd_fixture fx;
    struct stat st;
    fixture_start(&fx, NULL);
    mode_t before = umask(0);
    CU_ASSERT_EQUAL(nbd_server_listen_unix(fx.server, socket_path(), NULL), 0);
    umask(before);
    CU_ASSERT_EQUAL(lstat(socket_path(), &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & 07777, 0600);
    int fd = connect_unix(socket_path());
    CU_ASSERT(client_go(&fx, fd));
    struct nbd_client_status status[4];
    CU_ASSERT_EQUAL(nbd_server_clients(fx.server, status, 4), 1);
    CU_ASSERT_STRING_EQUAL(status[0].export_name, "ram");
    CU_ASSERT_EQUAL(strncmp(status[0].peer, "unix:pid=", 9), 0);
    close(fd);
    fixture_stop(&fx);
    CU_ASSERT_EQUAL(lstat(socket_path(), &st), -1);
    rmdir(directory);
}

static void
a_stale_socket_is_replaced_a_live_one_is_not(void)
{
    struct nbd_fixture fx, other;
    struct diag diag = {0};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    mkdir(directory, 0700);
    strcpy(address.sun_path, socket_path());
    int stale = socket(AF_UNIX, SOCK_STREAM, 0);
    CU_ASSERT_EQUAL(bind(stale, (struct sockaddr *)&address, sizeof(address)), 0);
    close(stale);
    fixture_start(&fx, NULL);
    fixture_start(&other, NULL);
    CU_ASSERT_EQUAL(nbd_server_listen_unix(fx.server, socket_path(), NULL), 0);
    CU_ASSERT_EQUAL(nbd_server_listen_unix(other.server, socket_path(), &diag), -EADDRINUSE);
    CU_ASSERT_STRING_EQUAL(diag.code, "E_IN_USE");
    fixture_stop(&other);
    int fd = connect_unix(socket_path());
    CU_ASSERT(client_go(&fx, fd)); /* the first one's is still there */
    close(fd);
    fixture_stop(&fx);
    int file = open(socket_path(), O_CREAT | O_WRONLY, 0600);
    fixture_start(&fx, NULL);
    CU_ASSERT(nbd_server_listen_unix(fx.server, socket_path(), NULL) < 0);
    fixture_stop(&fx);
    CU_ASSERT_EQUAL(unlink(socket_path()), 0); /* a file is nobody's to replace */
    close(file);
    rmdir(directory);
}

static void
bad_addresses_are_refused(void)
{
    static const char *const bad[] = {"",         "localhost", "127.0.0.1", "127.0.0.1:",
                                      "::1:1080", "[::1]",     "host:x",    "1.2.3.4:123456"};
    struct nbd_fixture fx;
    struct diag diag;
    fixture_start(&fx, NULL);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CU_ASSERT_EQUAL(nbd_server_listen_tcp(fx.server, bad[i], &diag), -EINVAL);
        CU_ASSERT_STRING_EQUAL(diag.code, "E_LISTEN_ADDRESS");
    }
    CU_ASSERT_EQUAL(nbd_server_listen_tcp(fx.server, "127.0.0.1:0", &diag), 0);
    CU_ASSERT_EQUAL(nbd_server_listen_tcp(fx.server, ":0", &diag), 0);
    fixture_stop(&fx);
}

static void
pipes_serve_too(void)
{
    struct nbd_fixture fx;
    int in[2], out[2];
    struct nbd_greeting greeting;
    uint8_t reply[134];
    fixture_start(&fx, NULL);
    CU_ASSERT_EQUAL(pipe(in) + pipe(out), 0);
    CU_ASSERT_EQUAL(nbd_server_serve_fd(fx.server, in[0], out[1], NULL, NULL), 0);
    struct nbd_option_header name = {be64_make(NBD_OPTION_MAGIC), be32_make(1), be32_make(0)};
    CU_ASSERT_EQUAL(write(in[1], "\0\0\0\3", 4), 4);
    CU_ASSERT_EQUAL(write(in[1], &name, sizeof(name)), sizeof(name));
    close(in[1]);
    fixture_run(&fx, 20);
    CU_ASSERT_EQUAL(read(out[0], &greeting, sizeof(greeting)), sizeof(greeting));
    CU_ASSERT_EQUAL(read(out[0], reply, sizeof(reply)), 10);
    CU_ASSERT_EQUAL(read(out[0], reply, 1), 0);
    close(out[0]);
    fixture_stop(&fx);
}

static void
set_true(void *flag)
{
    *(bool *)flag = true;
}

/* One request is in flight and one client is idle when the server stops. */
static void
stop_with(enum nbd_stop mode)
{
    struct nbd_fixture fx;
    uint64_t cookie;
    bool stopped = false;
    fixture_start(&fx, NULL);
    int idle = fixture_connect(&fx), silent = fixture_connect(&fx);
    CU_ASSERT(client_go(&fx, fx.fd));
    CU_ASSERT(client_go(&fx, idle));
    fx.ram.hold = true;
    CU_ASSERT(client_request(&fx, fx.fd, NBD_CMD_FLUSH, 0, 0, 0, 1));
    fixture_run(&fx, 10);
    nbd_server_stop(fx.server, mode, 5000, set_true, &stopped);
    CU_ASSERT(fixture_wait_closed(&fx, 2));
    CU_ASSERT_FALSE(stopped);
    CU_ASSERT(client_request(&fx, fx.fd, NBD_CMD_FLUSH, 0, 0, 0, 2));
    fixture_run(&fx, 10);
    if (mode == NBD_STOP_FINAL) {
        CU_ASSERT_EQUAL(client_reply(&fx, fx.fd, &cookie), NBD_ESHUTDOWN);
        CU_ASSERT_EQUAL(cookie, 2);
    }
    ram_dev_release(&fx.ram, false);
    CU_ASSERT_EQUAL(client_reply(&fx, fx.fd, &cookie), 0);
    CU_ASSERT_EQUAL(cookie, 1);
    CU_ASSERT(fixture_is_closed(&fx, fx.fd)); /* RESTART: no word about request 2 */
    CU_ASSERT_EQUAL(loop_run_until(fx.loop, &stopped), 0);
    close(fx.fd);
    close(idle);
    close(silent);
    loop_destroy(fx.loop);
    ram_dev_destroy(&fx.ram);
}

static void
a_restart_answers_what_is_in_flight_and_nothing_else(void)
{
    stop_with(NBD_STOP_RESTART);
}

static void
a_final_stop_refuses_what_comes_meanwhile(void)
{
    stop_with(NBD_STOP_FINAL);
}

static void
a_device_that_never_answers_does_not_stop_the_stop(void)
{
    struct nbd_fixture fx;
    bool stopped = false;
    fixture_start(&fx, NULL);
    CU_ASSERT(client_go(&fx, fx.fd));
    fx.ram.hold = true;
    CU_ASSERT(client_request(&fx, fx.fd, NBD_CMD_READ, 0, 0, 4096, 1));
    fixture_run(&fx, 10);
    nbd_server_stop(fx.server, NBD_STOP_RESTART, 50, set_true, &stopped);
    CU_ASSERT_EQUAL(loop_run_until(fx.loop, &stopped), 0);
    CU_ASSERT_EQUAL(fx.closed, 0);
    ram_dev_release(&fx.ram, false); /* what was left behind goes when it can */
    CU_ASSERT(fixture_wait_closed(&fx, 1));
    fixture_run(&fx, 10);
    close(fx.fd);
    loop_destroy(fx.loop);
    ram_dev_destroy(&fx.ram);
}

static void
count_removed(void *ctx)
{
    ++*(uint32_t *)ctx;
}

static void
when_the_last_client_leaves_the_export_is_flushed(void)
{
    struct nbd_fixture fx;
    uint8_t data[512] = {1};
    fixture_start(&fx, NULL);
    int other = fixture_connect(&fx);
    CU_ASSERT(client_go(&fx, fx.fd));
    CU_ASSERT(client_go(&fx, other));
    CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_WRITE, 0, 0, sizeof(data), data), 0);
    close(other);
    CU_ASSERT(fixture_wait_closed(&fx, 1));
    CU_ASSERT_EQUAL(fx.ram.op_count[REQ_FLUSH], 0);
    close(fx.fd);
    CU_ASSERT(fixture_wait_closed(&fx, 2));
    CU_ASSERT_EQUAL(fx.ram.op_count[REQ_FLUSH], 1);
    /* One that never chose the export changes nothing. */
    other = fixture_connect(&fx);
    CU_ASSERT(client_hello(&fx, other, 3));
    close(other);
    CU_ASSERT(fixture_wait_closed(&fx, 3));
    CU_ASSERT_EQUAL(fx.ram.op_count[REQ_FLUSH], 1);
    fx.fd = -1;
    fixture_stop(&fx);
}

static void
whoever_comes_and_leaves_during_that_flush_gets_one_more(void)
{
    struct nbd_fixture fx;
    fixture_start(&fx, NULL);
    CU_ASSERT(client_go(&fx, fx.fd));
    fx.ram.hold = true;
    close(fx.fd);
    CU_ASSERT(fixture_wait_closed(&fx, 1));
    CU_ASSERT_EQUAL(fx.ram.held_count, 1);
    for (uint32_t i = 2; i < 5; i++) {
        fx.fd = fixture_connect(&fx);
        CU_ASSERT(client_go(&fx, fx.fd));
        close(fx.fd);
        CU_ASSERT(fixture_wait_closed(&fx, i));
        CU_ASSERT_EQUAL(fx.ram.op_count[REQ_FLUSH], 1);
    }
    /* Who wants the export back waits for the flush, too; one that fails is not for ever. */
    uint32_t removed = 0;
    nbd_server_remove(fx.server, &fx.export, count_removed, &removed);
    fixture_run(&fx, 10);
    CU_ASSERT_EQUAL(removed, 0);
    fx.ram.fail_err = -EIO;
    ram_dev_release(&fx.ram, false);
    CU_ASSERT_EQUAL(fx.ram.op_count[REQ_FLUSH], 2);
    CU_ASSERT_EQUAL(removed, 1);
    fx.fd = -1;
    fixture_stop(&fx);
}

static void *
run_loop(void *loop)
{
    check_eq(loop_run(loop), 0);
    return NULL;
}

static void
other_loops_serve_and_come_home(void)
{
    struct loop *loops[3];
    pthread_t threads[3];
    struct mailbox *owner;
    struct nbd_fixture fx = {.fd = -1};
    bool stopped = false;
    int fds[12];
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(loop_create(&loops[i], clock_real()), 0);
    struct nbd_server_config config = {.loops = loops, .loop_count = 3};
    fx.loop = loops[0];
    CU_ASSERT_EQUAL(mailbox_create(&owner, loops[0]), 0);
    CU_ASSERT_EQUAL(nbd_server_create(&fx.server, &config, NULL), 0);
    ram_dev_init(&fx.ram, FIXTURE_BYTES);
    fx.export = (struct nbd_export){.name = "ram",
                                    .dev = &fx.ram.dev,
                                    .owner = owner,
                                    .owner_loop = loops[0],
                                    .size_bytes = FIXTURE_BYTES,
                                    .preferred_bytes = 4096};
    CU_ASSERT_EQUAL(nbd_server_add(fx.server, &fx.export), 0);
    for (size_t i = 1; i < 3; i++)
        pthread_create(&threads[i], NULL, run_loop, loops[i]);
    for (uint32_t i = 0; i < ARRAY_LEN(fds); i++) {
        uint8_t data[8192];
        fds[i] = fx.fd = fixture_connect(&fx);
        CU_ASSERT(client_go(&fx, fds[i]));
        memset(data, (int)i + 1, sizeof(data));
        CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_WRITE, 0, i * 8192, 8192, data), 0);
        if (i != 0) { /* what one connection wrote, the next one sees */
            CU_ASSERT_EQUAL(client_do(&fx, NBD_CMD_READ, 0, (i - 1) * 8192, 8192, data), 0);
            CU_ASSERT_EQUAL(data[8191], i);
        }
    }
    /* Half of them vanish with requests under way. */
    for (uint32_t i = 0; i < ARRAY_LEN(fds); i += 2) {
        for (uint64_t j = 0; j < 20; j++)
            CU_ASSERT(client_request(&fx, fds[i], NBD_CMD_READ, 0, 0, 65536, j));
        close(fds[i]);
    }
    CU_ASSERT(fixture_wait_closed(&fx, ARRAY_LEN(fds) / 2));
    nbd_server_stop(fx.server, NBD_STOP_FINAL, 5000, set_true, &stopped);
    CU_ASSERT_EQUAL(loop_run_until(fx.loop, &stopped), 0);
    for (uint32_t i = 1; i < ARRAY_LEN(fds); i += 2)
        close(fds[i]);
    for (size_t i = 1; i < 3; i++) {
        loop_stop(loops[i]);
        pthread_join(threads[i], NULL);
        loop_destroy(loops[i]);
    }
    mailbox_destroy(owner);
    loop_destroy(loops[0]);
    ram_dev_destroy(&fx.ram);
}

static void
without_descriptors_clients_are_turned_away_and_later_served(void)
{
    struct nbd_fixture fx;
    struct rlimit limit, low;
    mkdir(directory, 0700);
    fixture_start(&fx, NULL);
    CU_ASSERT_EQUAL(nbd_server_listen_unix(fx.server, socket_path(), NULL), 0);
    int fd = connect_unix(socket_path()), highest = dup(0);
    CU_ASSERT_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    close(highest);
    low = limit;
    low.rlim_cur = (rlim_t)highest;
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &low), 0);
    CU_ASSERT(fixture_is_closed(&fx, fd));
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    close(fd);
    fd = connect_unix(socket_path());
    CU_ASSERT(client_go(&fx, fd));
    close(fd);
    fixture_stop(&fx);
    rmdir(directory);
}

SUITE_MAIN("nbd_server", T(a_unix_socket_is_private_and_goes_with_the_server),
           T(a_stale_socket_is_replaced_a_live_one_is_not), T(bad_addresses_are_refused),
           T(pipes_serve_too), T(a_restart_answers_what_is_in_flight_and_nothing_else),
           T(a_final_stop_refuses_what_comes_meanwhile),
           T(a_device_that_never_answers_does_not_stop_the_stop),
           T(when_the_last_client_leaves_the_export_is_flushed),
           T(whoever_comes_and_leaves_during_that_flush_gets_one_more),
           T(other_loops_serve_and_come_home),
           T(without_descriptors_clients_are_turned_away_and_later_served))
