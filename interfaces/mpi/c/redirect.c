/*
 * Has the Fortran libraries of Open MPI call this library. Their subroutines convert handles and arguments, and call PMPI functions
 * through entries of their global offset tables, like any library. The entries of functions that are interposed get the address of the
 * function here instead: the MPI's own conversions stay, for mpif.h and both modules.
 */
#include "redirect.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define CALLS_BY_LINKAGE R_X86_64_JUMP_SLOT
#define CALLS_BY_ADDRESS R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define CALLS_BY_LINKAGE R_AARCH64_JUMP_SLOT
#define CALLS_BY_ADDRESS R_AARCH64_GLOB_DAT
#else
#define CALLS_BY_LINKAGE UINT32_MAX
#define CALLS_BY_ADDRESS UINT32_MAX
#endif

/* Declared without arguments: of each the address is used alone. */
#define CALL(name, shape, count) extern int MPI_##name();
#include "calls.def"
#undef CALL

static const struct {
    const char *name;
    int (*function)();
} calls[] = {
#define CALL(name, shape, count) {"PMPI_" #name, MPI_##name},
#include "calls.def"
#undef CALL
};

/* The tables of a library that is loaded. */
struct library {
    uintptr_t base, read_only, read_only_end;
    const Elf64_Dyn *dynamic;
};

/* An address of the dynamic section, which glibc has relocated and other loaders have not. */
static uintptr_t address_of(const struct library *library, int64_t tag)
{
    for (const Elf64_Dyn *entry = library->dynamic; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag) return entry->d_un.d_ptr < library->base ? library->base + entry->d_un.d_ptr : entry->d_un.d_ptr;
    return 0;
}

static uint64_t number_of(const struct library *library, int64_t tag)
{
    for (const Elf64_Dyn *entry = library->dynamic; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag) return entry->d_un.d_val;
    return 0;
}

/* Writes an entry, which may lie in pages that the loader has made read-only. 0 if it cannot be written. */
static int put(const struct library *library, uintptr_t *entry, uintptr_t function)
{
    uintptr_t place = (uintptr_t)entry, page = place & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    int closed = place >= library->read_only && place < library->read_only_end;
    size_t length = place + sizeof *entry - page;
    if (closed && mprotect((void *)page, length, PROT_READ | PROT_WRITE)) return 0;
    __atomic_store_n(entry, function, __ATOMIC_RELEASE);
    if (closed) mprotect((void *)page, length, PROT_READ);
    return 1;
}

/* Redirects the calls in one table of relocations; 0 if an entry cannot be written. */
static int redirect_table(const struct library *library, uintptr_t table, uint64_t bytes)
{
    const Elf64_Sym *symbols = (const Elf64_Sym *)address_of(library, DT_SYMTAB);
    const char *names = (const char *)address_of(library, DT_STRTAB);
    const Elf64_Rela *relocations = (const Elf64_Rela *)table;
    if (!symbols || !names || !table) return 1;
    for (uint64_t at = 0; at < bytes / sizeof *relocations; at++) {
        uint64_t kind = ELF64_R_TYPE(relocations[at].r_info);
        if (kind != CALLS_BY_LINKAGE && kind != CALLS_BY_ADDRESS) continue;
        const char *name = names + symbols[ELF64_R_SYM(relocations[at].r_info)].st_name;
        if (strncmp(name, "PMPI_", 5)) continue;
        for (size_t call = 0; call < sizeof calls / sizeof *calls; call++) {
            uintptr_t *entry = (uintptr_t *)(library->base + relocations[at].r_offset);
            if (!strcmp(name, calls[call].name) && !put(library, entry, (uintptr_t)calls[call].function)) return 0;
        }
    }
    return 1;
}

static int redirect_library(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    int *redirected = argument;
    struct library library = {.base = info->dlpi_addr};
    const char *slash = strrchr(info->dlpi_name, '/'), *file = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(file, "libmpi_mpifh.", 13) && strncmp(file, "libmpi_usempi", 13)) return 0;
    for (int at = 0; at < info->dlpi_phnum; at++) {
        const Elf64_Phdr *segment = &info->dlpi_phdr[at];
        uintptr_t place = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_DYNAMIC) library.dynamic = (const Elf64_Dyn *)place;
        if (segment->p_type == PT_GNU_RELRO) library.read_only = place, library.read_only_end = place + segment->p_memsz;
    }
    if (!library.dynamic) return 0;
    *redirected = *redirected && redirect_table(&library, address_of(&library, DT_JMPREL), number_of(&library, DT_PLTRELSZ)) &&
                  redirect_table(&library, address_of(&library, DT_RELA), number_of(&library, DT_RELASZ));
    return 0;
}

/* Whether the function that follows here in the order of the loader is the MPI's own: a tool that lies between counts what comes from
   Fortran by itself. */
static int is_next_the_mpi(void)
{
    Dl_info next, own;
    void *function = (void *)dtc_mpi_find_function("MPI_Send"), *profiled = (void *)dtc_mpi_find_function("PMPI_Send");
    return function && profiled && dladdr(function, &next) && dladdr(profiled, &own) && next.dli_fbase == own.dli_fbase;
}

static int redirected;

void dtc_mpi_redirect_fortran(void)
{
    int all = CALLS_BY_LINKAGE != UINT32_MAX && dtc_mpi_provider("MPI_Send") == DTC_MPI_HERE && is_next_the_mpi();
    if (all) dl_iterate_phdr(redirect_library, &all);
    if (!all) dtc_mpi_say("leaves Fortran to the MPI", "a tool is between them, or the tables of the MPI cannot be written");
    __atomic_store_n(&redirected, all, __ATOMIC_RELEASE);
}

int dtc_mpi_is_fortran_redirected(void)
{
    return __atomic_load_n(&redirected, __ATOMIC_ACQUIRE);
}
