/* blitz/chan.h - a fixture of the lint tests, and more words to make it an essay. */

typedef struct blitz_chan_opts {
    void (*drop)(void *value);
    int is_ordered;
} blitz_chan_opts;

typedef struct blitz_chan_future {
    blitz_future future; /* to be awaited */
    int error;
} blitz_chan_future;

typedef struct blitz_inner_future {
    blitz_chan_future inner;
    int result;
} blitz_inner_future;

typedef struct blitz_stream_ops {
    int (*read)(void *ctx, blitz_deadline until, void *data);
    int (*to_pipe)(void *ctx, int pipe);
} blitz_stream_ops;

BLITZ_API int blitz_chan_new(size_t size, void (*drop)(void *value, void *ctx), blitz_chan **out);
BLITZ_API int blitz_chan_new_with(const blitz_chan_opts *opts, size_t size, blitz_chan **out);
BLITZ_API blitz_chan *blitz_set_new(size_t size);
BLITZ_API void blitz_chan_free(blitz_chan *c);
BLITZ_API int blitz_chan_recv(blitz_chan *c, blitz_deadline until, void *value);
BLITZ_API int blitz_chan_is_closed(blitz_chan *c);
BLITZ_API void blitz_chan_order(blitz_chan *c, int is_ordered);
BLITZ_API void blitz_chan_future_init(blitz_chan_future *f, blitz_chan *c);
BLITZ_API void blitz_chan_recv_future(blitz_chan_future *f, blitz_chan *c);
BLITZ_API int blitz_fd_wait(int fd, blitz_deadline until);
BLITZ_API int blitz_tcp_release(blitz_tcp *t);
#define BLITZ_WAIT(until, future) blitz_await(future, until)
BLITZ_API int blitz_run(int (*fn)(void *arg), const blitz_config *config);
