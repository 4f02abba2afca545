/* blitz/error.h - EAGAIN EINVAL, and more words to make it an essay. */
