/* blitz/chan.h - a fixture of the lint tests, and more words to make it an essay. */
#define BLITZ_API __attribute__((visibility("default")))

/* An object is not a function. */
BLITZ_API extern const char blitz_abi_0;

/*
 * Send one value.
 * Owns:     copies *value before it returns.
 * Suspends: until there is room.
 * Returns:  0, -EPIPE (closed).
 */
BLITZ_API BLITZ_SUSPENDS int blitz_chan_send(blitz_chan *c, const void *value,
                                             blitz_deadline until);

/*
 * Two of a kind.
 * Suspends: never.
 */
BLITZ_API void blitz_poll(void);
BLITZ_API void blitz_poll_twice(void);

static inline int blitz_helper_(void *p)
{
    return p != NULL;
}
