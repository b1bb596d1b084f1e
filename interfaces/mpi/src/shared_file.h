/* Files of memory that processes share. */
#ifndef DTC_MPI_SHARED_FILE_H
#define DTC_MPI_SHARED_FILE_H

#include <fcntl.h>
#include <stddef.h>
#include <sys/resource.h>

/* Makes a file at least as long as that: all its bytes exist then, so that none is missing when it is written to. 0 if it cannot be. Beyond the
   limit on the sizes of files (ulimit -f), the kernel would end the process by SIGXFSZ. */
static inline int shared_file_extend(int file, size_t length)
{
    struct rlimit limit;
    int fits = getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY || length <= limit.rlim_cur;
    return fits && !posix_fallocate(file, 0, (off_t)length);
}

#endif
