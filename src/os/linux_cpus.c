/*
 * linux_cpus.c - the number of CPUs that the process may use.
 *
 * There are two limits, and the smaller counts. The affinity mask lists the CPUs. Its size is not
 * known in advance, so the buffer grows until the kernel accepts it. The CPU quota of cgroups
 * limits the time: quota / period CPUs. It applies to the group and everything below it, so the
 * smallest quota among the process's group and its ancestors counts (bug class 9). Fractions are
 * rounded up: with 1.5 CPUs a second thread can use the remaining half; at worst the kernel
 * throttles both for part of a period. At least 1.
 *
 * To find the groups: /proc/self/cgroup has the path of our group in each hierarchy (line "0::path"
 * for v2, a line with the controller "cpu" for v1). /proc/self/mountinfo has the mount point of
 * each hierarchy and the directory at the top of that mount (its root). In a container the two may
 * disagree. The path may be from outside the namespace ("/docker/1234") under a mount whose root is
 * that same path. It may contain "/..", or not exist. So: strip the mount's root from the path. If
 * the directory does not exist, walk up to the nearest one that does. At worst that is the mount
 * point itself, which in a container is the container's own group.
 *
 *   v2  cpu.max: "QUOTA PERIOD" or "max PERIOD"; the top group has no such file
 *   v1  cpu.cfs_quota_us (-1: none) and cpu.cfs_period_us
 *
 * A file that is missing or does not parse sets no limit: a broken file must not keep a program
 * from starting. In a hybrid system both versions are read.
 *
 * Rejected: cpuset files (the affinity mask shows their effect), cpu.weight and shares (they bind
 * only under contention), sysconf(_SC_NPROCESSORS_ONLN) (knows neither mask nor quota).
 */
#include "os/linux.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AFFINITY_BYTES_MAX 8192 /* 65536 CPUs */
#define GROUP_PATH_MAX 1024     /* longer paths count as unreadable: no limit */
#define LINE_BYTES_MAX 4096     /* longer lines of mountinfo are skipped */

int bz_linux_cpus_affinity(void)
{
    unsigned long mask[AFFINITY_BYTES_MAX / sizeof(unsigned long)];

    for (size_t bytes = 128; bytes <= sizeof mask; bytes *= 2) {
        /* The system call, unlike the C library's wrapper, returns the number of bytes filled. */
        long filled = syscall(SYS_sched_getaffinity, 0, bytes, mask);
        if (filled < 0 && errno == EINVAL)
            continue; /* the kernel has more CPUs than fit */
        int cpus = 0;
        for (long i = 0; i < filled / (long)sizeof(unsigned long); i++)
            cpus += __builtin_popcountl(mask[i]);
        return cpus > 0 ? cpus : 1;
    }
    return 1;
}

/* ---- small files ------------------------------------------------------------------------------ */

/* Read a whole small file as text, truncated to the buffer. Return false if it is missing or
 * empty. */
