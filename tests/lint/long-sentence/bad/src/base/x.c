/*
 * x.c - a ring. Short.
 *
 * This sentence goes on and on, for it has one clause and then another one, and as if that were not
 * enough it has a third, which explains the second, which in turn explained the first, and it ends.
 */
int x;
