/*
 * libuv: reads on its pool of four threads. A caller that waits has one read in flight; cold reads have 32.
 */
#include <uv.h>

#include "fs/set.h"

static uv_loop_t *loop;
static uint64_t next_read, reads, chunk_bytes;
static int file;
static bool is_sequential;

struct reader {
    uv_fs_t req;
    uv_buf_t buf;
};

static void go_on(struct reader *r);

static void done(uv_fs_t *req)
{
    struct reader *r = (struct reader *)req->data;
    if (req->result != (ssize_t)chunk_bytes)
        bench_die("read");
    uv_fs_req_cleanup(req);
    go_on(r);
}

static void go_on(struct reader *r)
{
    uint64_t i = next_read++;
    if (i >= reads)
        return;
    int64_t at = (int64_t)(is_sequential ? i * SET_CHUNK % SET_BYTES : set_page(i) * SET_PAGE);
    r->req.data = r;
    uv_fs_read(loop, &r->req, file, &r->buf, 1, at, done);
}

static double read_all(uint64_t ops, unsigned readers, bool by_chunk, bool is_cold)
{
    static struct reader all[SET_READERS];
    static char memory[SET_READERS][SET_CHUNK];
    loop = uv_default_loop();
    file = set_open();
    if (is_cold)
        set_cool(file);
    is_sequential = by_chunk;
    chunk_bytes = by_chunk ? SET_CHUNK : SET_PAGE;
    next_read = 0;
    reads = ops;
    uint64_t began = is_cold ? bench_now_ns() : tasks_now_ns();
    for (unsigned i = 0; i < readers; i++) {
        all[i].buf = uv_buf_init(memory[i], (unsigned)chunk_bytes);
        go_on(&all[i]);
    }
    uv_run(loop, UV_RUN_DEFAULT);
    double ns = (double)((is_cold ? bench_now_ns() : tasks_now_ns()) - began);
    close(file);
    return ns;
}

static double case_cached(uint64_t ops)
{
    return read_all(ops, 1, false, false);
}

static double case_cold(uint64_t ops)
{
    return read_all(ops, SET_READERS, false, true);
}

static double case_sequential(uint64_t ops)
{
    return read_all(ops, 1, true, false);
}

static const struct tasks_case cases[] = {
    {"read-cached", TASKS_PACED, case_cached, 0},
    {"read-cold", TASKS_FIXED, case_cold, 4096},
    {"read-sequential", TASKS_PACED, case_sequential, 0},
};

int main(int argc, char **argv)
{
    return tasks_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]), tasks_measure);
}
