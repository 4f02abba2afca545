/* proc.c - a fixture of the lint tests, and more words to make it an essay. */
#include <stdint.h>
#include <sanitizer/asan_interface.h>
// #include <unistd.h>
