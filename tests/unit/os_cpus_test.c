/*
 * How many CPUs we may use: made-up cgroup trees under a directory of the test's own, and the real
 * ones where they can be written.
 */
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/deny.h"
#include "harness.h"
#include "os/linux.h"
#include "os/os.h"

/* ---- a made-up system ---- */

static char root[] = "/tmp/blitz-cpus-XXXXXX";

static void root_remove(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (system(command) != 0)
        fprintf(stderr, "left behind: %s\n", root);
}

static void root_make(void)
{
    CHECK_NOT_NULL(mkdtemp(root));
    atexit(root_remove);
}

/* Write a file below the root, with the directories it needs. */
__attribute__((format(printf, 2, 3))) static void put(const char *path, const char *format, ...)
{
    char full[8192];
    va_list args;
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *at = full + sizeof root; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        CHECK(mkdir(full, 0755) == 0 || errno == EEXIST);
        *at = '/';
    }
    FILE *f = fopen(full, "w");
    CHECK_NOT_NULL(f);
    va_start(args, format);
    vfprintf(f, format, args);
    va_end(args);
    fclose(f);
}

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
#define V1_MOUNT "31 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
#define OTHER_MOUNTS                                   \
    "23 1 254:0 / / rw,relatime - ext4 /dev/root rw\n" \
    "24 23 0:22 / /proc rw - proc proc rw\n"           \
    "25 23 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"

static void v2(const char *group)
{
    root_make();
    put("/proc/self/cgroup", "0::%s\n", group);
    put("/proc/self/mountinfo", OTHER_MOUNTS V2_MOUNT);
}

static void v1(const char *group)
{
    root_make();
    put("/proc/self/cgroup",
        "9:name=systemd:/elsewhere\n5:cpuset:/cs\n2:cpu,cpuacct:%s\n1:cpuacct2:/no\n", group);
    put("/proc/self/mountinfo", OTHER_MOUNTS V1_MOUNT);
}

static void quota_v1(const char *group, long quota, long period)
{
    char path[512];
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", group);
    put(path, "%ld\n", quota);
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", group);
    put(path, "%ld\n", period);
}

/* ---- version 2 ---- */

TEST(os_cpus, v2_quota_is_read)
{
    v2("/app");
    put("/sys/fs/cgroup/app/cpu.max", "200000 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 2);
}

/* Bug class 9: with half a CPU one worker; with one and a half, two. */
TEST(os_cpus, bug_09_fractions_are_rounded_up)
{
    static const struct {
        const char *max;
        int cpus;
    } rows[] = {
        {"1 100000\n", 1},
        {"50000 100000\n", 1},
        {"99999 100000\n", 1},
        {"100000 100000\n", 1},
        {"100001 100000\n", 2},
        {"150000 100000\n", 2},
        {"250000 100000\n", 3},
        {"1000 1000\n", 1},
        {"1500 1000\n", 2},
        {"6400000 100000\n", 64},
        {"9223372036854775807 1\n", INT_MAX},
    };
    v2("/app");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        put("/sys/fs/cgroup/app/cpu.max", "%s", rows[i].max);
        CHECK_EQ(bz_linux_cpus_quota(root), rows[i].cpus);
    }
}

