/*
 * sessions.c - the sessions that a client may resume: one for each host.
 *
 * A session proves that the host was verified, so it is used only for the same host, with the same
 * configuration; a reload forgets all. A session of TLS 1.3 is used once, so that an observer cannot
 * link two connections by it: it is taken out, and the new connection brings a new one. The least
 * recently stored session makes room. The list is short and searched from its start.
 */
#include <string.h>

#include "tls/tls.h"

static void slot_clear(struct bz_tls_session *s)
{
    SSL_SESSION_free(s->session);
    OPENSSL_free(s->host);
    *s = (struct bz_tls_session){0};
}

static struct bz_tls_session *slot_of(struct bz_tls_sessions *s, const char *host)
{
    for (unsigned i = 0; i < s->count; i++)
        if (strcmp(s->slot[i].host, host) == 0)
            return &s->slot[i];
    return NULL;
}

static void slot_remove(struct bz_tls_sessions *s, struct bz_tls_session *one)
{
    slot_clear(one);
    *one = s->slot[--s->count];
}

static struct bz_tls_session *slot_oldest(struct bz_tls_sessions *s)
{
    struct bz_tls_session *oldest = &s->slot[0];
    for (unsigned i = 1; i < s->count; i++)
        if (s->slot[i].used < oldest->used)
            oldest = &s->slot[i];
    return oldest;
}

/* Make room for one more, at most `most` in all. False: there is no memory. */
static bool sessions_room(struct bz_tls_sessions *s, unsigned most)
{
    if (s->count >= most)
        slot_remove(s, slot_oldest(s));
    if (s->count < s->room)
        return true;
    unsigned room = s->room > 0 ? 2 * s->room : 8;
    void *bigger = OPENSSL_realloc(s->slot, room * sizeof s->slot[0]);
    if (bigger == NULL)
        return false;
    s->slot = bigger;
    s->room = room;
    return true;
}

/* Take the session on success. */
static bool sessions_put(struct bz_tls_sessions *s, unsigned most, const char *host,
                         SSL_SESSION *session)
{
    struct bz_tls_session *old = slot_of(s, host);
    if (old != NULL)
        slot_remove(s, old);
    char *copy = OPENSSL_strdup(host);
    if (copy == NULL || !sessions_room(s, most)) {
        OPENSSL_free(copy);
        return false;
    }
    s->slot[s->count++] = (struct bz_tls_session){copy, session, ++s->clock};
    return true;
}

/* A callback of OpenSSL, during a call on the connection. Return 1 if the session was taken. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
    blitz_tls *tls = SSL_get_app_data(ssl);
    blitz_tls_config *config = tls->config;
    int is_taken = 0;
    if (tls->host == NULL || !SSL_SESSION_is_resumable(session) ||
        !CRYPTO_THREAD_write_lock(config->lock))
        return 0;
    if (config->set == tls->set) /* not reloaded since */
        is_taken = sessions_put(&config->sessions, tls->set->sessions_max, tls->host, session);
    CRYPTO_THREAD_unlock(config->lock);
    return is_taken;
}

void bz_tls_sessions_hook(SSL_CTX *ctx)
{
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, on_session);
}

/* Before the handshake: resume the session of this host, if there is one. */
void bz_tls_session_resume(blitz_tls *tls)
{
    blitz_tls_config *config = tls->config;
    SSL_SESSION *session = NULL;
    if (tls->host == NULL || !CRYPTO_THREAD_write_lock(config->lock))
        return;
    struct bz_tls_session *s =
        config->set == tls->set ? slot_of(&config->sessions, tls->host) : NULL;
    if (s != NULL && SSL_SESSION_up_ref(s->session) == 1) {
        session = s->session;
        if (SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION)
            slot_remove(&config->sessions, s);
    }
    CRYPTO_THREAD_unlock(config->lock);
    if (session != NULL)
        SSL_set_session(tls->ssl, session);
    SSL_SESSION_free(session);
}

void bz_tls_sessions_clear(struct bz_tls_sessions *s)
{
    for (unsigned i = 0; i < s->count; i++)
        slot_clear(&s->slot[i]);
    OPENSSL_free(s->slot);
    *s = (struct bz_tls_sessions){0};
}
