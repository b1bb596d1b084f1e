/* What is said of the MPI when DTC_MPI_REPORT asks: which it is, and what this library does under it. */
#ifndef DTC_MPI_ABOUT_H
#define DTC_MPI_ABOUT_H

static const char *thread_level(void)
{
    int level = -1;
    if (PMPI_Query_thread(&level) != MPI_SUCCESS) return "unknown";
    return level == MPI_THREAD_SINGLE       ? "MPI_THREAD_SINGLE"
           : level == MPI_THREAD_FUNNELED   ? "MPI_THREAD_FUNNELED"
           : level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
           : level == MPI_THREAD_MULTIPLE   ? "MPI_THREAD_MULTIPLE"
                                            : "unknown";
}

/* An extension that MPICH and Open MPI share. */
static const char *cuda_support(void)
{
    int (*query)(void) = (int (*)(void))dtc_mpi_find_function("MPIX_Query_cuda_support");
    if (!query) return "unknown, the MPI has no MPIX_Query_cuda_support";
    return query() ? "yes, by MPIX_Query_cuda_support" : "no, by MPIX_Query_cuda_support";
}

/* Which calls of substitutes.h a program finds here. */
static const char *substituted(void)
{
    return mpi.Send_c == substitute_Send_c ? "large-count forms, which the MPI lacks" : "none";
}

static void tell_about(void)
{
    char version[81];
    if (!dtc_mpi_reports()) return;
    snprintf(version, sizeof version, "%s", dtc_mpi_library_version());
    for (char *at = version; *at; at++)
        if (*at == '\n' || *at == '\t') *at = *at == '\t' ? ' ' : '\0';
    fprintf(stderr,
            "libdtc_mpi: MPI: %s\n"
            "libdtc_mpi: ABI: %s\n"
            "libdtc_mpi: threads: %s\n"
            "libdtc_mpi: CUDA: %s\n"
            "libdtc_mpi: substitutes: %s\n"
            "libdtc_mpi: served: blocking calls%s\n",
            version, TEXT_OF(DTC_MPI_ABI), thread_level(), cuda_support(), substituted(),
            sees_completions() ? ", nonblocking and persistent messages" : " alone");
}

#endif
