/*
 * resolve - the addresses of hosts, all looked up at the same time.
 *
 *     resolve example.net localhost
 *
 * A thousand names need no thread: each lookup that waits is a task, and all of them share one cache. `resolve` without
 * names looks up localhost and a name of a hosts file that it writes itself, so that it needs no network.
 */
#include <blitz.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static blitz_resolver *resolver; /* NULL: that of the process */

static int look_up(void *arg)
{
    const char *host = arg;
    blitz_addr at[8];
    char line[600], text[BLITZ_ADDR_TEXT_MAX];
    int n = blitz_resolver_look_up(resolver, host, "https", at, 8, blitz_after(10 * BLITZ_S));
    int used = snprintf(line, sizeof line, "%s:", host);
    for (int i = 0; i < n && used < 400; i++)
        if (blitz_addr_print(&at[i], text, sizeof text) > 0)
            used += snprintf(line + used, sizeof line - (size_t)used, " %s", text);
    printf("%s%s%s\n", line, n < 0 ? " " : "", n < 0 ? strerror(-n) : "");
    return 0; /* an error would cancel the others: blitz/scope.h */
}

static int run(void *arg)
{
    char **hosts = arg;
    blitz_scope scope;
    int err = blitz_scope_open(&scope, NULL, BLITZ_FOREVER);
    for (; err == 0 && *hosts != NULL; hosts++)
        err = blitz_scope_spawn(&scope, look_up, *hosts, NULL);
    int end = blitz_scope_close(&scope);
    return err != 0 ? err : end;
}

/* Look up names of our own hosts file. */
static int show(void)
{
    static char name[] = "/tmp/blitz-hosts-XXXXXX"; /* lint: allow place: a temporary file */
    static char printer[] = "printer.example", localhost[] = "localhost",
                *hosts[] = {printer, localhost, NULL};
    int fd = mkstemp(name);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (f == NULL)
        return -EIO;
    fprintf(f, "192.0.2.7 printer.example printer\n");
    fclose(f);
    int err = blitz_resolver_new(&(blitz_resolver_opts){.by = BLITZ_RESOLVE_OWN, .hosts = name},
                                 &resolver);
    if (err == 0)
        err = blitz_run(run, hosts, NULL);
    blitz_resolver_unref(resolver);
    remove(name);
    return err;
}

int main(int argc, char **argv)
{
    int err = argc > 1 ? blitz_run(run, argv + 1, NULL) : show();
    return err != 0;
}
