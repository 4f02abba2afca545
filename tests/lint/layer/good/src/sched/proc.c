/* proc.c - a fixture of the lint tests, and more words to make it an essay. */
#include <stdlib.h>

#include "base/list.h"
#include "sched/proc.h"
