#include <blitz.h>
#include <unistd.h>

#include "scene.h"
