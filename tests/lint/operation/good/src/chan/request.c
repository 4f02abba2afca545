/* request.c - requests. */