TEST(os_cpus, v2_max_is_no_limit)
{
    v2("/app");
    put("/sys/fs/cgroup/app/cpu.max", "max 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), INT_MAX);
}

TEST(os_cpus, bug_09_the_tightest_of_the_ancestors_counts)
{
    v2("/pods/pod7/app");
    put("/sys/fs/cgroup/pods/pod7/app/cpu.max", "800000 100000\n");
    put("/sys/fs/cgroup/pods/pod7/cpu.max", "300000 100000\n");
    put("/sys/fs/cgroup/pods/cpu.max", "max 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 3);
    put("/sys/fs/cgroup/pods/cpu.max", "150000 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 2);
    put("/sys/fs/cgroup/pods/pod7/app/cpu.max", "max 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 2);
    put("/sys/fs/cgroup/cpu.max", "10000 100000\n"); /* a container: the mount point has one */
    CHECK_EQ(bz_linux_cpus_quota(root), 1);
}

TEST(os_cpus, a_group_in_the_middle_without_a_file_does_not_hide_its_parent)
{
    v2("/a/b/c/d");
    put("/sys/fs/cgroup/a/cpu.max", "400000 100000\n");
    put("/sys/fs/cgroup/a/b/c/d/cpu.max", "max 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 4);
}

TEST(os_cpus, a_neighbour_with_a_longer_name_is_not_an_ancestor)
{
    v2("/app2/x");
    put("/sys/fs/cgroup/app/cpu.max", "100000 100000\n");
    put("/sys/fs/cgroup/app2/x/cpu.max", "500000 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 5);
}

/* Inside a cgroup namespace the path is "/": the mount point is our group. */
TEST(os_cpus, in_a_container_the_mount_point_is_the_group)
{
    v2("/");
    put("/sys/fs/cgroup/cpu.max", "250000 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 3);
}

/* Without a cgroup namespace the path is the host's, and not below the container's mount. */
TEST(os_cpus, a_path_that_does_not_exist_below_the_mount_falls_back_to_the_mount_point)
{
    v2("/docker/0123456789abcdef");
    put("/sys/fs/cgroup/cpu.max", "250000 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 3);
}

TEST(os_cpus, a_path_that_leaves_the_namespace_falls_back_to_the_mount_point)
{
    v2("/../../system.slice/app");
    put("/sys/fs/cgroup/cpu.max", "350000 100000\n");
    put("/sys/system.slice/app/cpu.max", "100000 100000\n"); /* where a naive path would lead */
    CHECK_EQ(bz_linux_cpus_quota(root), 4);
}

/* The same group seen through a mount that shows a part of the tree only. */
TEST(os_cpus, the_root_of_a_mount_is_taken_off_the_path)
{
    root_make();
    put("/proc/self/cgroup", "0::/docker/0123/inner\n");
    put("/proc/self/mountinfo", "30 23 0:26 /docker/0123 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/inner/cpu.max", "300000 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 3);
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 2);
}

TEST(os_cpus, the_path_that_is_the_root_of_the_mount_is_the_mount_point)
{
    root_make();
    put("/proc/self/cgroup", "0::/docker/0123\n");
    put("/proc/self/mountinfo", "30 23 0:26 /docker/0123 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 2);
}

TEST(os_cpus, a_root_that_only_begins_like_the_path_is_not_taken_off)
{
    root_make();
    put("/proc/self/cgroup", "0::/docker/01234\n");
    put("/proc/self/mountinfo", "30 23 0:26 /docker/0123 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/4/cpu.max", "100000 100000\n");
    put("/sys/fs/cgroup/cpu.max", "600000 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 6);
}

/* Of several mounts of one hierarchy, the one that shows our group. */
TEST(os_cpus, the_mount_that_shows_our_group_is_preferred)
{
    root_make();
    put("/proc/self/cgroup", "0::/b/x\n");
    put("/proc/self/mountinfo", "30 23 0:26 /a /groups/a rw - cgroup2 cgroup2 rw\n"
                                "31 23 0:26 /b /groups/b rw - cgroup2 cgroup2 rw\n"
                                "32 23 0:26 /c /groups/c rw - cgroup2 cgroup2 rw\n");
    put("/groups/a/cpu.max", "100000 100000\n");
    put("/groups/c/cpu.max", "100000 100000\n");
    put("/groups/b/x/cpu.max", "700000 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 7);
}

TEST(os_cpus, odd_characters_in_a_mount_point_are_unescaped)
{
    root_make();
    put("/proc/self/cgroup", "0::/app\n");
    put("/proc/self/mountinfo",
        "30 23 0:26 / /odd\\040place\\134x\\9 rw shared:1 master:2 - cgroup2 cgroup2 rw\n");
    put("/odd place\\x\\9/app/cpu.max", "500000 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 5);
}

/* ---- version 1 and both ---- */

TEST(os_cpus, v1_quota_is_read)
{
    v1("/app");
    quota_v1("/app", 250000, 100000);
    CHECK_EQ(bz_linux_cpus_quota(root), 3);
}

TEST(os_cpus, v1_minus_one_is_no_limit)
{
    v1("/app");
    quota_v1("/app", -1, 100000);
    CHECK_EQ(bz_linux_cpus_quota(root), INT_MAX);
}

TEST(os_cpus, bug_09_v1_ancestors_count_too)
{
    v1("/pods/app");
    quota_v1("/pods/app", -1, 100000);
    quota_v1("/pods", 150000, 50000);
    CHECK_EQ(bz_linux_cpus_quota(root), 3);
    quota_v1("/pods/app", 50000, 100000);
    CHECK_EQ(bz_linux_cpus_quota(root), 1);
}

TEST(os_cpus, v1_in_a_container_falls_back_to_the_mount_point)
{
    v1("/docker/0123");
    quota_v1("", 200000, 100000);
    CHECK_EQ(bz_linux_cpus_quota(root), 2);
}

/* Another controller must not be taken for ours: "cpu" is not "cpuset" and not "cpuacct". */
TEST(os_cpus, v1_other_controllers_are_not_ours)
{
    root_make();
    put("/proc/self/cgroup", "3:cpuset:/app\n2:cpuacct:/app\n1:cpu2,xcpu:/app\n");
    put("/proc/self/mountinfo", OTHER_MOUNTS V1_MOUNT);
    quota_v1("/app", 100000, 100000);
    CHECK_EQ(bz_linux_cpus_quota(root), INT_MAX);
}

TEST(os_cpus, v1_with_its_period_missing_is_no_limit)
{
    v1("/app");
    put("/sys/fs/cgroup/cpu/app/cpu.cfs_quota_us", "100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), INT_MAX);
}

TEST(os_cpus, in_a_hybrid_system_the_tighter_of_both_counts)
{
    root_make();
    put("/proc/self/cgroup", "2:cpu,cpuacct:/one\n0::/two\n");
    put("/proc/self/mountinfo",
        OTHER_MOUNTS V1_MOUNT "33 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    quota_v1("/one", 400000, 100000);
    CHECK_EQ(bz_linux_cpus_quota(root), 4);
    put("/sys/fs/cgroup/unified/two/cpu.max", "200000 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 2);
    quota_v1("/one", 100000, 100000);
    CHECK_EQ(bz_linux_cpus_quota(root), 1);
}

/* ---- broken things ---- */

/* A broken file must not keep a program from starting. */
TEST(os_cpus, files_that_do_not_parse_set_no_limit)
{
    static const char *const rubbish[] = {"",           "\n",       "-5 100000\n",
                                          "0 100000\n", "abc\n",    "1000 x\n",
                                          "1000 -1\n",  "1000 0\n", "99999999999999999999 1\n",
                                          " \n",        "max\n"};
    v2("/app");
    for (size_t i = 0; i < sizeof rubbish / sizeof rubbish[0]; i++) {
        put("/sys/fs/cgroup/app/cpu.max", "%s", rubbish[i]);
        CHECK_EQ(bz_linux_cpus_quota(root), INT_MAX);
    }
}

TEST(os_cpus, v2_without_a_period_means_the_usual_one)
{
    v2("/app");
    put("/sys/fs/cgroup/app/cpu.max", "300000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 3);
}

TEST(os_cpus, v1_files_that_do_not_parse_set_no_limit)
{
    v1("/app");
    quota_v1("/app", 0, 100000);
    CHECK_EQ(bz_linux_cpus_quota(root), INT_MAX);
    quota_v1("/app", 100000, 0);
    CHECK_EQ(bz_linux_cpus_quota(root), INT_MAX);
    put("/sys/fs/cgroup/cpu/app/cpu.cfs_quota_us", "much\n");
    CHECK_EQ(bz_linux_cpus_quota(root), INT_MAX);
}

TEST(os_cpus, without_proc_there_is_no_limit)
{
    root_make();
    CHECK_EQ(bz_linux_cpus_quota(root), INT_MAX);
    put("/proc/self/cgroup", "0::/app\n");
    CHECK_EQ(bz_linux_cpus_quota(root), INT_MAX);
    put("/proc/self/mountinfo", "%s", OTHER_MOUNTS);
    CHECK_EQ(bz_linux_cpus_quota(root), INT_MAX);
}

TEST(os_cpus, lines_that_do_not_parse_are_passed_over)
{
    root_make();
    put("/proc/self/cgroup", "\n:\n0\n0:\n::\nx:y:z\n0:cpuset:/no\n0::/app\n");
    put("/proc/self/mountinfo", "\n-\n - \n - cgroup2\n1 2 3 - cgroup2 c rw\n - cgroup c rw,cpu\n"
                                "1 2 3 / - cgroup2 c rw\n no dash here cgroup2\n" V2_MOUNT);
    put("/sys/fs/cgroup/app/cpu.max", "200000 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), 2);
}

static char long_text[6000];
static const char *long_path(size_t length)
{
    memset(long_text, 'x', length);
    long_text[0] = '/';
    long_text[length] = '\0';
    return long_text;
}

/* Buffers have ends. */
TEST(os_cpus, lines_and_paths_longer_than_anything_are_passed_over)
{
    root_make();
    for (size_t length = 900; length < sizeof long_text; length += 170) {
        put("/proc/self/cgroup", "7:cpu:%s\n0::/app\n", long_path(length));
        put("/proc/self/mountinfo",
            "1 2 3 / %s rw - cgroup2 c rw\n"
            "1 2 3 %s /x rw - cgroup2 c rw\n" V2_MOUNT V1_MOUNT,
            long_path(length), long_text);
        put("/sys/fs/cgroup/app/cpu.max", "200000 100000\n");
        int cpus = bz_linux_cpus_quota(root);
        CHECK(cpus == 2 || (length < 1024 && cpus == INT_MAX)); /* short enough to be believed */
    }
    char deep[2000];
    memset(deep, 'y', sizeof deep - 1);
    deep[0] = '/';
    deep[sizeof deep - 1] = '\0';
    CHECK_EQ(bz_linux_cpus_quota(deep), INT_MAX);
}

TEST(os_cpus, a_last_line_that_is_cut_off_is_not_believed)
{
    root_make();
    put("/proc/self/cgroup", "0::/ap");
    put("/proc/self/mountinfo", V2_MOUNT);
    put("/sys/fs/cgroup/ap/cpu.max", "100000 100000\n");
    CHECK_EQ(bz_linux_cpus_quota(root), INT_MAX);
}

/* ---- the affinity mask, and the real system ---- */

TEST(os_cpus, the_affinity_mask_is_counted)
{
    cpu_set_t ours, one;
    CHECK_EQ(sched_getaffinity(0, sizeof ours, &ours), 0);
    CHECK_EQ(bz_linux_cpus_affinity(), CPU_COUNT(&ours));
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &ours))
            continue;
        CPU_SET(cpu, &one);
        break;
    }
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    CHECK_EQ(bz_linux_cpus_affinity(), 1);
    CHECK_EQ(bz_os_cpus(&bz_os_system), 1);
}

/* A machine with more CPUs than the first buffer holds: the kernel says EINVAL until it fits. */
TEST(os_cpus, a_mask_larger_than_the_first_buffer_is_asked_for_again)
{
    int want = bz_linux_cpus_affinity();
    t_deny_arg(SYS_sched_getaffinity, 1, 128, EINVAL);
    CHECK_EQ(bz_linux_cpus_affinity(), want);
    t_deny_arg(SYS_sched_getaffinity, 1, 256, EINVAL);
    CHECK_EQ(bz_linux_cpus_affinity(), want);
}

TEST(os_cpus, without_an_answer_there_is_one_cpu)
{
    t_deny(SYS_sched_getaffinity, EINVAL);
    CHECK_EQ(bz_linux_cpus_affinity(), 1);
    t_deny(SYS_sched_getaffinity, ENOSYS);
    CHECK_EQ(bz_linux_cpus_affinity(), 1);
}

TEST(os_cpus, the_system_has_at_least_one)
{
    int cpus = bz_os_cpus(&bz_os_system);
    CHECK_GE(cpus, 1);
    CHECK_LE(cpus, bz_linux_cpus_affinity());
    CHECK_LE(cpus, bz_linux_cpus_quota(""));
}

/* ---- for real ---- */

static bool write_text(const char *dir, const char *file, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *f = fopen(path, "w");
    if (f == NULL)
        return false;
    bool ok = fputs(text, f) >= 0;
    return fclose(f) == 0 && ok;
}

/* In a child inside the group at `dir`: what do we count? The group is removed afterwards. */
static int quota_counted_in(const char *dir)
{
    pid_t child = fork();
    if (child == 0) {
        char pid[32];
        snprintf(pid, sizeof pid, "%d\n", (int)getpid());
        if (!write_text(dir, "cgroup.procs", pid))
            _exit(255);
        int cpus = bz_linux_cpus_quota("");
        _exit(cpus > 250 ? 250 : cpus);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* A container we are in may have less. */
static int at_most(int cpus)
{
    int here = bz_linux_cpus_quota("");
    return here < cpus ? here : cpus;
}

TEST(os_cpus, v1_for_real)
{
    char outer[128], inner[160];
    snprintf(outer, sizeof outer, "/sys/fs/cgroup/cpu/blitz-test-%d", (int)getpid());
    snprintf(inner, sizeof inner, "%s/inner", outer);
    if (mkdir(outer, 0755) != 0)
        t_skip("the cpu controller of cgroup v1 cannot be written: %s", strerror(errno));
    bool is_set = mkdir(inner, 0755) == 0 && write_text(outer, "cpu.cfs_period_us", "100000") &&
                  write_text(outer, "cpu.cfs_quota_us", "150000");
    int in_outer = is_set ? quota_counted_in(outer) : -1;
    int in_inner = is_set ? quota_counted_in(inner) : -1;
    is_set = is_set && write_text(inner, "cpu.cfs_quota_us", "50000");
    int in_tighter = is_set ? quota_counted_in(inner) : -1;
    rmdir(inner);
    rmdir(outer);
    if (in_outer == -1 || in_outer == 255)
        t_skip("the cpu controller of cgroup v1 takes no quota here");
    CHECK_EQ(in_outer, at_most(2));
    CHECK_EQ(in_inner, at_most(2)); /* inherited from its ancestor */
    CHECK_EQ(in_tighter, 1);
}

TEST(os_cpus, v2_for_real)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    for (size_t i = 0; i < 2; i++) {
        char dir[128], controllers[128];
        snprintf(controllers, sizeof controllers, "%s/cgroup.subtree_control", mounts[i]);
        FILE *f = fopen(controllers, "r+");
        if (f == NULL)
            continue;
        bool has_cpu = fputs("+cpu", f) >= 0;
        if (fclose(f) != 0 || !has_cpu)
            continue;
        snprintf(dir, sizeof dir, "%s/blitz-test-%d", mounts[i], (int)getpid());
        if (mkdir(dir, 0755) != 0)
            continue;
        bool is_set = write_text(dir, "cpu.max", "150000 100000");
        int counted = is_set ? quota_counted_in(dir) : 255;
        rmdir(dir);
        if (counted != 255) {
            CHECK_EQ(counted, at_most(2));
            return;
        }
    }
    t_skip("no cgroup v2 with a writable cpu controller here");
}
