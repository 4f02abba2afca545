/*
 * reasons.c - reasons of an end: blitz's as terms, Erlang's as blitz's.
 *
 * The kinds that both know are atoms. An error of blitz is {error, Code, Text}, and comes back as it was. Any other term of Erlang is an
 * error with code 0, and its text is the printed term, cut to what the text holds.
 */
#include <string.h>

#include "node/relations.h"

static const struct {
    blitz_exit_kind kind;
    const char *atom;
} atoms[] = {{BLITZ_EXIT_NORMAL, "normal"},
             {BLITZ_EXIT_SHUTDOWN, "shutdown"},
             {BLITZ_EXIT_KILLED, "killed"},
             {BLITZ_EXIT_KILLED, "kill"},
             {BLITZ_EXIT_NOPROC, "noproc"},
             {BLITZ_EXIT_UNREACHABLE, "unreachable"},
             {BLITZ_EXIT_NOCONNECTION, "noconnection"}};

void bz_reason_put(blitz_term_out *out, const blitz_exit_reason *why)
{
    for (size_t i = 0; i < BZ_ARRAY_LEN(atoms); i++)
        if (atoms[i].kind == why->kind) {
            blitz_term_put_atom(out, atoms[i].atom);
            return;
        }
    blitz_term_put_tuple(out, 3);
    blitz_term_put_atom(out, "error");
    blitz_term_put_int(out, why->code);
    blitz_term_put_binary(out, why->text, strnlen(why->text, sizeof why->text));
}

/* {error, Code, Text} */
static bool get_error(blitz_term term, blitz_exit_reason *why)
{
    blitz_term_in in = blitz_term_in_of(term);
    int64_t code;
    if (blitz_term_get_this_tuple(&in, 3) != 0 || blitz_term_get_this_atom(&in, "error") != 0 ||
        blitz_term_get_int(&in, &code) != 0 || code != (int)code ||
        blitz_term_get_text(&in, why->text, sizeof why->text, NULL) != 0)
        return false;
    why->code = (int)code;
    return true;
}

void bz_reason_get(blitz_term term, blitz_exit_reason *why)
{
    blitz_term_in in = blitz_term_in_of(term);
    blitz_term_atom atom;
    *why = (blitz_exit_reason){.kind = BLITZ_EXIT_ERROR};
    if (blitz_term_get_atom(&in, &atom) == 0)
        for (size_t i = 0; i < BZ_ARRAY_LEN(atoms); i++)
            if (blitz_term_atom_is(atom, atoms[i].atom)) {
                why->kind = atoms[i].kind;
                return;
            }
    in = blitz_term_in_of(term);
    if (blitz_term_get_this_tuple(&in, 2) == 0 && blitz_term_get_this_atom(&in, "shutdown") == 0) {
        why->kind = BLITZ_EXIT_SHUTDOWN; /* {shutdown, Why} */
        return;
    }
    if (!get_error(term, why)) {
        why->code = 0;
        (void)blitz_term_print(term, why->text, sizeof why->text);
    }
}
