/*
 * empty.c - a test program without a case.
 */
