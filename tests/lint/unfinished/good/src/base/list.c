/* list.c - a fixture of the lint tests, and more words to make it an essay. */
enum { TODO_LIST = 1 };
