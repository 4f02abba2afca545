/* attempt.h - a fixture of the lint tests, and more words to make it an essay. */
#include "io/sys.h"
