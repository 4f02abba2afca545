/*
 * dns_message.c - questions and answers in the format of RFC 1035, with EDNS0 (RFC 6891).
 *
 * An answer may come from anyone who can send a datagram, so the reader trusts no field. It keeps a position and
 * checks every step against the end of the message. The rules that keep its work bounded:
 *
 * I1  A pointer in a name points to a byte before the one at which this part of the name began. So each jump goes
 *     further back, and a loop is impossible, whatever the bytes are. The length of a name bounds it a second time.
 * I2  A name has at most 254 bytes as text. A longer one is an error, not cut.
 * I3  An alias is followed at most BZ_DNS_CHAIN_MAX times, each time by one pass over the answers. An answer of more
 *     than RECORDS_MAX records is refused.
 *
 * An answer counts only if it repeats the question: id, name, type and class. Everything else is foreign, and the
 * caller goes on waiting: a forged datagram must not end a lookup. Only answers are used, and of these only the
 * addresses of the name at the end of the chain of aliases. Names of other hosts in the additional section are
 * ignored: accepting them is how caches are poisoned.
 *
 * The TTL of the result is the smallest on the way: of the aliases and the addresses; for "no such name", that of the
 * SOA record and its last field (RFC 2308, section 5). Without an SOA a negative answer is not kept.
 *
 * Rejected: random case of the question's letters as further entropy (0x20). Some servers answer in lower case, and
 * falling back costs more attempts than the sixteen bits of the id and those of the port gain.
 */
#include "net/dns_message.h"

#include <errno.h>
#include <string.h>

enum {
    HEADER = 12,
    FLAG_ANSWER = 0x8000,
    FLAG_OPCODE = 0x7800,
    FLAG_TRUNCATED = 0x0200,
    FLAG_RECURSE = 0x0100,
    RCODE = 0x000f,
    CLASS_IN = 1,
    TYPE_OPT = 41,
    RECORDS_MAX = 512,
    RCODE_FORMAT = 1,
    RCODE_NO_NAME = 3,
    RCODE_NOT_IMPLEMENTED = 4
};

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static uint8_t *put16(uint8_t *p, unsigned value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
    return p + 2;
}

/* ---- names ---- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_of_a_host(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

int bz_dns_name(const char *text, size_t bytes, char out[BZ_DNS_NAME_MAX])
{
    char name[BZ_DNS_NAME_MAX];
    size_t label = 0;
    if (bytes > 0 && text[bytes - 1] == '.')
        bytes--;
    if (bytes == 0 ||
        bytes >= BZ_DNS_NAME_MAX - 1) /* with two more bytes, the form in a message has 255 */
        return -EINVAL;
    for (size_t i = 0; i < bytes; i++) {
        name[i] = lower(text[i]);
        label = text[i] == '.' ? 0 : label + 1;
        bool is_empty = text[i] == '.' && (i == 0 || text[i - 1] == '.');
        if (is_empty || label > BZ_DNS_LABEL_MAX || (text[i] != '.' && !is_of_a_host(name[i])))
            return -EINVAL;
    }
    if (label == 0)
        return -EINVAL;
    name[bytes] = '\0';
    memcpy(out, name, bytes + 1);
    return (int)bytes;
}

/* Append a label of a message as text. A dot inside of a label becomes a byte that no name of ours has. */
static int add_label(char *out, size_t *length, const uint8_t *label, size_t bytes)
{
    if (*length + bytes + (*length > 0) >= BZ_DNS_NAME_MAX) /* I2 */
        return -EIO;
    if (*length > 0)
        out[(*length)++] = '.';
    for (size_t i = 0; i < bytes; i++) {
        char c = lower((char)label[i]);
        out[(*length)++] = c == '.' || c == '\0' ? '\x7f' : c;
    }
    return 0;
}

