/* Hot upgrade: what moves along, who changes when, what is refused, and when a library goes. */
#include "upgrade_scene.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/interrupt.h"
#include "support/alone.h"
#include "support/on_each.h"
#include "support/refuse_each.h"
#include "support/sanitizers.h"

static const blitz_upgrade_opts unloads = {.unload = true};

/* ---- the state ---- */

static int keeps_all(void *arg)
{
    blitz_actor_id id = born(&counter), found;
    (void)arg;
    CHECK_EQ(blitz_actor_register("the counter", id), 0);
    add(id, 0, 10);
    (void)ask(id, GET); /* they are handled: an ask to change overtakes messages */
    blitz_upgrade_info info = upgraded("counter", library("2"), NULL);
    CHECK_EQ(info.version, 2u);
    CHECK_EQ(info.asked, 1u);
    CHECK_EQ(info.changed, 1u);
    add(id, 10, 20);
    struct counted_by by = ask(id, GET);
    CHECK_EQ(by.version, 2);
    CHECK_EQ(by.sum, 190);
    CHECK_EQ(by.broken, 0);
    CHECK_EQ(by.count, 10);
    found = blitz_actor_whereis(NULL, "the counter");
    CHECK(blitz_actor_id_equal(id, found));
    return 0;
}

/* The id, the name and the sum are the actor's; the code is new. */
TEST(upgrade, an_actor_keeps_its_id_name_and_state)
{
    t_on_each(keeps_all, NULL, 0);
}

static int three_versions(void *arg)
{
    blitz_actor_id id = born(&counter);
    (void)arg;
    add(id, 0, 5);
    (void)ask(id, GET);
    (void)upgraded("counter", library("2"), NULL);
    add(id, 5, 10);
    (void)ask(id, GET);
    (void)upgraded("counter", library("3"), NULL); /* its state is larger than any slot */
    add(id, 10, 15);
    struct counted_by by = ask(id, GET);
    CHECK_EQ(by.version, 3);
    CHECK_EQ(by.sum, 105);
    CHECK_EQ(by.count, 10);
    (void)upgraded("counter", library("1"), NULL);
    add(id, 15, 20);
    (void)ask(id, GET); /* version 1 handled them all, so none is counted later */
    (void)upgraded("counter", library("3"), NULL);
    (void)upgraded("counter", library("2"), NULL);
    by = ask(id, GET);
    CHECK_EQ(by.version, 2);
    CHECK_EQ(by.sum, 190);
    CHECK_EQ(by.broken, 0);
    CHECK_EQ(by.count, 0); /* version 1 did not count */
    return 0;
}

/* The state goes through three layouts, from the slot to a block of its own and back. */
TEST(upgrade, the_state_of_three_versions_goes_to_and_fro)
{
    t_on_each(three_versions, NULL, 0);
}

static int back_to_the_program(void *arg)
{
    blitz_actor_id id = born(&counter);
    (void)arg;
    add(id, 0, 4);
    (void)upgraded("counter", library("2"), NULL);
    CHECK_EQ(upgraded("counter", NULL, NULL).version, 1u);
    CHECK_EQ(ask(id, GET).version, 1);
    CHECK_EQ(ask(id, GET).sum, 6);
    return 0;
}

TEST(upgrade, back_to_the_version_of_the_program_is_the_same_call)
{
    CHECK_EQ(blitz_run(back_to_the_program, NULL, NULL), 0);
}

static int statics(void *arg)
{
    blitz_actor_id id = born(&counter);
    (void)arg;
    (void)upgraded("counter", library("2"), NULL);
    add(id, 0, 5);
    CHECK_EQ(ask(id, GET).calls, 5);
    (void)upgraded("counter", library("2"), NULL); /* the same version, loaded again */
    CHECK_EQ(ask(id, GET).calls, 0);
    CHECK_EQ(ask(id, GET).count, 5);
    return 0;
}

/* Rule: static variables are not carried over. The same version keeps the state as it is. */
TEST(upgrade, static_variables_begin_again_and_the_state_does_not)
{
    CHECK_EQ(blitz_run(statics, NULL, NULL), 0);
}