static bool text_read(const char *path, char *text, size_t room)
{
    size_t used = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    while (used < room - 1) {
        ssize_t n = read(fd, text + used, room - 1 - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    close(fd);
    text[used] = '\0';
    return used > 0;
}

/* Parse a decimal number of at least `least` at the front of `text`; *end is set after it. */
static bool number_read(const char *text, long long least, long long *out, char **end)
{
    errno = 0;
    long long n = strtoll(text, end, 10);
    if (*end == text || errno != 0 || n < least)
        return false;
    *out = n;
    return true;
}

static bool number_read_file(const char *dir, const char *file, long long *out)
{
    char path[3 * GROUP_PATH_MAX], text[64], *end;

    if (snprintf(path, sizeof path, "%s/%s", dir, file) >= (int)sizeof path)
        return false;
    return text_read(path, text, sizeof text) && number_read(text, 1, out, &end);
}

/* ---- one group -------------------------------------------------------------------------------- */

static int cpus_of(long long quota, long long period)
{
    long long cpus = quota / period + (quota % period != 0);
    return cpus < 1 ? 1 : cpus > INT_MAX ? INT_MAX : (int)cpus;
}

static int group_limit_v2(const char *dir)
{
    char path[3 * GROUP_PATH_MAX], text[64], *end;
    long long quota, period = 100000;

    if (snprintf(path, sizeof path, "%s/cpu.max", dir) >= (int)sizeof path)
        return INT_MAX;
    if (!text_read(path, text, sizeof text) || !number_read(text, 1, &quota, &end))
        return INT_MAX; /* no file, or "max", or malformed */
    char *unused;
    if (*end == ' ' && !number_read(end, 1, &period, &unused))
        return INT_MAX;
    return cpus_of(quota, period);
}

static int group_limit_v1(const char *dir)
{
    long long quota, period;

    if (!number_read_file(dir, "cpu.cfs_quota_us",
                          &quota)) /* -1 means "none" and does not parse either */
        return INT_MAX;
    if (!number_read_file(dir, "cpu.cfs_period_us", &period))
        return INT_MAX;
    return cpus_of(quota, period);
}

/* ---- lines ------------------------------------------------------------------------------------ */

/* Reads a long file (mountinfo) line by line. */
struct lines {
    int fd;
    size_t used, at; /* bytes in text; where the next line starts */
    char text[LINE_BYTES_MAX];
};

static bool lines_open(struct lines *l, const char *root, const char *file)
{
    char path[GROUP_PATH_MAX];

    l->used = l->at = 0;
    if (snprintf(path, sizeof path, "%s%s", root, file) >= (int)sizeof path)
        return false;
    l->fd = open(path, O_RDONLY | O_CLOEXEC);
    return l->fd >= 0;
}

/* The next line, ended by 0 in place of its newline, or NULL. Lines that do not fit are skipped. */
static char *lines_next(struct lines *l)
{
    bool is_too_long = false;

    for (;;) {
        char *start = l->text + l->at, *newline = memchr(start, '\n', l->used - l->at);
        if (newline != NULL) {
            *newline = '\0';
            l->at = (size_t)(newline + 1 - l->text);
            if (!is_too_long)
                return start;
            is_too_long = false;
            continue;
        }
        memmove(l->text, start, l->used - l->at);
        l->used -= l->at;
        l->at = 0;
        if (l->used == sizeof l->text) {
            is_too_long = true;
            l->used = 0;
        }
        ssize_t n = read(l->fd, l->text + l->used, sizeof l->text - l->used);
        if (n <= 0 && !(n < 0 && errno == EINTR))
            return NULL; /* the rest has no newline: it is truncated, so ignore it */
        l->used += n > 0 ? (size_t)n : 0;
    }
}

/* ---- one hierarchy ---------------------------------------------------------------------------- */

struct hierarchy {
    bool is_v2;
    char path[GROUP_PATH_MAX];  /* our group, from /proc/self/cgroup */
    char root[GROUP_PATH_MAX];  /* the group at the mount point */
    char mount[GROUP_PATH_MAX]; /* where it is mounted */
};

/* True if `word` is in the comma-separated `list`. */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length) {
        bool starts = at == list || at[-1] == ',';
        bool ends = at[length] == '\0' || at[length] == ',';
        if (starts && ends)
            return true;
    }
    return false;
}