int bz_dns_read_name(const uint8_t *data, size_t bytes, size_t *at, char out[BZ_DNS_NAME_MAX])
{
    size_t p = *at, began = *at, length = 0;
    bool has_jumped = false;
    for (;;) {
        if (p >= bytes)
            return -EIO;
        uint8_t n = data[p];
        if (n == 0)
            break;
        if ((n & 0xc0) == 0xc0) {
            if (p + 1 >= bytes)
                return -EIO;
            size_t to = get16(&data[p]) & 0x3fff;
            if (to >= began) /* I1 */
                return -EIO;
            if (!has_jumped)
                *at = p + 2;
            has_jumped = true;
            p = began = to;
            continue;
        }
        if (n > BZ_DNS_LABEL_MAX || bytes - p <= n || add_label(out, &length, &data[p + 1], n) != 0)
            return -EIO;
        p += (size_t)n + 1;
    }
    if (!has_jumped)
        *at = p + 1;
    out[length] = '\0';
    return 0;
}

/* ---- questions ---- */

static uint8_t *put_name(uint8_t *p, const char *name)
{
    while (*name != '\0') {
        size_t n = strcspn(name, ".");
        *p++ = (uint8_t)n;
        memcpy(p, name, n);
        p += n;
        name += n + (name[n] == '.');
    }
    *p++ = 0;
    return p;
}

size_t bz_dns_write(const struct bz_dns_question *q, bool has_edns,
                    uint8_t out[BZ_DNS_QUESTION_MAX])
{
    uint8_t *p = out;
    p = put16(p, q->id);
    p = put16(p, FLAG_RECURSE);
    p = put16(p, 1);
    p = put16(p, 0);
    p = put16(p, 0);
    p = put16(p, has_edns);
    p = put_name(p, q->name);
    p = put16(p, q->type);
    p = put16(p, CLASS_IN);
    if (has_edns) {
        *p++ = 0; /* the root */
        p = put16(p, TYPE_OPT);
        p = put16(p, BZ_DNS_UDP_MAX);
        p = put16(p, 0); /* version and flags */
        p = put16(p, 0);
        p = put16(p, 0); /* no options */
    }
    return (size_t)(p - out);
}

/* ---- answers ---- */

struct record {
    char name[BZ_DNS_NAME_MAX];
    uint16_t type, class;
    uint32_t ttl_s;
    size_t data, bytes; /* its data in the message */
};

/* Read the record at *at, and move *at behind it. Returns 0, -EIO. */
static int read_record(const uint8_t *data, size_t bytes, size_t *at, struct record *out)
{
    if (bz_dns_read_name(data, bytes, at, out->name) != 0 || bytes - *at < 10)
        return -EIO;
    const uint8_t *p = &data[*at];
    out->type = get16(p);
    out->class = get16(p + 2);
    out->ttl_s = get32(p + 4);
    if (out->ttl_s > INT32_MAX)
        out->ttl_s = 0; /* RFC 2181, section 8 */
    out->bytes = get16(p + 8);
    out->data = *at + 10;
    if (bytes - out->data < out->bytes)
        return -EIO;
    *at = out->data + out->bytes;
    return 0;
}

/* The state of reading one answer. */
struct reading {
    const struct bz_dns_question *q;
    const uint8_t *data;
    size_t bytes, answers; /* where they begin */
    unsigned answer_count, authority_count;
    char name[BZ_DNS_NAME_MAX]; /* the end of the chain of aliases so far */
    char next[BZ_DNS_NAME_MAX];
    uint32_t ttl_s;
    struct bz_dns_answer *out;
};

static void keep_shorter(uint32_t *ttl_s, uint32_t other_s)
{
    *ttl_s = other_s < *ttl_s ? other_s : *ttl_s;
}

/* Keep the address of a record. */
static int take_address(struct reading *r, const struct record *record)
{
    size_t want = r->q->type == BZ_DNS_A ? 4 : 16;
    if (record->bytes != want)
        return -EIO;
    keep_shorter(&r->ttl_s, record->ttl_s);
    if (r->out->count < BZ_DNS_FOUND_MAX)
        memcpy(r->out->ip[r->out->count++], &r->data[record->data], want);
    return 0;
}

/* Keep the target of an alias. The first one of a name counts. */
static int take_alias(struct reading *r, const struct record *record)
{
    size_t at = record->data;
    if (r->next[0] != '\0')
        return 0;
    keep_shorter(&r->ttl_s, record->ttl_s);
    return bz_dns_read_name(r->data, record->data + record->bytes, &at, r->next);
}

