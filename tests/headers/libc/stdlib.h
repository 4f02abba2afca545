/* As much of stdlib.h as the headers use. */
#ifndef LIBC_STDLIB_H
#define LIBC_STDLIB_H
#include <stddef.h>
#if defined(__cplusplus)
extern "C" {
#endif
void *malloc(size_t size);
void free(void *memory);
#if defined(__cplusplus)
}
#endif
#endif
