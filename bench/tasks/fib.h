/* fib.h - the one Fibonacci number that all programs compute who fork or call for it. */
#ifndef BENCH_TASKS_FIB_H
#define BENCH_TASKS_FIB_H

enum { FIB_N = 38, FIB_RESULT = 39088169 };

#endif
