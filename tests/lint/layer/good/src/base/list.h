/* list.h - a fixture of the lint tests, and more words to make it an essay. */
#include "blitz/api.h"
/* #include "sched/proc.h" would be wrong */
