/* op.h - a fixture of the lint tests, and more words to make it an essay. */
#include <sys/socket.h>
