/*
 * right.c - a file that was renamed, but its essay was not, which happens.
 */
