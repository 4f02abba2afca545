#include "harness.h"

#include "blitz.h"

/* A program asks the library it runs with, not the headers it was built with. */
TEST(version, library_and_headers_agree)
{
    char want[32];
    snprintf(want, sizeof want, "%d.%d.%d", BLITZ_VERSION_MAJOR, BLITZ_VERSION_MINOR,
             BLITZ_VERSION_PATCH);

    CHECK_EQ(blitz_version_number(), BLITZ_VERSION);
    CHECK_STR_EQ(blitz_version_string(), want);
    CHECK(blitz_version_ok());
}
