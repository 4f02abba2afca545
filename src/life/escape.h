/*
 * escape.h - a C++ exception that leaves the function of a task ends the process, and the log names the task.
 */
#ifndef BZ_ESCAPE_H
#define BZ_ESCAPE_H

#include "arch/eh.h"

/* Look for the C++ runtime of the process. Called when a runtime of ours starts. */
void bz_escape_init(void);

/* Log which task it was; std::terminate() follows. */
bz_eh_personality bz_task_escape BZ_HIDDEN;

/* In a function that calls a task's function and nothing else, and is not inlined: no exception
 * passes its frame. */
#define BZ_STOP_EXCEPTIONS() BZ_EH_STOP(bz_task_escape)

#endif
