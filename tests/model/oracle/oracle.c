/*
 * oracle.c - any small program, given as text: the checker's half of the comparison in oracle.py.
 *
 * BLITZ_MODEL_PROGRAM holds threads separated by `|`, each a run of operations:
 *   Wx1r  store 1 to x    Rya  load y    Uxq  add 16 to x    Fs  fence
 * The last letter is the order: n relaxed, a acquire, r release, q acq_rel, s seq_cst.
 */
#include <stdlib.h>
#include <string.h>

#include "model.h"

static bz_atomic(int) var[3]; /* x, y, z */
static const char *text[8];

static enum m_order order_of(char c)
{
    switch (c) {
    case 'a':
        return BZ_ACQUIRE;
    case 'r':
        return BZ_RELEASE;
    case 'q':
        return BZ_ACQREL;
    case 's':
        return BZ_SEQCST;
    default:
        return BZ_RELAXED;
    }
}

static void interpret(void)
{
    for (const char *s = text[m_self()]; *s != '\0' && *s != '|';) {
        switch (*s) {
        case 'W':
            BZ_A_STORE(&var[s[1] - 'x'], s[2] - '0', order_of(s[3]));
            s += 4;
            break;
        case 'R':
            (void)BZ_A_LOAD(&var[s[1] - 'x'], order_of(s[2]));
            s += 3;
            break;
        case 'U':
            (void)BZ_A_FETCH(add, &var[s[1] - 'x'], 16, order_of(s[2]));
            s += 3;
            break;
        case 'F':
            BZ_A_FENCE(order_of(s[1]));
            s += 2;
            break;
        default:
            s++;
        }
    }
}

MODEL(oracle, program)
{
    const char *s = getenv("BLITZ_MODEL_PROGRAM");
    int n = 0;
    while (s != NULL && n < 4) {
        text[++n] = s;
        s = strchr(s, '|');
        s = s == NULL ? NULL : s + 1;
    }
    if (n == 4)
        m_threads(interpret, interpret, interpret, interpret);
    else if (n == 3)
        m_threads(interpret, interpret, interpret);
    else if (n == 2)
        m_threads(interpret, interpret);
    else if (n == 1)
        m_threads(interpret);
}
