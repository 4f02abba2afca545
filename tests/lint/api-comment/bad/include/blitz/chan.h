/* blitz/chan.h - a fixture of the lint tests, and more words to make it an essay. */

BLITZ_API void blitz_chan_silent(void);

/*
 * Make a channel.
 */
BLITZ_API int blitz_chan_new(size_t size, blitz_chan **out);

/*
 * Send.
 * Owns:     copies *value.
 * Suspends: until there is room.
 * Returns:  0.
 */
BLITZ_API int blitz_chan_send(blitz_chan *c, const void *value);

/*
 * Close.
 * Owns:     borrows until return.
 * Suspends: never.
 */
BLITZ_API BLITZ_SUSPENDS void blitz_chan_close(blitz_chan *c);

/* Count. Suspends: never. */
static inline int blitz_chan_count(void)
{
    return 0;
}
