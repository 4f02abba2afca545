/* Binaries that objects of a heap own: alive with them, released after them. And views of several binaries. */
#include "harness.h"

#include <errno.h>
#include <string.h>

#include "blitz.h"
#include "support/counted.h"
#include "support/on_each.h"

struct page {
    struct page *next;
    blitz_held_binary *text;
};
BLITZ_VALUE_TYPE(heap_binary_page, struct page, next, text);

static blitz_heap *heap_of(const blitz_heap_opts *opts)
{
    blitz_heap *h = NULL;
    CHECK_EQ(blitz_heap_new(opts, &h), 0);
    return h;
}

static blitz_binary *binary_of(const char *text)
{
    blitz_binary *b = NULL;
    CHECK_EQ(blitz_binary_copy(text, strlen(text), &b), 0);
    return b;
}

static uint32_t refs_of(const blitz_binary *b)
{
    blitz_binary_info info;
    blitz_binary_info_get(b, &info);
    return info.refs;
}

static blitz_heap_info info_of(blitz_heap *h)
{
    blitz_heap_info info;
    blitz_heap_info_get(h, &info);
    return info;
}

static struct page *page_of(blitz_heap *h, struct page *next, blitz_binary *b)
{
    struct page page = {next, blitz_heap_binary(h, b)};
    return page.text != NULL ? blitz_heap_copy(h, &heap_binary_page, 0, &page) : NULL;
}

/* ---- held ---- */

TEST(heap_binary, a_binary_is_released_when_its_object_is_dead)
{
    for (int verify = 0; verify < 2; verify++) {
        blitz_heap *h = heap_of(&(blitz_heap_opts){.verify = verify});
        blitz_binary *kept = binary_of("kept"), *dropped = binary_of("dropped");
        struct page *list = page_of(h, page_of(h, NULL, kept), kept);
        CHECK_NOT_NULL(page_of(h, NULL, dropped));
        CHECK_EQ(refs_of(kept), 3);
        CHECK_EQ(refs_of(dropped), 2);
        CHECK_EQ(BLITZ_HEAP_COLLECT(h, &list), 0);
        CHECK_EQ(refs_of(kept), 3);
        CHECK_EQ(refs_of(dropped), 1);
        CHECK_EQ(list->text->binary, kept);
        CHECK_EQ(list->next->text->binary, kept);
        CHECK_EQ(info_of(h).binaries, 2);
        CHECK_EQ(info_of(h).binary_bytes, 8);
        list = list->next;
        CHECK_EQ(BLITZ_HEAP_COLLECT(h, &list), 0); /* an old one that is dead now */
        CHECK_EQ(refs_of(kept), 2);
        blitz_heap_unref(h);
        CHECK_EQ(refs_of(kept), 1);
        blitz_binary_unref(kept);
        blitz_binary_unref(dropped);
    }
}

/* A minor collection releases young ones, and keeps all old ones. */
TEST(heap_binary, a_minor_collection_keeps_old_binaries)
{
    blitz_heap *h = heap_of(&(blitz_heap_opts){.verify = true});
    blitz_binary *b = binary_of("text");
    struct page *list = page_of(h, NULL, b);
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &list), 0);
    for (int i = 0; i < 10; i++) {
        CHECK_NOT_NULL(page_of(h, NULL, b));
        list = page_of(h, list, b);
        CHECK_EQ(BLITZ_HEAP_TIDY(h, &list), 0);
        CHECK_EQ(refs_of(b), (uint32_t)(i + 3));
    }
    CHECK_GT(info_of(h).minor, 0);
    CHECK_EQ(list->text->binary, b);
    blitz_heap_unref(h);
    CHECK_EQ(refs_of(b), 1);
    blitz_binary_unref(b);
}

/* Their holders are small: without this rule an actor would keep each large binary that it has dropped. */
TEST(heap_binary, large_binaries_make_a_collection_due)
{
    blitz_heap *h = heap_of(NULL);
    blitz_binary *b;
    CHECK_EQ(blitz_binary_new(1 << 20, &b), 0);
    for (int i = 0; i < 10; i++) {
        CHECK_NOT_NULL(blitz_heap_binary(h, b));
        CHECK_EQ(blitz_heap_tidy(h, NULL, 0), 0);
        CHECK_EQ(refs_of(b), 1);
    }
    blitz_heap_unref(h);
    blitz_binary_unref(b);
}

