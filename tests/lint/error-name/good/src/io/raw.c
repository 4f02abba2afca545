/* raw.c - a fixture of the lint tests: EWOULDBLOCK is a word, in a comment "EWOULDBLOCK" in a string. */
int f(void)
{
    return errno == EWOULDBLOCK; /* lint: allow error-name: translated here */
}
