/*
 * Random input from a peer: frames, handshakes, answers of EPMD.
 *
 * An input begins as a valid frame and then loses or changes a few bytes. It lies in memory of exactly its size, so that AddressSanitizer
 * sees each access beyond. A frame is handled as the reader of a connection handles it, with actors behind it. Some of the frames still
 * reach an actor; the test counts both.
 *
 * `make fuzz-node` runs ten million inputs; BLITZ_FUZZ_INPUTS sets another number for each case.
 */
#include "harness.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "node/node.h"
#include "support/node_scene.h"
#include "support/terms.h"

enum { ROOM = 4096 };

static uint64_t inputs(void)
{
    const char *text = getenv("BLITZ_FUZZ_INPUTS");
    return text != NULL && *text != '\0' ? strtoull(text, NULL, 10) : t_scaled(40000);
}

static uint32_t below(struct t_rng *r, uint32_t n)
{
    return (uint32_t)t_rng_below(r, n);
}

/* Change, drop or double a few bytes. Returns the new length. */
static size_t damage(struct t_rng *r, unsigned char *data, size_t bytes)
{
    static const unsigned char edges[] = {0, 1, 2, 97, 104, 119, 127, 128, 131, 254, 255};
    for (uint32_t times = below(r, 4); times > 0 && bytes > 0; times--) {
        size_t at = below(r, (uint32_t)bytes), n = 1 + below(r, 8);
        n = n < bytes - at ? n : bytes - at;
        switch (below(r, 5)) {
        case 0:
            data[at] = (unsigned char)below(r, 256);
            break;
        case 1:
            data[at] = edges[below(r, sizeof edges)];
            break;
        case 2:
            memmove(data + at, data + at + n, bytes - at - n);
            bytes -= n;
            break;
        case 3:
            if (bytes + n <= ROOM) {
                memmove(data + at + n, data + at, bytes - at);
                bytes += n;
            }
            break;
        default:
            bytes = at;
        }
    }
    return bytes;
}

static blitz_term_pid a_pid(struct t_rng *r, blitz_node *n, blitz_actor_id id)
{
    blitz_term_pid pid;
    CHECK_EQ(blitz_node_pid_of(n, id, &pid), 0);
    if (below(r, 3) == 0)
        pid.node = blitz_term_atom_of(below(r, 2) ? "other@localhost" : "peer@localhost");
    if (below(r, 4) == 0)
        pid.serial += below(r, 3);
    return pid;
}

