/*
 * span.c - walk over a whole term, without recursion.
 *
 * A peer decides how deep a term is. So the walk keeps its levels in an array of fixed size, and a deeper term is refused. A level
 * counts the parts that are left. A list is one level with its tail: [1 | [2 | [3]]] is no deeper than [1, 2, 3], because peers may
 * send a list in pieces, and code that walks over it needs no stack either.
 *
 * Offsets have 32 bits: no frame of the protocol is larger.
 */
#include "term/head.h"

struct level {
    uint32_t left;    /* parts */
    uint32_t fun_end; /* of a FUN: where its last part must end; else 0 */
    bool is_list;
};

static int walk(const unsigned char *at, const unsigned char *end, uint32_t depth, size_t bytes_max,
                const unsigned char **after, uint64_t *heads)
{
    struct level levels[BLITZ_TERM_DEPTH_MAX + 1];
    struct level *l = levels;
    const unsigned char *start = at;
    struct bz_term_head head;
    *l = (struct level){1, 0, false};
    for (;;) {
        int rc = bz_term_head(at, end, &head);
        if (rc != 0)
            return rc;
        at = head.after;
        if (heads != NULL)
            ++*heads;
        if ((size_t)(at - start) > bytes_max)
            return -E2BIG;
        l->left--;
        if (head.parts > 0) {
            bool is_list = head.item.kind == BLITZ_TERM_IS_LIST;
            if (!(is_list && l->is_list && l->left == 0)) { /* no tail of a list */
                if (l - levels >= (ptrdiff_t)depth)
                    return -E2BIG;
                l++;
            }
            uint32_t fun_end = head.end == NULL ? 0 : (uint32_t)(head.end - start);
            *l = (struct level){(uint32_t)head.parts, fun_end, is_list};
        }
        for (; l->left == 0; l--) {
            if (l->fun_end != 0 && (uint32_t)(at - start) != l->fun_end)
                return -EPROTO;
            if (l == levels) {
                *after = at;
                return 0;
            }
        }
    }
}

/* A longer input is cut: what matters is the term at its start. */
int bz_term_walk(const unsigned char *at, const unsigned char *end, uint32_t depth,
                 size_t bytes_max, const unsigned char **after, uint64_t *heads)
{
    bool is_cut = (uint64_t)(end - at) > UINT32_MAX;
    int rc = walk(at, is_cut ? at + UINT32_MAX : end, depth, bytes_max, after, heads);
    return rc == -EPROTO && is_cut ? -E2BIG : rc;
}

int blitz_term_check(const void *data, size_t bytes, const blitz_term_limits *limits,
                     blitz_term *term, size_t *used)
{
    const unsigned char *start = (const unsigned char *)data, *after = NULL;
    size_t bytes_max = limits == NULL || limits->bytes == 0 ? UINT32_MAX : limits->bytes;
    uint32_t depth = limits == NULL || limits->depth == 0 ? BLITZ_TERM_DEPTH_MAX : limits->depth;
    if (bytes == 0 || start[0] != BLITZ_TERM_VERSION)
        return -EPROTO;
    int rc = bz_term_walk(start + 1, start + bytes,
                          depth > BLITZ_TERM_DEPTH_MAX ? BLITZ_TERM_DEPTH_MAX : depth, bytes_max,
                          &after, NULL);
    if (rc != 0)
        return rc;
    if (term != NULL)
        *term = (blitz_term){start + 1, (size_t)(after - start) - 1};
    if (used != NULL)
        *used = (size_t)(after - start);
    return 0;
}
