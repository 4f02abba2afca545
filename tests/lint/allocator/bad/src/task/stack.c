/* stack.c - a fixture of the lint tests, and more words to make it an essay. */
void *f(void)
{
    free(old);
    return malloc(10);
}
