/* A program that uses libblitz-tls: it prints the version of blitz if a refused configuration says why. */
#include <blitz.h>
#include <blitz/tls.h>
#include <stdio.h>

int main(void)
{
    blitz_tls_config *config;
    blitz_tls_text why;
    if (blitz_tls_config_new(BLITZ_TLS_SERVER, NULL, &why, &config) != -EINVAL ||
        why.text[0] == '\0')
        return 1;
    puts(blitz_version_string());
    return 0;
}
