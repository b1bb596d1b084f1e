/* A file that processes share, under a limit on the sizes of files: it is refused where it does not fit, and the process goes on. */
#define _GNU_SOURCE
#include "shared_file.h"

#include <stdio.h>
#include <sys/mman.h>

enum { LIMIT = 32 << 10 };

int main(void)
{
    struct rlimit limit = {LIMIT, LIMIT};
    int file = memfd_create("shared", MFD_CLOEXEC);
    if (file < 0 || setrlimit(RLIMIT_FSIZE, &limit)) {
        perror("file_limit");
        return 1;
    }
    if (!shared_file_extend(file, LIMIT)) {
        fputs("file_limit: a file as long as the limit: expected 1, found 0\n", stderr);
        return 1;
    }
    if (shared_file_extend(file, LIMIT + 1)) {
        fputs("file_limit: a longer file: expected 0, found 1\n", stderr);
        return 1;
    }
    return 0;
}
