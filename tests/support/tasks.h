/*
 * tasks.h - the kernel's state of our threads: /proc/self/task.
 *
 * Lets a test wait for a fact ("the thread sleeps now") instead of sleeping.
 */
#ifndef T_TASKS_H
#define T_TASKS_H

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int t_tid(void)
{
    return (int)syscall(SYS_gettid);
}

/* Read /proc/self/task/TID/FILE; false if the thread is gone. */
static inline bool t_task_read(int tid, const char *file, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, room - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Return once the thread sleeps in the kernel; false if it ends instead. */
static inline bool t_until_asleep(int tid)
{
    char text[512];
    while (t_task_read(tid, "stat", text, sizeof text)) {
        const char *after_name = strrchr(text, ')');
        if (after_name != NULL && after_name[1] == ' ' && after_name[2] == 'S')
            return true;
        sched_yield();
    }
    return false;
}

/* Return once the thread is no more. */
static inline void t_until_gone(int tid)
{
    char text[8];
    while (t_task_read(tid, "comm", text, sizeof text))
        sched_yield();
}

#endif
