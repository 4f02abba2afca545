/* counted.h - code that is built to count its steps, and the tests that call it are not. */
#ifndef T_COUNTED_H
#define T_COUNTED_H

#include <stdatomic.h>

/* Go round until *is_over; returns how often. */
unsigned long counted_until(atomic_int *is_over);
/* Go round n times. */
void counted_times(unsigned long n);
/* fib, by forks and joins. */
int counted_fib(void *n);

#endif
