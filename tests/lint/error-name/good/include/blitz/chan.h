/* blitz/chan.h - a fixture of the lint tests, and more words to make it an essay. */

/* Returns:  0, -EINVAL, -EAGAIN. */
BLITZ_API int blitz_chan_send(void);