static int notes_of(void *arg)
{
    blitz_actor_id id = born(&notes);
    long n = 0;
    (void)arg;
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 300; i++, n++)
            CHECK_EQ(blitz_actor_send(id, NOTE, &n, sizeof n), 0);
        CHECK_EQ(ask(id, NOTES).sum, n);
        (void)upgraded("notes", round % 2 == 0 ? library("2") : library("1"), &unloads);
        struct counted_by by = ask(id, NOTES);
        CHECK_EQ(by.version, round % 2 == 0 ? 2 : 1);
        CHECK_EQ(by.sum, n);
        CHECK_EQ(by.broken, 0);
        CHECK_EQ(by.count, round % 2 == 0 ? n : 0);
    }
    return 0;
}

/* Objects stay where they are; the new state is the root. The heap is verified after each message. */
TEST(upgrade, a_private_heap_has_the_new_state_as_its_root)
{
    t_on_each(notes_of, NULL, 0);
}

/* ---- when ---- */

static int waits_inside(void *arg)
{
    blitz_event go = BLITZ_EVENT_INIT, begun = BLITZ_EVENT_INIT;
    blitz_actor_id late = born(&counter), other = born(&counter);
    struct waiting w = {&go, &begun};
    blitz_upgrade_info info;
    (void)arg;
    CHECK_EQ(blitz_actor_send(late, WAIT, &w, sizeof w), 0);
    CHECK_EQ(blitz_event_wait(&begun, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_upgrade("counter", library("2"), NULL, NULL), 0);
    CHECK_EQ(blitz_upgrade_wait("counter", NULL, &info, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    while (info.late != 1)
        CHECK_EQ(blitz_upgrade_wait("counter", NULL, &info, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK(blitz_actor_id_equal(info.late_id[0], late));
    CHECK_EQ(ask(other, GET).version, 2);
    blitz_event_set(&go);
    CHECK_EQ(blitz_upgrade_wait("counter", NULL, &info, BLITZ_FOREVER), 0);
    CHECK_EQ(info.late, 0u);
    CHECK_EQ(ask(late, GET).version, 2);
    return 0;
}

/* An actor that waits in old code changes when that returns; the wait says which actor is late. */
TEST(upgrade, an_actor_that_waits_inside_is_late)
{
    t_on_each(waits_inside, NULL, 0);
}

static int overtaken(void *arg)
{
    blitz_event go = BLITZ_EVENT_INIT, begun = BLITZ_EVENT_INIT;
    blitz_actor_id late = born(&counter);
    struct waiting w = {&go, &begun};
    (void)arg;
    CHECK_EQ(blitz_actor_send(late, WAIT, &w, sizeof w), 0);
    CHECK_EQ(blitz_event_wait(&begun, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_upgrade("counter", library("2"), NULL, NULL), 0);
    CHECK_EQ(blitz_upgrade("counter", library("3"), NULL, NULL), 0);
    blitz_event_set(&go);
    CHECK_EQ(blitz_upgrade_wait("counter", NULL, NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(ask(late, GET).version, 3);
    return 0;
}

TEST(upgrade, a_late_actor_ends_at_the_last_of_several_upgrades)
{
    t_on_each(overtaken, NULL, 0);
}

/* ---- new actors ---- */

static int by_name(void *arg)
{
    blitz_actor_id id;
    struct counter_1 first = {.sum = 5, .next = 7};
    (void)arg;
    CHECK_EQ(blitz_behaviour_spawn("counter", 1, NULL, NULL, &id), -ENOENT);
    CHECK_EQ(blitz_behaviour_register(NULL, &counter), 0);
    CHECK_EQ(blitz_behaviour_spawn("counter", 1, &first, NULL, &id), 0);
    CHECK_EQ(ask(id, GET).sum, 5);
    (void)upgraded("counter", library("2"), NULL);
    CHECK_EQ(blitz_behaviour_spawn("counter", 1, &first, NULL, &id), 0);
    CHECK_EQ(ask(id, GET).version, 2);
    CHECK_EQ(ask(id, GET).sum, 5);
    CHECK_EQ(blitz_behaviour_spawn("counter", 9, &first, NULL, &id), -EOPNOTSUPP);
    CHECK_EQ(blitz_behaviour_spawn("counter", 9, NULL, NULL, &id), 0); /* zeroes have no version */
    id = born(&counter); /* by pointer: the version that it names */
    CHECK_EQ(ask(id, GET).version, 1);
    return 0;
}

TEST(upgrade, spawns_by_name_have_the_newest_version)
{
    t_on_each(by_name, NULL, 0);
}

static blitz_actor_id child(blitz_actor_id sup, const char *id, blitz_actor_id not )
{
    blitz_actor_id now;
    do {
        blitz_yield();
        CHECK_EQ(blitz_supervisor_which(sup, id, &now), 0);
    } while (now.generation == 0 || blitz_actor_id_equal(now, not ));
    return now;
}

static blitz_actor_id supervised(const blitz_child_spec *c, size_t n)
{
    blitz_actor_id sup;
    blitz_supervisor_plan plan = {.intensity = 100, .children = c, .child_count = n};
    CHECK_EQ(blitz_supervisor_spawn(&plan, NULL, &sup), 0);
    return sup;
}

static int restarted(void *arg)
{
    static const blitz_actor_id none;
    struct counter_1 first = {.sum = 5};
    blitz_child_spec c = {.id = "a", .behaviour = &counter, .state = &first};
    blitz_actor_id sup = supervised(&c, 1), id = child(sup, "a", none);
    (void)arg;
    CHECK_EQ(ask(id, GET).version, 1);
    (void)upgraded("counter", library("2"), NULL);
    CHECK_EQ(blitz_actor_send(id, FAIL, NULL, 0), 0);
    id = child(sup, "a", id);
    CHECK_EQ(ask(id, GET).version, 2);
    CHECK_EQ(ask(id, GET).sum, 5); /* its first state, changed */
    CHECK_EQ(blitz_actor_kill(sup), 0);
    (void)blitz_actor_join(sup, NULL, BLITZ_FOREVER);
    return 0;
}

TEST(upgrade, children_that_are_started_again_have_the_newest_version)
{
    t_on_each(restarted, NULL, 0);
}

static int subset(void *arg)
{
    static const blitz_actor_id none;
    blitz_child_spec c[] = {{.id = "a", .behaviour = &counter}, {.id = "b", .behaviour = &counter}};
    blitz_supervisor_plan below = {.children = c, .child_count = 1};
    blitz_child_spec tree[] = {{.id = "a", .behaviour = &counter},
                               {.id = "s", .supervisor = &below}};
    blitz_actor_id sup = supervised(tree, 2), other = supervised(c, 2);
    blitz_actor_id a = child(sup, "a", none), s = child(sup, "s", none), deep = child(s, "a", none);
    blitz_actor_id b = child(other, "b", none);
    (void)arg;
    blitz_upgrade_info info =
        upgraded("counter", library("2"), &(blitz_upgrade_opts){.supervisor = sup});
    CHECK_EQ(info.asked, 2u);
    CHECK_EQ(info.version, 1u); /* of new actors */
    CHECK_EQ(ask(a, GET).version, 2);
    CHECK_EQ(ask(deep, GET).version, 2);
    CHECK_EQ(ask(b, GET).version, 1);
    CHECK_EQ(blitz_actor_send(a, FAIL, NULL, 0), 0);
    CHECK_EQ(ask(child(sup, "a", a), GET).version, 1); /* the old code comes back */
    CHECK_EQ(upgraded("counter", library("2"), NULL).version, 2u);
    CHECK_EQ(ask(deep, GET).version, 2);
    CHECK_EQ(ask(b, GET).version, 2);
    (void)refused("counter", library("2"), &(blitz_upgrade_opts){.supervisor = b}, -EOPNOTSUPP);
    CHECK_EQ(blitz_actor_kill(sup), 0);
    (void)refused("counter", library("2"), &(blitz_upgrade_opts){.supervisor = sup}, -ESRCH);
    return 0;
}

TEST(upgrade, a_supervised_subset_changes_alone)
{
    t_on_each(subset, NULL, 0);
}

/* ---- refusals ---- */

/* Write a file of text where a library is expected. */
static void write_text(const char *path)
{
    FILE *f = fopen(path, "w");
    CHECK_NOT_NULL(f);
    CHECK(fputs("not a library\n", f) >= 0);
    CHECK_EQ(fclose(f), 0);
}

static int refusals(void *arg)
{
    const char *text = arg;
    blitz_actor_id id = born(&counter);
    add(id, 0, 3);
    (void)refused("nobody", library("2"), NULL, -ENOENT);
    (void)refused("counter", "/nowhere/counter.so", NULL, -ENOENT);
    blitz_upgrade_info info = refused("counter", text, NULL, -ENOEXEC);
    CHECK(info.text[0] != '\0');
    info = refused("counter", library("missing"), NULL, -ENOEXEC);
    CHECK(strstr(info.text, "a_function_that_is_nowhere") != NULL);
    (void)refused("counter", library("no_table"), NULL, -EOPNOTSUPP);
    info = refused("counter", library("other_abi"), NULL, -EOPNOTSUPP);
    CHECK(strstr(info.text, "ABI") != NULL);
    info = refused("counter", library("no_change"), NULL, -EOPNOTSUPP);
    CHECK(strstr(info.text, "version 1") != NULL);
    (void)refused("counter", library("other_trait"), NULL, -EINVAL);
    (void)refused("counter", library("2"), &(blitz_upgrade_opts){.on_failure = 7}, -EINVAL);
    CHECK_EQ(mappings(), 0); /* each of them was unloaded */
    CHECK_EQ(ask(id, GET).version, 1);
    CHECK_EQ(ask(id, GET).sum, 3);
    CHECK_EQ(upgraded("counter", library("2"), NULL).changed, 1u);
    return 0;
}

/* Nothing has changed after a refusal, and nothing is left in memory. */
TEST(upgrade, a_bad_library_is_refused_and_unloaded)
{
    char path[] = "/tmp/not-a-library-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    (void)close(fd);
    write_text(path);
    CHECK_EQ(blitz_run(refusals, path, NULL), 0);
    (void)unlink(path);
}

static int other_layout(void *arg)
{
    blitz_actor_id id = born(&notes);
    (void)arg;
    (void)ask(id, NOTES);
    (void)refused("notes", library("other_type"), NULL, -EEXIST);
    CHECK_EQ(ask(id, NOTES).version, 1);
    return 0;
}

TEST(upgrade, a_type_with_the_name_of_another_layout_is_refused)
{
    CHECK_EQ(blitz_run(other_layout, NULL, NULL), 0);
}

static int failing(void *arg)
{
    blitz_actor_id rich = born(&counter), poor = born(&counter);
    blitz_exit_reason why;
    (void)arg;
    add(rich, 0, 30);
    add(poor, 0, 3);
    (void)ask(rich, GET);
    blitz_upgrade_info info = upgraded("counter", library("fails"), &unloads);
    CHECK_EQ(info.changed, 1u);
    CHECK_EQ(info.kept, 1u);
    add(rich, 30, 31);
    CHECK_EQ(ask(rich, GET).version, 1);
    CHECK_EQ(ask(rich, GET).sum, 465);
    CHECK_EQ(ask(poor, GET).version, 2);
    info = upgraded("counter", library("fails"),
                    &(blitz_upgrade_opts){.on_failure = BLITZ_UPGRADE_EXIT, .unload = true});
    CHECK_EQ(info.ended, 1u);
    int rc = blitz_actor_join(rich, &why, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
    if (rc == 0) {
        CHECK_EQ(why.code, -ERANGE);
        CHECK_STR_EQ(why.text, "the sum is too large");
    }
    CHECK_EQ(ask(poor, GET).version, 2);
    return 0;
}

/* The function is free to refuse a state. */
TEST(upgrade, an_actor_whose_change_fails_keeps_its_code_or_ends)
{
    t_on_each(failing, NULL, 0);
}

static int starved(void *arg)
{
    blitz_actor_id id = born(&notes);
    long n = 0;
    (void)arg;
    CHECK_EQ(blitz_actor_send(id, NOTE, &n, sizeof n), 0);
    blitz_upgrade_info info = upgraded("notes", library("starves"), NULL);
    CHECK_EQ(info.kept, 1u);
    CHECK_EQ(ask(id, NOTES).version, 1);
    CHECK_EQ(ask(id, NOTES).sum, 1);
    CHECK_EQ(ask(id, NOTES).broken, 0);
    return 0;
}

TEST(upgrade, a_change_that_finds_no_room_in_the_heap_has_failed)
{
    CHECK_EQ(blitz_run(starved, NULL, NULL), 0);
}

static int little_memory(void *arg)
{
    blitz_actor_id id;
    blitz_upgrade_info info;
    (void)arg;
    int rc = blitz_actor_spawn(&counter, &(struct counter_1){.sum = 8}, NULL, &id);
    if (rc != 0)
        return rc;
    rc = blitz_upgrade("counter", library("3"), &unloads, &info);
    bool has_begun = rc == 0;
    int waited = blitz_upgrade_wait("counter", NULL, &info, BLITZ_FOREVER);
    CHECK(waited == 0 || waited == -ENOMEM);
    if (!has_begun)
        CHECK_EQ(info.version, 1u);
    if (has_begun)
        CHECK_EQ(info.changed + info.kept, 1u);
    struct counted_by by;
    int got = blitz_actor_call(id, GET, NULL, 0, &by, sizeof by, BLITZ_FOREVER);
    if (got >= 0)
        CHECK_EQ(by.sum, 8);
    if (rc == 0 && info.kept > 0)
        rc = -ENOMEM;
    if (rc == 0 && got < 0)
        rc = got;
    return rc;
}

/* Each allocation fails once: the upgrade is refused, or the actor keeps its code. Nothing leaks. */
TEST_LIMIT(upgrade, each_allocation_may_fail, 300)
{
    t_refuse_each(little_memory, NULL, false);
}

/* ---- ends ---- */

static int killed(void *arg)
{
    blitz_upgrade_info info;
    (void)arg;
    for (int i = 0; i < 20; i++) {
        blitz_actor_id id = born(&counter);
        CHECK_EQ(blitz_upgrade("counter", library("slow"), &unloads, NULL), 0);
        for (int k = 0; k < i; k++)
            blitz_yield();
        CHECK_EQ(blitz_actor_kill(id), 0);
        CHECK_EQ(blitz_upgrade_wait("counter", NULL, &info, BLITZ_FOREVER), 0);
        CHECK_EQ(info.late, 0u);
        int rc = blitz_actor_join(id, NULL, BLITZ_FOREVER);
        CHECK(rc == 0 || rc == -ESRCH);
        (void)upgraded("counter", NULL, NULL);
    }
    until_unloaded("counter");
    return 0;
}

/* The function waits; the kill ends that wait, or comes before or behind it. */
TEST(upgrade, a_kill_during_the_change_ends_the_actor)
{
    t_on_each(killed, NULL, 0);
}

static int many_asked(void *arg)
{
    (void)arg;
    for (int i = 0; i < 30; i++)
        (void)born(&counter);
    CHECK_EQ(blitz_upgrade("counter", library("slow"), &unloads, NULL), 0);
    return 0;
}

/* Actors end at each point of their change; the runtime waits for none of them for ever. */
TEST(upgrade, a_shutdown_during_an_upgrade_ends_all)
{
    for (int i = 0; i < 3; i++)
        t_on_each(many_asked, NULL, 0);
    CHECK_EQ(mappings(), 0);
}

/* ---- loading ---- */

static void copy(const char *from, const char *to)
{
    char command[1200];
    snprintf(command, sizeof command, "cp %s %s", from, to);
    CHECK_EQ(system(command), 0);
}

static int same_path(void *arg)
{
    const char *path = arg;
    blitz_actor_id id = born(&counter);
    copy(library("2"), path);
    (void)upgraded("counter", path, NULL);
    CHECK_EQ(ask(id, GET).version, 2);
    copy(library("3"), path); /* into the same file: what is mapped must be another one */
    add(id, 0, 3);
    CHECK_EQ(ask(id, GET).version, 2);
    (void)upgraded("counter", path, NULL);
    CHECK_EQ(ask(id, GET).version, 3);
    return 0;
}

/* Rule: dlopen of a path that was loaded gives the old library. */
TEST(upgrade, a_new_file_at_the_same_path_is_new_code)
{
    char path[] = "/tmp/same-path-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    (void)close(fd);
    CHECK_EQ(blitz_run(same_path, path, NULL), 0);
    (void)unlink(path);
}

static int texts(void *arg)
{
    blitz_actor_id id = born(&counter), found;
    blitz_exit_reason why;
    blitz_actor_info info;
    (void)arg;
    (void)upgraded("counter", library("2"), &unloads);
    CHECK_EQ(blitz_actor_call(id, TAKE_NAME, NULL, 0, NULL, 0, BLITZ_FOREVER), 0);
    blitz_actor_id fails;
    CHECK_EQ(blitz_behaviour_spawn("counter", 1, NULL, NULL, &fails), 0);
    CHECK_EQ(blitz_actor_send(fails, FAIL, NULL, 0), 0);
    int rc = blitz_actor_join(fails, &why, BLITZ_FOREVER);
    (void)upgraded("counter", NULL, NULL);
    until_unloaded("counter"); /* it is gone, and its texts are not */
    found = blitz_actor_whereis(NULL, "a name of the library");
    CHECK(blitz_actor_id_equal(id, found));
    CHECK_EQ(blitz_actor_info_get(id, &info), 0);
    CHECK_STR_EQ(info.behaviour, "counter");
    if (rc == 0)
        CHECK_STR_EQ(why.text, "a reason of the library");
    return 0;
}

/* Rule: names, reasons and behaviours are copied. */
TEST(upgrade, no_text_is_left_in_a_library)
{
    CHECK_EQ(blitz_run(texts, NULL, NULL), 0);
}

/* ---- unloading ---- */

static int counts_actors(void *arg)
{
    blitz_event go = BLITZ_EVENT_INIT, begun = BLITZ_EVENT_INIT;
    blitz_actor_id id = born(&counter), other = born(&counter);
    struct waiting w = {&go, &begun};
    (void)arg;
    CHECK_EQ(upgraded("counter", library("2"), &unloads).libraries, 1u);
    CHECK(mappings() > 0);
    CHECK_EQ(blitz_actor_send(id, WAIT, &w, sizeof w), 0);
    CHECK_EQ(blitz_event_wait(&begun, BLITZ_FOREVER), 0);
    CHECK_EQ(blitz_upgrade("counter", NULL, NULL, NULL), 0);
    while (ask(other, GET).version != 1)
        blitz_yield();
    blitz_upgrade_info info;
    CHECK_EQ(blitz_upgrade_wait("counter", NULL, &info, blitz_after(BLITZ_MS)), -ETIMEDOUT);
    CHECK_EQ(info.libraries, 1u); /* a frame waits in it */
    blitz_event_set(&go);
    CHECK_EQ(blitz_upgrade_wait("counter", NULL, &info, BLITZ_FOREVER), 0);
    CHECK_EQ(info.libraries, 0u);
    CHECK_EQ(mappings(), 0);
    return 0;
}

/* Rule: the old library is counted, also by frames that wait in it. */
TEST(upgrade, a_library_goes_with_its_last_actor)
{
    t_on_each(counts_actors, NULL, 0);
}

static int counts_tasks(void *arg)
{
    blitz_event go = BLITZ_EVENT_INIT, begun = BLITZ_EVENT_INIT;
    blitz_actor_id id = born(&counter), plain_one;
    struct waiting w = {&go, &begun}, *at = &w;
    (void)arg;
    (void)upgraded("counter", library("2"), &unloads);
    CHECK_EQ(blitz_actor_send(id, START_FIBER, &at, sizeof at), 0);
    CHECK_EQ(blitz_event_wait(&begun, BLITZ_FOREVER), 0);
    CHECK_EQ(
        blitz_actor_call(id, SPAWN_PLAIN, NULL, 0, &plain_one, sizeof plain_one, BLITZ_FOREVER),
        (int)sizeof plain_one);
    CHECK_EQ(upgraded("counter", NULL, NULL).libraries, 1u);
    blitz_event_set(&go);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    blitz_upgrade_info info;
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(blitz_upgrade_wait("counter", NULL, &info, BLITZ_FOREVER), 0);
        CHECK_EQ(info.libraries, 1u); /* an actor without a version has its behaviour there */
        blitz_yield();
    }
    CHECK_EQ(blitz_actor_kill(plain_one), 0);
    until_unloaded("counter");
    return 0;
}

TEST(upgrade, a_library_stays_while_its_fibers_and_plain_actors_live)
{
    t_on_each(counts_tasks, NULL, 0);
}

static int never(void *arg)
{
    blitz_actor_id id = born(&counter);
    const char *name = arg;
    (void)upgraded("counter", library(name), strcmp(name, "2") == 0 ? NULL : &unloads);
    CHECK_EQ(ask(id, GET).version, 2);
    CHECK_EQ(upgraded("counter", NULL, NULL).libraries, 1u);
    CHECK(mappings() > 0);
    return 0;
}

TEST(upgrade, a_library_is_never_unloaded_by_default)
{
    CHECK_EQ(blitz_run(never, (char[]){"2"}, NULL), 0);
    CHECK(mappings() > 0);
}

/* Rule: thread-local destructors, threads. */
TEST(upgrade, a_library_with_threads_or_their_variables_is_not_unloaded)
{
    CHECK_EQ(blitz_run(never, (char[]){"thread_local"}, NULL), 0);
    CHECK_EQ(blitz_run(never, (char[]){"threads"}, NULL), 0);
    CHECK(mappings() > 0);
}

static int at_the_end(void *arg)
{
    (void)born(&counter);
    (void)upgraded("counter", library("2"), arg);
    return 0;
}

/* A node may be reading the table while it delivers: node/deliver.c. */
TEST(upgrade, a_library_with_a_table_of_terms_is_not_unloaded)
{
    int before = mappings();
    CHECK_EQ(blitz_run(never, (char[]){"terms"}, NULL), 0);
    CHECK(mappings() > before);
}

TEST(upgrade, the_end_of_the_runtime_unloads)
{
    for (int i = 0; i < 5; i++)
        CHECK_EQ(blitz_run(at_the_end, (void *)(uintptr_t)&unloads, NULL), 0);
    CHECK_EQ(mappings(), 0);
}

/* Rule: the ranges of code in which a thread is not stopped, nor a frame skipped, come and go with libraries. */
TEST(upgrade, ranges_of_code_follow_the_libraries)
{
    char path[] = "/tmp/libunwind-of-testXXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    (void)close(fd);
    bz_code_find();
    copy(library("2"), path);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK_NOT_NULL(handle);
    const blitz_library *table = dlsym(handle, "blitz_library_table");
    uintptr_t code = (uintptr_t)table->behaviours[0]->handlers[0].fn;
    CHECK(bz_code_may_stop(code)); /* not known yet */
    bz_code_renew();
    CHECK(!bz_code_may_stop(code));
    CHECK(!bz_code_may_stop((uintptr_t)malloc));
    CHECK_EQ(dlclose(handle), 0);
    bz_code_renew();
    CHECK(bz_code_may_stop(code));
    CHECK(!bz_code_may_stop((uintptr_t)malloc));
    (void)unlink(path);
}

#if defined(__x86_64__) && !T_TSAN && !T_ASAN
static int faulting(void *arg)
{
    blitz_actor_id id = born(&sturdy);
    blitz_exit_reason why;
    (void)arg;
    (void)upgraded("sturdy", library("2"), &unloads);
    CHECK_EQ(ask(id, GET).version, 2);
    CHECK_EQ(blitz_actor_send(id, FAULT, NULL, 0), 0);
    int rc = blitz_actor_join(id, &why, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
    if (rc == 0)
        CHECK_EQ(why.code, -EFAULT);
    (void)upgraded("sturdy", NULL, NULL);
    until_unloaded("sturdy");
    return 0;
}

TEST(upgrade, a_fault_in_new_code_ends_the_actor)
{
    CHECK_EQ(blitz_run(faulting, NULL, NULL), 0);
}
#endif

static int pointing(void *arg)
{
    blitz_actor_id id = born(&counter);
    (void)upgraded("counter", library("2"), arg);
    CHECK_EQ(blitz_actor_send(id, POINT, NULL, 0), 0);
    CHECK_EQ(blitz_actors_wait_quiet(NULL, BLITZ_FOREVER), 0);
    CHECK_EQ(ask(id, GET).broken, 1); /* it was sent, and came */
    return 0;
}

static void point(void *arg)
{
    CHECK_EQ(blitz_run(pointing, arg, NULL), 0);
}

/* Rule: debug builds look for pointers into a library in payloads. One that stays may be pointed into. */
TEST(upgrade, a_payload_with_an_address_in_a_library_aborts_debug_builds)
{
#if defined(BZ_DEBUG)
    CHECK_ABORTS(point, (void *)(uintptr_t)&unloads, "address in a library");
#endif
    point(NULL);
}
