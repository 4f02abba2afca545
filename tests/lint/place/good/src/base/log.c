/* log.c - a fixture of the lint tests, and more words to make it an essay. */
int f(struct s *s)
{
    return s->addr.net + s->conf.io / lib; /* a member is no host; libblitz.so.0 */
}
