/*
 * list.c - lists of nodes that live in what they link, so linking allocates nothing.
 */
