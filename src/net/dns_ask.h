/*
 * dns_ask.h - ask name servers one or two questions. dns_ask.c has the rules.
 */
#ifndef BZ_NET_DNS_ASK_H
#define BZ_NET_DNS_ASK_H

#include "blitz/time.h"
#include "net/dns_files.h"

enum { BZ_DNS_QUESTIONS = 2 };

struct bz_dns_ask {
    const struct bz_dns_conf *conf; /* constant while it asks, as is */
    unsigned first;                 /* the server to begin with */
    /* Called when a question has its answer, and at hint_at. They must not suspend. */
    void (*came)(struct bz_dns_ask *a, unsigned i);
    void (*hint)(struct bz_dns_ask *a);
    blitz_deadline hint_at; /* BLITZ_FOREVER: no hint; `came` may set it */
    struct bz_dns_question q[BZ_DNS_QUESTIONS];
    bool is_open[BZ_DNS_QUESTIONS];                /* has no answer yet; set by the caller */
    enum bz_dns_verdict verdict[BZ_DNS_QUESTIONS]; /* of a question that is not open */
    struct bz_dns_answer answer[BZ_DNS_QUESTIONS];
    /* Of the current server. */
    bool is_given_up[BZ_DNS_QUESTIONS], is_cut[BZ_DNS_QUESTIONS], has_edns[BZ_DNS_QUESTIONS];
    bool has_failed; /* a server has answered, and cannot help */
    uint8_t out[2 + BZ_DNS_QUESTION_MAX];
    uint8_t in[BZ_DNS_UDP_MAX + 1];
};

/*
 * Ask until no question is open, or no server has an answer.
 * Suspends: until then or a cancel. Call from a task.
 * Returns:  0: no question is open. -EAGAIN (servers do not answer), -EIO (servers answer, and cannot help),
 *           -ECANCELED, -ENOMEM, -EMFILE and the like: some are open.
 */
BZ_MUST_USE int bz_dns_ask(struct bz_dns_ask *a);

#endif
