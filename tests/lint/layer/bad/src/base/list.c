/* list.c - a fixture of the lint tests, and more words to make it an essay. */
#include "base/list.h"
#include "sched/proc.h"
#include "blitz/task.h"
#include "list.h"
