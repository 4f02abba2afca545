/* blitz/chan.h - a fixture of the lint tests, and more words to make it an essay. */

typedef struct blitz_chan_opts {
    void (*drop)(void *value, void *ctx);
    void *ctx;
    bool is_ordered;
} blitz_chan_opts;

typedef struct blitz_chan_future {
    blitz_future future; /* to be awaited */
    int result;
} blitz_chan_future;

BLITZ_API int blitz_chan_new(size_t size, const blitz_chan_opts *opts, blitz_chan **out);
BLITZ_API void blitz_chan_unref(blitz_chan *c);
BLITZ_API int blitz_chan_recv(blitz_chan *c, void *value, blitz_deadline until);
BLITZ_API int blitz_scope_open(blitz_scope *s, const blitz_scope_opts *opts, blitz_deadline until);
BLITZ_API int blitz_sleep_until(blitz_deadline when);
BLITZ_API bool blitz_chan_is_closed(blitz_chan *c);
BLITZ_API void blitz_chan_recv_future_init(blitz_chan_future *f, blitz_chan *c, void *value);
BLITZ_API void blitz_ready_future_init(blitz_ready_future *f, int result);
BLITZ_API int blitz_fd_wait(blitz_fd fd, blitz_deadline until);
BLITZ_API int blitz_tcp_release(blitz_tcp *t, blitz_fd *out);
BLITZ_API int blitz_spawn(int (*fn)(void *arg), void *arg, const blitz_spawn_opts *opts, blitz_task **out);
#define BLITZ_WAIT(future, until) blitz_await(future, until)
