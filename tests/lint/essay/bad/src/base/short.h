/* short.h - list. */
