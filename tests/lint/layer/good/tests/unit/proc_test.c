#include "sched/proc.h"
#include "harness.h"
