/* x.c - a queue. Only the owner writes the tail; a thief reads it. */
const char *x = "nobody"; /* the words of a string are not prose: `whoever` */
