/* log.c - a fixture of the lint tests, and more words to make it an essay. */
/* see https://example.org/paper for more */
static const char *file = "/home/me/blitz.log", *dir = "/opt";
/* built on build7.corp.example.com, reachable at 10.1.2.3 */