/* A pinned holder stays, and so does its binary. */
TEST(heap_binary, a_pinned_object_holds_its_binary)
{
    blitz_heap *h = heap_of(&(blitz_heap_opts){.verify = true});
    blitz_binary *b = binary_of("text");
    blitz_held_binary *held = blitz_heap_binary(h, b);
    blitz_pin *pin;
    CHECK_EQ(blitz_pin_new(h, held, &pin), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(i % 2 ? blitz_heap_tidy(h, NULL, 0) : blitz_heap_collect(h, NULL, 0), 0);
    CHECK_EQ(held->binary, b);
    CHECK_EQ(refs_of(b), 2);
    blitz_pin_unref(pin);
    CHECK_EQ(blitz_heap_collect(h, NULL, 0), 0);
    CHECK_EQ(refs_of(b), 1);
    blitz_heap_unref(h);
    blitz_binary_unref(b);
}

/* The bytes are in use elsewhere: that is what a pin is for. */
TEST(heap_binary, a_pinned_object_holds_its_binary_beyond_the_end_of_the_heap)
{
    for (int is_old = 0; is_old < 2; is_old++) {
        blitz_heap *h = heap_of(NULL);
        blitz_binary *b = binary_of("text");
        blitz_held_binary *held = blitz_heap_binary(h, b);
        blitz_pin *pin[3];
        for (int i = 0; i < 3; i++)
            CHECK_EQ(blitz_pin_new(h, held, &pin[i]), 0);
        CHECK_NOT_NULL(blitz_heap_binary(h, b));
        if (is_old)
            CHECK_EQ(blitz_heap_collect(h, NULL, 0), 0); /* the second one goes */
        CHECK_EQ(refs_of(b), is_old ? 2 : 3);
        blitz_pin_unref(pin[0]);
        blitz_heap_unref(h);
        CHECK_EQ(refs_of(b), 2);
        CHECK_EQ(held->binary, b);
        blitz_pin_unref(pin[1]);
        CHECK_EQ(refs_of(b), 2);
        blitz_pin_unref(pin[2]);
        CHECK_EQ(refs_of(b), 1);
        blitz_binary_unref(b);
    }
}

TEST(heap_binary, without_memory_no_reference_is_taken)
{
    counted_refuse(0, false);
    blitz_heap *h = heap_of(&(blitz_heap_opts){.allocator = &counted});
    blitz_binary *b = binary_of("text");
    counted_refuse(1, true);
    CHECK_NULL(blitz_heap_binary(h, b));
    counted_refuse(0, false);
    CHECK_EQ(refs_of(b), 1);
    CHECK_EQ(info_of(h).binaries, 0);
    blitz_heap_unref(h);
    blitz_binary_unref(b);
}

static void sum_up(blitz_binary *b, void *ctx)
{
    blitz_binary_info info;
    blitz_binary_info_get(b, &info);
    *(size_t *)ctx += info.bytes * 1000 + info.whole_bytes;
}

/* A slice of a few bytes keeps the whole alive. */
TEST(heap_binary, a_report_names_each_binary_and_what_it_keeps_alive)
{
    blitz_heap *h = heap_of(NULL);
    blitz_binary *b = binary_of("a whole text"), *slice;
    size_t sum = 0;
    CHECK_EQ(blitz_binary_slice(b, 2, 5, &slice), 0);
    struct page *list = page_of(h, page_of(h, NULL, slice), b);
    CHECK_EQ(BLITZ_HEAP_COLLECT(h, &list), 0);
    CHECK_NOT_NULL(blitz_heap_binary(h, b)); /* a young one */
    blitz_heap_binaries(h, sum_up, &sum);
    CHECK_EQ(sum, (12 + 5 + 12) * 1000 + 3 * 12);
    CHECK_EQ(info_of(h).binary_bytes, 3 * 12);
    blitz_heap_unref(h);
    CHECK_EQ(refs_of(b), 2);
    blitz_binary_unref(slice);
    blitz_binary_unref(b);
}

/* ---- in an actor ---- */

enum { KEEP };

struct book {
    struct page *first;
};
BLITZ_TYPE(heap_binary_book, struct book, first);

BLITZ_HANDLER(on_keep, struct book, void)
{
    (void)data;
    CHECK_NOT_NULL(blitz_actor_binary(m->binary)); /* garbage */
    struct page page = {state->first, blitz_actor_binary(m->binary)};
    state->first = blitz_actor_copy(&heap_binary_page, 0, &page);
    return blitz_actor_reply(m->reply, NULL, 0);
}

static int in_an_actor(void *arg)
{
    static const blitz_handler handlers[] = {BLITZ_ON_EMPTY(KEEP, on_keep)};
    static const blitz_behaviour behaviour = {.state_bytes = sizeof(struct book),
                                              .state_type = &heap_binary_book,
                                              .heap_verify = true,
                                              .handlers = handlers,
                                              .handler_count = 1};
    blitz_actor_id id;
    (void)arg;
    blitz_binary *b = binary_of("shared");
    CHECK_EQ(blitz_actor_spawn(&behaviour, NULL, NULL, &id), 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(blitz_actor_call_with(id, KEEP, NULL, 0, &(blitz_cargo){.binary = b}, NULL, 0,
                                       NULL, BLITZ_FOREVER),
                 0);
    CHECK_GE(refs_of(b), 11);
    CHECK_EQ(blitz_actor_kill(id), 0);
    int rc = blitz_actor_join(id, NULL, BLITZ_FOREVER);
    CHECK(rc == 0 || rc == -ESRCH);
    while (refs_of(b) != 1) /* the join may be told before the last letter goes */
        blitz_yield();
    blitz_binary_unref(b);
    return 0;
}

TEST(heap_binary, an_actor_that_ends_releases_its_binaries)
{
    t_on_each(in_an_actor, NULL, 0);
}

/* ---- views ---- */

static void expect(const blitz_binary_view *v, const char *text)
{
    blitz_binary *flat;
    size_t count, at = 0;
    const blitz_piece *pieces = blitz_binary_view_pieces(v, &count);
    for (size_t i = 0; i < count; i++) {
        CHECK_GT(pieces[i].bytes, 0);
        CHECK_MEM_EQ(pieces[i].data, text + at, pieces[i].bytes);
        at += pieces[i].bytes;
    }
    CHECK_EQ(at, strlen(text));
    CHECK_EQ(blitz_binary_view_size(v), at);
    CHECK_EQ(blitz_binary_view_flatten(v, &flat), 0);
    CHECK_EQ(blitz_binary_size(flat), at);
    CHECK_MEM_EQ(blitz_binary_data(flat), text, at);
    blitz_binary_unref(flat);
}

TEST(binary_view, parts_are_shown_in_order_without_a_copy)
{
    blitz_binary *parts[] = {binary_of("one "), binary_of(""), binary_of("two "), NULL};
    blitz_binary_view *v, *rest;
    size_t count;
    CHECK_EQ(blitz_binary_slice(parts[2], 0, 3, &parts[3]), 0);
    CHECK_EQ(blitz_binary_view_new(parts, 4, &v), 0);
    CHECK_EQ(blitz_binary_view_pieces(v, &count)[0].data, blitz_binary_data(parts[0]));
    CHECK_EQ(count, 3);
    expect(v, "one two two");
    for (size_t at = 0; at <= 11; at++)
        for (size_t size = 0; size <= 11 - at; size++) {
            char want[12] = "";
            memcpy(want, &"one two two"[at], size);
            CHECK_EQ(blitz_binary_view_slice(v, at, size, &rest), 0);
            expect(rest, want);
            blitz_binary_view_unref(rest);
        }
    CHECK_EQ(blitz_binary_view_slice(v, 11, 1, &rest), -EINVAL);
    CHECK_EQ(blitz_binary_view_slice(v, 12, 0, &rest), -EINVAL);
    CHECK_EQ(blitz_binary_view_slice(v, 4, 7, &rest), 0);
    blitz_binary_view_unref(v); /* a slice keeps what it shows */
    for (int i = 0; i < 4; i++)
        blitz_binary_unref(parts[i]);
    expect(rest, "two two");
    blitz_binary_view_unref(rest);
    CHECK_EQ(blitz_binary_view_new(NULL, 0, &v), 0);
    expect(v, "");
    blitz_binary_view_unref(v);
    blitz_binary_view_unref(NULL);
}

static int writes_a_view(void *arg)
{
    blitz_tcp *end[2];
    blitz_binary *parts[] = {binary_of("head "), binary_of("body")};
    blitz_binary_view *v;
    char got[10] = "";
    size_t count, done;
    (void)arg;
    CHECK_EQ(blitz_unix_pair(end), 0);
    CHECK_EQ(blitz_binary_view_new(parts, 2, &v), 0);
    const blitz_piece *pieces = blitz_binary_view_pieces(v, &count);
    CHECK_EQ(blitz_tcp_writev(end[0], pieces, count, BLITZ_FOREVER), 9);
    CHECK_EQ(blitz_tcp_read_exact(end[1], got, 9, &done, BLITZ_FOREVER), 0);
    CHECK_STR_EQ(got, "head body");
    blitz_binary_view_unref(v);
    blitz_binary_unref(parts[0]);
    blitz_binary_unref(parts[1]);
    blitz_tcp_close(end[0]);
    blitz_tcp_close(end[1]);
    return 0;
}

TEST(binary_view, one_write_takes_all_parts)
{
    t_on_each(writes_a_view, NULL, 0);
}
