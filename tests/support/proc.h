/*
 * proc.h - commands and their ends, for tests of processes.
 */
#ifndef T_PROC_H
#define T_PROC_H

#include "harness.h"

#include <signal.h>
#include <stdarg.h>

#include "blitz.h"

static inline blitz_command *t_command(const char *program, ...)
{
    blitz_command *c;
    va_list args;
    CHECK_EQ(blitz_command_new(program, &c), 0);
    va_start(args, program);
    for (const char *arg; (arg = va_arg(args, const char *)) != NULL;)
        blitz_command_arg(c, arg);
    va_end(args);
    return c;
}

/* A command of the shell. */
static inline blitz_command *t_shell(const char *text)
{
    return t_command("/bin/sh", "-c", text, NULL);
}

static inline blitz_process *t_start(blitz_command *c)
{
    blitz_process *p;
    blitz_start_failure why = {.name = ""};
    int err = blitz_command_start(c, &why, &p);
    if (err != 0)
        FAIL("start: %s: error %d", why.name, err);
    blitz_command_unref(c);
    return p;
}

static inline blitz_exit t_end_of(blitz_process *p)
{
    blitz_exit e;
    CHECK_EQ(blitz_process_wait(p, &e, BLITZ_FOREVER), 0);
    blitz_process_unref(p);
    return e;
}

/* Run it, and return its output, which must be text. */
static inline blitz_output t_output(blitz_command *c)
{
    blitz_output o;
    CHECK_EQ(blitz_command_output(c, NULL, &o, BLITZ_FOREVER), 0);
    blitz_command_unref(c);
    return o;
}

#endif
