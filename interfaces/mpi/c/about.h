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

/*
 * Tells which calls of the MPI are given memory of a GPU as the program gives it. An MPI that knows nothing of CUDA fails in them; what a
 * CUDA-aware one does with derived datatypes there is its own.
 */
static void tell_unhelped(void)
{
    static const char *const names[] = {
        "Allgather", "Allgatherv", "Allreduce", "Alltoall", "Alltoallv", "Bcast", "Exscan", "Gather", "Gatherv", "Neighbor_allgather",
        "Neighbor_allgatherv", "Neighbor_alltoall", "Neighbor_alltoallv", "Reduce", "Reduce_local", "Reduce_scatter",
        "Reduce_scatter_block", "Scan", "Scatter", "Scatterv",
        "Put", "Get", "Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap", "Rput", "Rget", "Raccumulate", "Rget_accumulate",
        "Psend_init", "Precv_init", "Pack_external", "Unpack_external",
        "File_read", "File_read_at", "File_read_all", "File_read_at_all", "File_read_shared", "File_read_ordered",
        "File_write", "File_write_at", "File_write_all", "File_write_at_all", "File_write_shared", "File_write_ordered",
    };
    /* One write: lines of several processes do not mix. */
    char function[64], line[40 * sizeof names / sizeof *names] = "";
    for (unsigned at = 0; at < sizeof names / sizeof *names; at++) {
        snprintf(function, sizeof function, "MPI_%s", names[at]);
        if (dtc_mpi_find_function(function)) strcat(strcat(line, function), " ");
    }
    fprintf(stderr, "libdtc_mpi: left to the MPI with memory of a GPU: %sand their other forms\n", line);
}

/* Which calls of substitutes.h a program finds here. */
static const char *substituted(void)
{
    return mpi.Send_c == substitute_Send_c ? "large-count forms, which the MPI lacks" : "none";
}

/* Whether the process may have memory of a GPU: a driver is named, loaded, or has its device here. As found at the first question. */
static int has_gpu(void)
{
    static int known = -1;
    int has = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (__builtin_expect(has >= 0, 1)) return has;
    const char *driver = getenv("DTC_CUDA_DRIVER");
    has = (driver && *driver) || place_of(NULL).device >= 0 || !access("/dev/nvidiactl", F_OK) || !access("/dev/dxg", F_OK);
    __atomic_store_n(&known, has, __ATOMIC_RELAXED);
    return has;
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
            "libdtc_mpi: substitutes: %s\n"
            "libdtc_mpi: served: blocking calls%s\n",
            version, TEXT_OF(DTC_MPI_ABI), thread_level(), substituted(),
            sees_completions() ? ", nonblocking and persistent messages" : " alone");
    if (!has_gpu()) return;
    fprintf(stderr,
            "libdtc_mpi: memory of a GPU: %s (%s)\n"
            "libdtc_mpi: exchanges between GPUs of a machine: %s\n",
            takes_devices ? "given to the MPI" : "staged in memory of the host", awareness_source, direct_way());
    tell_unhelped();
}

#endif