/* Find our group's path: the line "ID:CONTROLLERS:PATH" of this hierarchy. */
static bool path_find(struct lines *l, struct hierarchy *h)
{
    for (char *line; (line = lines_next(l)) != NULL;) {
        char *id = strsep(&line, ":"), *controllers = strsep(&line, ":");
        if (line == NULL || strlen(line) >= sizeof h->path)
            continue;
        bool is_v2_line = strcmp(id, "0") == 0 && *controllers == '\0';
        if (h->is_v2 ? is_v2_line : has_word(controllers, "cpu")) {
            strcpy(h->path, line);
            return true;
        }
    }
    return false;
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* Decode \ooo in place: mountinfo encodes space, tab, newline and backslash so. */
static void unescape(char *text)
{
    const char *from = text;
    char *to = text;
    while (*from != '\0') {
        if (from[0] == '\\' && is_octal(from[1]) && is_octal(from[2]) && is_octal(from[3])) {
            *to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

/* The part of our path below the mount point; NULL if the path is not below it. */
static const char *path_below_root(const struct hierarchy *h)
{
    size_t length = strlen(h->root);

    if (strcmp(h->root, "/") == 0)
        return h->path;
    if (strncmp(h->path, h->root, length) != 0)
        return NULL;
    return h->path[length] == '/' || h->path[length] == '\0' ? h->path + length : NULL;
}

/* Parse root and mount point from "ID PARENT DEV ROOT MOUNT OPTIONS.. - TYPE SOURCE SUPER". */
static bool mount_parse(char *line, struct hierarchy *h)
{
    char *tail = strstr(line, " - ");
    if (tail == NULL)
        return false;
    *tail = '\0';
    tail += 3;
    char *type = strsep(&tail, " ");
    strsep(&tail, " ");
    bool is_v1_cpu = strcmp(type, "cgroup") == 0 && tail != NULL && has_word(tail, "cpu");
    if (h->is_v2 ? strcmp(type, "cgroup2") != 0 : !is_v1_cpu)
        return false;
    for (int skip = 0; skip < 3; skip++)
        strsep(&line, " ");
    char *root = strsep(&line, " "), *mount = strsep(&line, " ");
    if (mount == NULL || strlen(root) >= sizeof h->root || strlen(mount) >= sizeof h->mount)
        return false;
    strcpy(h->root, root);
    strcpy(h->mount, mount);
    unescape(h->root);
    unescape(h->mount);
    return true;
}

/* Find the mount point: the first mount that contains our path, else the last mount. */
static bool mount_find(struct lines *l, struct hierarchy *h)
{
    bool is_found = false;
    for (char *line; (line = lines_next(l)) != NULL;) {
        if (!mount_parse(line, h))
            continue;
        is_found = true;
        if (path_below_root(h) != NULL)
            break;
    }
    return is_found;
}

/* The smallest limit from our group up to the mount point. Invisible groups set none. */
static int hierarchy_walk(const struct hierarchy *h, const char *root)
{
    char dir[3 * GROUP_PATH_MAX];
    int limit = INT_MAX;
    const char *below = path_below_root(h);

    if (below == NULL || strstr(below, "/..") != NULL)
        below = ""; /* the path is from another namespace; use the mounted part */
    size_t top = (size_t)snprintf(dir, sizeof dir, "%s%s", root, h->mount);
    if (top + strlen(below) >= sizeof dir)
        return INT_MAX;
    strcpy(dir + top, below);
    for (size_t end = strlen(dir);;) { /* one component less each time, the mount point last */
        int here = h->is_v2 ? group_limit_v2(dir) : group_limit_v1(dir);
        limit = here < limit ? here : limit;
        if (end <= top)
            return limit;
        do
            end--;
        while (end > top && dir[end] != '/');
        dir[end] = '\0';
    }
}

static int hierarchy_limit(bool is_v2, const char *root)
{
    struct hierarchy h = {.is_v2 = is_v2};
    struct lines l;

    if (!lines_open(&l, root, "/proc/self/cgroup"))
        return INT_MAX;
    bool is_there = path_find(&l, &h);
    close(l.fd);
    if (!is_there || !lines_open(&l, root, "/proc/self/mountinfo"))
        return INT_MAX;
    is_there = mount_find(&l, &h);
    close(l.fd);
    return is_there ? hierarchy_walk(&h, root) : INT_MAX;
}

/* ---- together --------------------------------------------------------------------------------- */

int bz_linux_cpus_quota(const char *root)
{
    int v2 = hierarchy_limit(true, root), v1 = hierarchy_limit(false, root);
    return v2 < v1 ? v2 : v1;
}

int bz_linux_cpus(const struct bz_os *os)
{
    int cpus = bz_linux_cpus_affinity(), quota = bz_linux_cpus_quota("");

    (void)os;
    return cpus < quota ? cpus : quota;
}
