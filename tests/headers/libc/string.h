/* As much of string.h as the headers use. */
#ifndef LIBC_STRING_H
#define LIBC_STRING_H
#include <stddef.h>
#if defined(__cplusplus)
extern "C" {
#endif
void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
int strcmp(const char *a, const char *b);
#if defined(__cplusplus)
}
#endif
#endif
