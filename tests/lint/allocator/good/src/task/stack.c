/* stack.c - a fixture of the lint tests, and more words to make it an essay. */
void f(blitz_allocator *a)
{
    a->free(a->ctx, p, n); /* not malloc() */
    bz_free(a, p, n);
    free_list = NULL;
}
