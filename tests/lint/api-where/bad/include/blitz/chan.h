/* blitz/chan.h - a fixture of the lint tests, and more words to make it an essay. */

/*
 * Send.
 * Suspends: until there is room. Call from the moon.
 */
BLITZ_API BLITZ_SUSPENDS int blitz_chan_send(blitz_chan *c, const void *value);

/*
 * Close.
 * Suspends: never. Call from
 *           any thread.
 */
BLITZ_API void blitz_chan_close(blitz_chan *c);
