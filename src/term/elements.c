/*
 * elements.c - lists, however they are encoded; and text.
 *
 * The elements of a proper list come as LIST with a tail of NIL, as STRING (bytes), or as LIST whose tail is again a LIST or a STRING.
 * A walk over the elements joins these. `in` stands at the next element, or, when no element is left, at the tail; at the very
 * beginning the whole list counts as such a tail.
 */
#include <string.h>

#include "term/head.h"
#include "term/utf8.h"
#include "term/wire.h"

int blitz_term_get_elements(blitz_term_in *in, blitz_term_list *list)
{
    blitz_term_in copy = *in;
    blitz_term_item item;
    blitz_term whole;
    int rc = blitz_term_peek(&copy, &item);
    if (rc != 0)
        return rc;
    if (item.kind != BLITZ_TERM_IS_LIST && item.kind != BLITZ_TERM_IS_NIL &&
        item.kind != BLITZ_TERM_IS_STRING)
        return -EINVAL;
    rc = blitz_term_take(&copy, &whole);
    if (rc != 0)
        return rc;
    *list = (blitz_term_list){.in = blitz_term_in_of(whole), .byte = {BZ_TAG_SMALL_INTEGER, 0}};
    *in = copy;
    return 0;
}

/* Read what stands where the elements end. 1: more elements; 0: the end. */
static int enter_tail(blitz_term_list *list)
{
    blitz_term_in copy = list->in;
    blitz_term_item item;
    if (blitz_term_at_end(&list->in))
        return 0;
    int rc = blitz_term_next(&copy, &item);
    if (rc != 0)
        return rc;
    switch (item.kind) {
    case BLITZ_TERM_IS_NIL:
        list->in = copy;
        return 0;
    case BLITZ_TERM_IS_LIST:
        list->in = copy;
        list->left = item.as.count;
        return 1;
    case BLITZ_TERM_IS_STRING:
        list->in.at = item.as.binary.data;
        list->left = (uint32_t)item.as.binary.bytes;
        list->is_string = true;
        return list->left > 0;
    default:
        copy = list->in;
        rc = blitz_term_take(&copy, &list->tail);
        return rc == 0 ? -EINVAL : rc;
    }
}

int blitz_term_next_element(blitz_term_list *list, blitz_term *element)
{
    if (list->left == 0) {
        int rc = enter_tail(list);
        if (rc <= 0)
            return rc;
    }
    if (list->is_string) {
        list->byte[1] = *list->in.at++;
        *element = (blitz_term){list->byte, sizeof list->byte};
    } else {
        int rc = blitz_term_take(&list->in, element);
        if (rc != 0)
            return rc;
    }
    list->left--;
    return 1;
}

static int text_of_list(blitz_term_in *in, char *buf, size_t cap, size_t *bytes)
{
    blitz_term_list list;
    blitz_term element;
    size_t length = 0;
    int rc = blitz_term_get_elements(in, &list);
    if (rc != 0)
        return rc;
    while ((rc = blitz_term_next_element(&list, &element)) == 1) {
        blitz_term_in one = blitz_term_in_of(element);
        char utf8[4];
        int64_t c;
        if (blitz_term_get_int(&one, &c) != 0 || c < 0 || c > 0x10ffff)
            return -EINVAL;
        unsigned n = bz_utf8_put(utf8, (uint32_t)c);
        if (n == 0)
            return -EINVAL;
        if (length + n >= cap)
            return -ERANGE;
        memcpy(buf + length, utf8, n);
        length += n;
    }
    *bytes = length;
    return rc;
}

int blitz_term_get_text(blitz_term_in *in, char *buf, size_t cap, size_t *bytes)
{
    blitz_term_in copy = *in;
    blitz_term text;
    size_t length = 0;
    int rc = blitz_term_get_binary(&copy, &text);
    if (rc == 0) {
        length = text.bytes;
        if (length < cap && length > 0)
            memcpy(buf, text.data, length);
    } else if (rc == -EINVAL) {
        rc = text_of_list(&copy, buf, cap, &length);
    }
    if (rc != 0)
        return rc;
    if (length >= cap)
        return -ERANGE;
    buf[length] = '\0';
    if (bytes != NULL)
        *bytes = length;
    *in = copy;
    return 0;
}
