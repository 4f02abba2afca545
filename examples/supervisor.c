/*
 * supervisor.c - keep programs running: start them, restart those that fail, and stop them in order.
 *
 *     example_supervisor COMMAND...      each argument is a command of the shell; until Ctrl-C or SIGTERM
 *     example_supervisor                 three built-in commands, for a moment
 *
 * Each command has a task that waits for its end, and starts it again after a pause that grows while it fails quickly.
 * Ctrl-C stops all of them: SIGTERM to the command's process group, and SIGKILL after two seconds. A second Ctrl-C
 * kills at once. The coordinator counts the running tasks, so the program ends when the last child has ended.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <blitz.h>

enum { GRACE_S = 2, PAUSE_MIN_MS = 50, PAUSE_MAX_S = 10, STEADY_S = 5 };

static blitz_shutdown *stop;
static int starts, failures; /* for the built-in commands */

static blitz_process *start(const char *text)
{
    blitz_command *c;
    blitz_process *p = NULL;
    blitz_start_failure why;
    if (blitz_command_new("/bin/sh", &c) != 0)
        return NULL;
    blitz_command_arg(c, "-c");
    blitz_command_arg(c, text);
    blitz_command_group(c, 0); /* the shell and its children are signalled together */
    int err = blitz_command_start(c, &why, &p);
    if (err != 0)
        fprintf(stderr, "%s: %s: error %d\n", text, why.name, -err);
    blitz_command_unref(c);
    __atomic_fetch_add(&starts, err == 0, __ATOMIC_RELAXED);
    return p;
}

/* The shutdown has begun: ask, and kill if it does not hear or if there is a second Ctrl-C. */
static void end(blitz_process *p, blitz_exit *e)
{
    blitz_process_future ended;
    blitz_token_future forced;
    (void)blitz_process_signal_group(p, SIGTERM);
    blitz_process_wait_future_init(&ended, p);
    blitz_token_wait_future_init(&forced, blitz_shutdown_token(stop));
    blitz_future *any[] = {&ended.future, &forced.future};
    if (blitz_first_of(any, 2, blitz_after(GRACE_S * BLITZ_S)) != 0)
        (void)blitz_process_signal_group(p, SIGKILL);
    if (blitz_process_wait(p, e, BLITZ_FOREVER) != 0)
        *e = (blitz_exit){.code = -1};
}

/* True if the process has ended by itself; false if we have ended it. */
static bool watch(blitz_process *p, blitz_exit *e)
{
    blitz_process_future ended;
    blitz_sync_future told;
    blitz_process_wait_future_init(&ended, p);
    blitz_shutdown_wait_future_init(&told, stop);
    blitz_future *any[] = {&ended.future, &told.future};
    if (blitz_first_of(any, 2, BLITZ_FOREVER) == 0) {
        *e = ended.exit;
        return true;
    }
    end(p, e);
    return false;
}

static int supervise(void *arg)
{
    const char *text = arg;
    blitz_duration pause = PAUSE_MIN_MS * BLITZ_MS;
    if (blitz_shutdown_enter(stop) != 0)
        return 0;
    while (!blitz_shutdown_is_begun(stop)) {
        blitz_exit e = {.code = -1};
        char how[64];
        blitz_deadline steady = blitz_after(STEADY_S * BLITZ_S);
        blitz_process *p = start(text);
        bool ended = p == NULL || watch(p, &e);
        blitz_process_unref(p);
        (void)blitz_exit_format(&e, how, sizeof how);
        printf("%s: %s%s\n", text, how, ended ? ", again" : "");
        if (!ended)
            break;
        __atomic_fetch_add(&failures, !blitz_exit_is_ok(&e), __ATOMIC_RELAXED);
        pause = blitz_now() > steady ? PAUSE_MIN_MS * BLITZ_MS : pause * 2;
        if (pause > PAUSE_MAX_S * BLITZ_S)
            pause = PAUSE_MAX_S * BLITZ_S;
        (void)!blitz_shutdown_wait(stop, blitz_after(pause)); /* sleep, or be told */
    }
    blitz_shutdown_leave(stop);
    return 0;
}

static char **commands;
static int count;

static int program(void *arg)
{
    blitz_scope s;
    (void)arg;
    if (blitz_scope_open(&s, NULL, BLITZ_FOREVER) != 0)
        return 1;
    for (int i = 0; i < count; i++)
        if (blitz_scope_spawn(&s, supervise, commands[i], NULL) != 0)
            return 1;
    int rc = blitz_shutdown_run(stop, BLITZ_FOREVER);
    if (rc < 0)
        fprintf(stderr, "shutdown: error %d\n", -rc);
    return blitz_scope_close(&s) != 0 || rc < 0;
}

/* The built-in commands: one fails at once, one ends, one does not hear. After a few starts, a SIGTERM to ourselves. */
static int demo(void *arg)
{
    blitz_task *t;
    if (blitz_spawn(program, arg, NULL, &t) != 0)
        return 1;
    while (__atomic_load_n(&starts, __ATOMIC_RELAXED) < 6 ||
           __atomic_load_n(&failures, __ATOMIC_RELAXED) < 2)
        (void)!blitz_sleep(BLITZ_MS);
    raise(SIGTERM);
    int rc;
    return blitz_task_join(t, &rc, BLITZ_FOREVER) != 0 || rc != 0;
}

int main(int argc, char **argv)
{
    static char first[] = "exit 3", second[] = "exit 0", third[] = "exec sleep 1000";
    static char *own[] = {first, second, third};
    commands = argc > 1 ? argv + 1 : own;
    count = argc > 1 ? argc - 1 : 3;
    if (blitz_shutdown_new(&(blitz_shutdown_opts){.drain = 10 * BLITZ_S}, &stop) != 0)
        return 1;
    int rc = blitz_run(argc > 1 ? program : demo, NULL, NULL);
    blitz_shutdown_unref(stop);
    printf("%d starts\n", starts);
    return rc;
}
