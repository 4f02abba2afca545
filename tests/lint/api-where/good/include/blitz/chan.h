/* blitz/chan.h - a fixture of the lint tests, and more words to make it an essay. */

/*
 * Send.
 * Suspends: until there is room. Call from a task.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_chan_send(blitz_chan *c, const void *value);

/*
 * The same.
 * Suspends: as blitz_chan_send().
 */
BLITZ_API BLITZ_SUSPENDS int blitz_chan_send_twice(blitz_chan *c, const void *value);

/* Close. Suspends: never. */
BLITZ_API void blitz_chan_close(blitz_chan *c);

/* Which. Suspends: never. Call from any thread, also from a signal handler. */
BLITZ_API int blitz_version(void);