/* A control message of any number, with the parts that it should have or others. */
static size_t a_frame(struct t_rng *r, unsigned char *buf, blitz_node *n, blitz_actor_id id)
{
    static const char *const forms[] = {"2_t",    "6f_n",  "22ft",   "1ft",     "3ft_",   "19ftr",
                                        "19fnr",  "20ftr", "21ftr_", "35ift",   "36ift",  "8ft_",
                                        "16f_n_", "5",     "33fr",   "29rf_mo", "31rtit", "31rti_"};
    const char *form = forms[below(r, BZ_ARRAY_LEN(forms))];
    int op = atoi(form);
    blitz_term_out out;
    size_t bytes;
    form += op < 10 ? 1 : 2;
    blitz_term_out_init(&out, buf, ROOM);
    blitz_term_put_bytes(&out, "p", 1);
    blitz_term_put_version(&out);
    blitz_term_put_tuple(&out, (uint32_t)strlen(form) + 1);
    blitz_term_put_int(&out, op);
    for (; *form != '\0'; form++) {
        blitz_term_pid pid = a_pid(r, n, id);
        blitz_term_ref ref = {pid.node, 1, 3, {1, 2, 3, 0, 0}};
        if (below(r, 2) == 0) { /* one of ours, as a call has it */
            ref.creation = t_info(n).creation;
            ref.id[2] = BZ_REF_OF_A_CALL;
        }
        switch (*form) {
        case 'n':
            blitz_term_put_atom(&out, below(r, 2) ? "adder" : "net_kernel");
            break;
        case 'r':
            blitz_term_put_ref(&out, &ref);
            break;
        case 'm': /* an entry, or none */
            blitz_term_put_tuple(&out, 3);
            blitz_term_put_atom(&out, "jobs");
            blitz_term_put_atom(&out, below(r, 4) != 0 ? "start" : "stop");
            blitz_term_put_int(&out, 1);
            break;
        case 'o':
            blitz_term_put_list(&out, 2);
            blitz_term_put_atom(&out, below(r, 2) ? "link" : "priority");
            blitz_term_put_atom(&out, below(r, 2) ? "monitor" : "link");
            blitz_term_put_nil(&out);
            break;
        case 'i':
            blitz_term_put_int(&out, 7);
            break;
        case '_':
            blitz_term_put_atom(&out, "");
            break;
        case 'f': /* a peer speaks for its own processes */
            if (below(r, 8) != 0)
                pid.node = blitz_term_atom_of("peer@localhost");
            blitz_term_put_pid(&out, &pid);
            break;
        default:
            blitz_term_put_pid(&out, &pid);
        }
    }
    if (op == 29) { /* [N], as a list or as a string */
        blitz_term_put_version(&out);
        if (below(r, 2) == 0) {
            blitz_term_put_string(&out, "\5", 1);
        } else {
            blitz_term_put_list(&out, 1);
            blitz_term_put_int(&out, 500);
            blitz_term_put_nil(&out);
        }
    }
    if (op == 2 || op == 6 || op == 22 || op == 16 || op == 33) {
        blitz_term_put_version(&out);
        if (below(r, 4) == 0) {
            t_put_any_term(r, &out, 3, T_TERM_ALL);
        } else if (below(r, 3) == 0) { /* a ping */
            blitz_term_pid pid = a_pid(r, n, id);
            blitz_term_put_tuple(&out, 3);
            blitz_term_put_atom(&out, "$gen_call");
            blitz_term_put_tuple(&out, 2);
            blitz_term_put_pid(&out, &pid);
            blitz_term_put_int(&out, 1);
            blitz_term_put_tuple(&out, 2);
            blitz_term_put_atom(&out, "is_auth");
            blitz_term_put_atom(&out, "x");
        } else if (below(r, 3) == 0) { /* a call */
            blitz_term_pid pid = a_pid(r, n, id);
            blitz_term_ref ref = {pid.node, 1, 3, {1, 2, 3, 0, 0}};
            pid.node = blitz_term_atom_of("peer@localhost");
            blitz_term_put_tuple(&out, 3);
            blitz_term_put_atom(&out, "$gen_call");
            blitz_term_put_tuple(&out, 2);
            blitz_term_put_pid(&out, &pid);
            blitz_term_put_list(&out, 1);
            blitz_term_put_atom(&out, "alias");
            blitz_term_put_ref(&out, &ref);
            blitz_term_put_tuple(&out, 3);
            blitz_term_put_atom(&out, "add");
            blitz_term_put_int(&out, 1);
            blitz_term_put_pid(&out, &pid);
        } else {
            blitz_term_pid pid = a_pid(r, n, id);
            blitz_term_put_tuple(&out, 3);
            blitz_term_put_atom(&out, "add");
            blitz_term_put_int(&out, 1);
            blitz_term_put_pid(&out, &pid);
        }
    }
    CHECK_EQ(blitz_term_out_end(&out, &bytes), 0);
    return bytes;
}

/* An actor that a peer may start, and that ends at once. */
struct fuzz_job {
    int64_t n;
};

static int fuzz_job_init(void *state)
{
    return ((struct fuzz_job *)state)->n > 0 ? BLITZ_ACTOR_STOP : -EIO;
}

BLITZ_TERM_TUPLE(fuzz_job_args, struct fuzz_job, BLITZ_TERM_INT(struct fuzz_job, n));
static const blitz_behaviour fuzz_job = {
    .name = "job", .state_bytes = sizeof(struct fuzz_job), .init = fuzz_job_init};
static const blitz_node_entry fuzz_entries[] = {{"jobs", "start", &fuzz_job, &fuzz_job_args}};

