/*
 * twice_a.c - the first of two files with a case of the same name.
 */
#include "harness.h"

TEST(twin, is_called_like_its_brother) {}