/* Go once over the answers. Returns 0, -EIO. */
static int pass(struct reading *r)
{
    struct record record;
    size_t at = r->answers;
    r->next[0] = '\0';
    for (unsigned i = 0; i < r->answer_count; i++) {
        int err = read_record(r->data, r->bytes, &at, &record);
        if (err == 0 && record.class == CLASS_IN && strcmp(record.name, r->name) == 0) {
            if (record.type == r->q->type)
                err = take_address(r, &record);
            else if (record.type == BZ_DNS_CNAME)
                err = take_alias(r, &record);
        }
        if (err != 0)
            return err;
    }
    return 0;
}

/* Follow the aliases to the addresses. Returns 0 (also if there are none), -EIO. */
static int follow(struct reading *r)
{
    for (unsigned i = 0; i <= BZ_DNS_CHAIN_MAX; i++) { /* I3 */
        int err = pass(r);
        if (err != 0 || r->out->count > 0 || r->next[0] == '\0')
            return err;
        memcpy(r->name, r->next, sizeof r->name);
    }
    return -EIO;
}

/* How long a negative answer may be kept; 0: not at all. */
static uint32_t negative_ttl(const struct reading *r)
{
    struct record record;
    size_t at = r->answers;
    for (unsigned i = 0; i < r->answer_count + r->authority_count; i++) {
        if (read_record(r->data, r->bytes, &at, &record) != 0)
            return 0;
        if (i < r->answer_count || record.type != BZ_DNS_SOA || record.bytes < 22)
            continue;
        uint32_t ttl_s = record.ttl_s;
        keep_shorter(&ttl_s, get32(&r->data[record.data + record.bytes - 4]));
        keep_shorter(&ttl_s, r->ttl_s);
        return ttl_s;
    }
    return 0;
}

/* True if the message is an answer that repeats the question. */
static bool is_ours(const struct bz_dns_question *q, const uint8_t *data, size_t bytes,
                    size_t *behind)
{
    char name[BZ_DNS_NAME_MAX];
    if (bytes < HEADER || get16(data) != q->id)
        return false;
    unsigned flags = get16(data + 2);
    if (!(flags & FLAG_ANSWER) || (flags & FLAG_OPCODE) || get16(data + 4) != 1)
        return false;
    *behind = HEADER;
    if (bz_dns_read_name(data, bytes, behind, name) != 0 || bytes - *behind < 4)
        return false;
    if (strcmp(name, q->name) != 0 || get16(&data[*behind]) != q->type ||
        get16(&data[*behind + 2]) != CLASS_IN)
        return false;
    *behind += 4;
    return true;
}

enum bz_dns_verdict bz_dns_read(const struct bz_dns_question *q, const uint8_t *data, size_t bytes,
                                struct bz_dns_answer *out)
{
    struct reading r = {.q = q, .data = data, .bytes = bytes, .ttl_s = INT32_MAX, .out = out};
    if (!is_ours(q, data, bytes, &r.answers))
        return BZ_DNS_FOREIGN;
    unsigned flags = get16(data + 2), code = flags & RCODE;
    if (code == RCODE_FORMAT || code == RCODE_NOT_IMPLEMENTED)
        return BZ_DNS_NO_EDNS;
    if (code != 0 && code != RCODE_NO_NAME)
        return BZ_DNS_REFUSES;
    if (flags & FLAG_TRUNCATED)
        return BZ_DNS_TRUNCATED;
    r.answer_count = get16(data + 6);
    r.authority_count = get16(data + 8);
    memcpy(r.name, q->name, sizeof r.name);
    out->count = 0;
    if (r.answer_count > RECORDS_MAX || follow(&r) != 0) /* I3 */
        return BZ_DNS_REFUSES;
    out->ttl_s = out->count > 0 ? r.ttl_s : negative_ttl(&r);
    if (out->count > 0)
        return BZ_DNS_FOUND;
    return code == RCODE_NO_NAME ? BZ_DNS_NO_NAME : BZ_DNS_NO_DATA;
}