/* A session without a connection: what it queues is thrown away. */
static int frames(void *arg)
{
    struct t_nodes w;
    struct t_rng r = t_rng_of(0);
    unsigned char buf[ROOM];
    uint64_t bad = 0, n = inputs();
    (void)arg;
    t_nodes_places(&w);
    CHECK_EQ(t_node_start(
                 &w, 0, T_COOKIE,
                 (blitz_node_opts){.no_listen = true, .entries = fuzz_entries, .entry_count = 1}),
             0);
    blitz_actor_id adder = t_adder("adder");
    struct bz_session s = {.node = w.node[0]};
    CHECK_EQ(bz_peer_get(w.node[0], "peer@localhost", 14, true, &s.peer), 0);
    for (uint64_t i = 0; i < n; i++) {
        size_t bytes = damage(&r, buf, a_frame(&r, buf, w.node[0], adder));
        unsigned char *data = t_exactly(buf, bytes);
        int rc = bz_session_handle(&s, data, bytes);
        CHECK(rc == 0 || rc == -EPROTO);
        bad += rc != 0;
        free(data);
        if (i % 64 == 0)
            CHECK_EQ(blitz_actors_wait_quiet(NULL, t_soon()), 0);
        if (!blitz_actor_is_alive(adder)) /* an exit signal that was valid */
            adder = t_adder("adder");
    }
    CHECK_LE(t_info(w.node[0]).peers,
             2u); /* no name of a message was kept; the adder answers peers that are known */
    t_note("%llu of %llu refused, %llu received", (unsigned long long)bad, (unsigned long long)n,
           (unsigned long long)t_info(w.node[0]).received);
    CHECK_GT(bad, 0u);
    CHECK_GT(t_info(w.node[0]).received, 0u);
    (void)blitz_actor_stop(adder);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, t_soon()), 0);
    bz_peer_unref(s.peer);
    blitz_node_stop(w.node[0]);
    return 0;
}

TEST_LIMIT(node_fuzz, damaged_frames_are_refused_or_handled, 36000)
{
    CHECK_EQ(blitz_run(frames, NULL, &(blitz_runtime_opts){.procs = 1}), 0);
}

TEST_LIMIT(node_fuzz, damaged_handshakes_and_answers_are_refused_or_read, 36000)
{
    struct t_rng r = t_rng_of(1);
    struct bz_hello me = {.flags = BZ_NODE_OFFERS, .creation = 7, .challenge = 99, .bytes = 3}, got;
    unsigned char buf[ROOM];
    memcpy(me.name, "a@b", 4);
    for (uint64_t i = 0, n = inputs(); i < n; i++) {
        static const unsigned char port[] = {119, 0, 1, 2, 77, 0, 0, 6, 0, 5, 0, 1, 'a', 0, 0};
        uint32_t number;
        uint16_t short_number;
        size_t used, bytes;
        switch (i % 4) {
        case 0:
            bytes = bz_shake_put_name(buf, &me);
            break;
        case 1:
            bytes = bz_shake_put_challenge(buf, &me);
            break;
        case 2:
            bytes = bz_shake_put_status(buf, BZ_STATUS_ALIVE);
            break;
        default:
            memcpy(buf, port, sizeof port);
            bytes = sizeof port;
        }
        bytes = damage(&r, buf, bytes);
        size_t skip = bytes < 2 || i % 4 == 3 ? 0 : 2;
        unsigned char *data = t_exactly(buf + skip, bytes - skip);
        bytes -= skip;
        if (bz_shake_get_name(data, bytes, &got) == 0)
            CHECK(bz_node_name_is_good(got.name, strlen(got.name)));
        if (bz_shake_get_challenge(data, bytes, &got) == 0)
            CHECK(bz_node_name_is_good(got.name, strlen(got.name)));
        (void)bz_shake_get_status(data, bytes);
        CHECK_NE(bz_shake_get_reply(data, bytes, "x", 1, &number), 0);
        CHECK_NE(bz_shake_get_ack(data, bytes, "x", 1), 0);
        if (bz_epmd_read_alive(data, bytes, &number, &used) == 0)
            CHECK_LE(used, bytes);
        if (bz_epmd_read_port(data, bytes, &short_number, &used) == 0)
            CHECK_LE(used, bytes);
        free(data);
    }
}
