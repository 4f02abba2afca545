#include "base/list.h"
#include <blitz/nothing.h>
int main(void);
