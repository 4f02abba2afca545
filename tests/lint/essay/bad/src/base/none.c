#include "x.h"
/* none.c - too late */
