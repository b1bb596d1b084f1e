/* Finds the MPI of the process and tells its ABI. */
#include "find.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* The paths of libraries that may be an MPI. */
struct candidates {
    char paths[8][PATH_MAX];
    int count;
};

static int add_candidate(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    struct candidates *candidates = argument;
    const char *slash = strrchr(info->dlpi_name, '/'), *file = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(file, "libmpi", 6) || strlen(info->dlpi_name) >= PATH_MAX) return 0;
    strcpy(candidates->paths[candidates->count++], info->dlpi_name);
    return candidates->count == sizeof candidates->paths / sizeof *candidates->paths;
}

/* A library of an MPI that was opened privately, as mpi4py and other plugins do: its symbols are not in the global scope. The first that
   finds a symbol. */
static void *private_library(const char *name)
{
    void *handle = NULL;
    struct candidates *candidates = calloc(1, sizeof *candidates);
    if (!candidates) return NULL;
    dl_iterate_phdr(add_candidate, candidates);
    for (int at = 0; !handle && at < candidates->count; at++) {
        handle = dlopen(candidates->paths[at], RTLD_LAZY | RTLD_NOLOAD);
        if (handle && !dlsym(handle, name)) {
            dlclose(handle);
            handle = NULL;
        }
    }
    free(candidates);
    return handle;
}

static void *private_mpi(void)
{
    static void *known;
    void *handle = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
    if (handle) return handle;
    handle = private_library("PMPI_Initialized");
    __atomic_store_n(&known, handle, __ATOMIC_RELEASE);
    return handle;
}

dtc_mpi_function dtc_mpi_find_function(const char *name)
{
    /* The next in the order of the loader, so that tools between this library and the MPI see their calls. */
    void *found = dlsym(RTLD_NEXT, name);
    void *handle = found ? NULL : private_mpi();
    if (handle) found = dlsym(handle, name);
    /* Subroutines of Fortran are in a library that needs this one. */
    if (handle && !found && !strncmp(name, "mpi_", 4) && (handle = private_library(name))) found = dlsym(handle, name);
    dtc_mpi_function function;
    memcpy(&function, &found, sizeof function);
    return function;
}

void *dtc_mpi_find_object(const char *name)
{
    /* A program that is not position independent has objects of its libraries copied into itself; then all use the copy. */
    void *found = dlsym(RTLD_DEFAULT, name);
    void *handle = found ? NULL : private_mpi();
    return handle ? dlsym(handle, name) : found;
}

enum dtc_mpi_provider dtc_mpi_provider(const char *name)
{
    Dl_info found, here;
    void *function = dlsym(RTLD_DEFAULT, name);
    if (!function) return DTC_MPI_NOWHERE;
    int known = dladdr(function, &found) && dladdr((void *)private_mpi, &here);
    return known && found.dli_fbase == here.dli_fbase ? DTC_MPI_HERE : DTC_MPI_ELSEWHERE;
}

const char *dtc_mpi_library_version(void)
{
    /* Room for the longest of any ABI. Threads that come here at once write the same. */
    static char version[8192 + 1];
    int length = 0;
    int (*get)(char *, int *) = (int (*)(char *, int *))dtc_mpi_find_function("PMPI_Get_library_version");
    return get && !get(version, &length) ? version : "";
}

/* Whether the MPI names itself as one of the family of MPICH, whose members have its ABI. */
static int is_mpich(void)
{
    static const char *const names[] = {"MPICH", "MVAPICH", "Intel(R) MPI"};
    const char *version = dtc_mpi_library_version();
    for (unsigned at = 0; at < sizeof names / sizeof *names; at++)
        if (strstr(version, names[at])) return 1;
    return 0;
}

const struct dtc_mpi_abi *dtc_mpi_detect(void)
{
    int major = -1, minor = -1;
    /* These may be called before MPI_Init. (MPI 5.0, 11.4.1 and 20) */
    int (*get)(int *, int *) = (int (*)(int *, int *))dtc_mpi_find_function("PMPI_Abi_get_version");
    if (get && !get(&major, &minor) && major >= 1) return &dtc_mpi_of_standard;
    if (dtc_mpi_find_object("ompi_mpi_comm_world")) return &dtc_mpi_of_open_mpi;
    if (is_mpich()) return &dtc_mpi_of_mpich;
    dtc_mpi_say("steps aside", "the ABI of the MPI is unknown");
    return NULL;
}
