/*
 * The datatype of a peer that is told which one it is: a file of MPI's constructors, one call to a line. A line is the name of the
 * constructor in lower case, its arguments in MPI's order, and the numbers of the lines that built its children. Lists stand behind
 * their length. The last line is the type. README.md beside this file has an example.
 *
 * No type is compiled for, so a measurement of many types begins at once, and lists of a million entries are no source code.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

MPI_Datatype build_type(void);
const char *read_type(const char *path);

enum kind { NAMED, CONTIGUOUS, VECTOR, HVECTOR, INDEXED, HINDEXED, INDEXED_BLOCK, HINDEXED_BLOCK, STRUCT, SUBARRAY, DARRAY, RESIZED, DUP, KINDS };

/*
 * The arguments of each kind in MPI's order: i an int, o an order (0 C, 1 Fortran), a an address, n the length of the lists that
 * follow, I a list of int, A a list of addresses, D a list of distributions (0 block, 1 cyclic, 2 none), L a list of their block
 * lengths (-1 the default), c the child, C a list of children.
 */
static const struct {
    const char *name, *arguments;
} kinds[KINDS] = {
    {"named", ""},
    {"contiguous", "ic"},
    {"vector", "iiic"},
    {"hvector", "iiac"},
    {"indexed", "nIIc"},
    {"hindexed", "nIAc"},
    {"indexed_block", "niIc"},
    {"hindexed_block", "niAc"},
    {"struct", "nIAC"},
    {"subarray", "nIIIoc"},
    {"darray", "iinIDLIoc"},
    {"resized", "aac"},
    {"dup", "c"},
};

/* One call. Arguments of each sort stand in the order of `kinds`. */
struct call {
    enum kind kind;
    MPI_Datatype built;
    int length, ints[3], *lists[4], *children;
    MPI_Aint addresses[2], *places;
    MPI_Datatype *handles;
};

static struct call *calls;
static long call_count;

#define NAME(type) {#type, type}

static MPI_Datatype predefined(const char *name)
{
    /* Handles are not constants in every MPI, so the table is not static. */
    const struct {
        const char *name;
        MPI_Datatype handle;
    } table[] = {
        NAME(MPI_CHAR), NAME(MPI_SIGNED_CHAR), NAME(MPI_UNSIGNED_CHAR), NAME(MPI_SHORT), NAME(MPI_UNSIGNED_SHORT), NAME(MPI_INT),
        NAME(MPI_UNSIGNED), NAME(MPI_LONG), NAME(MPI_UNSIGNED_LONG), NAME(MPI_LONG_LONG_INT), NAME(MPI_LONG_LONG),
        NAME(MPI_UNSIGNED_LONG_LONG), NAME(MPI_FLOAT), NAME(MPI_DOUBLE), NAME(MPI_LONG_DOUBLE), NAME(MPI_WCHAR), NAME(MPI_C_BOOL),
        NAME(MPI_INT8_T), NAME(MPI_INT16_T), NAME(MPI_INT32_T), NAME(MPI_INT64_T), NAME(MPI_UINT8_T), NAME(MPI_UINT16_T),
        NAME(MPI_UINT32_T), NAME(MPI_UINT64_T), NAME(MPI_C_COMPLEX), NAME(MPI_C_FLOAT_COMPLEX), NAME(MPI_C_DOUBLE_COMPLEX),
        NAME(MPI_C_LONG_DOUBLE_COMPLEX), NAME(MPI_BYTE), NAME(MPI_PACKED), NAME(MPI_AINT), NAME(MPI_OFFSET), NAME(MPI_COUNT),
        NAME(MPI_CXX_BOOL), NAME(MPI_CXX_FLOAT_COMPLEX), NAME(MPI_CXX_DOUBLE_COMPLEX), NAME(MPI_CXX_LONG_DOUBLE_COMPLEX),
        NAME(MPI_INTEGER), NAME(MPI_REAL), NAME(MPI_DOUBLE_PRECISION), NAME(MPI_COMPLEX), NAME(MPI_DOUBLE_COMPLEX),
        NAME(MPI_LOGICAL), NAME(MPI_CHARACTER), NAME(MPI_INTEGER1), NAME(MPI_INTEGER2), NAME(MPI_INTEGER4), NAME(MPI_INTEGER8),
        NAME(MPI_REAL4), NAME(MPI_REAL8), NAME(MPI_COMPLEX8), NAME(MPI_COMPLEX16), NAME(MPI_FLOAT_INT), NAME(MPI_DOUBLE_INT),
        NAME(MPI_LONG_INT), NAME(MPI_2INT), NAME(MPI_SHORT_INT), NAME(MPI_LONG_DOUBLE_INT), NAME(MPI_2REAL),
        NAME(MPI_2DOUBLE_PRECISION), NAME(MPI_2INTEGER),
    };
    for (size_t index = 0; index < sizeof table / sizeof *table; index++)
        if (strcmp(table[index].name, name) == 0)
            return table[index].handle;
    return MPI_DATATYPE_NULL;
}

static void forget(void)
{
    for (long line = 0; line < call_count; line++) {
        struct call *call = &calls[line];
        for (int list = 0; list < 4; list++)
            free(call->lists[list]);
        free(call->places);
        free(call->children);
        free(call->handles);
    }
    free(calls);
    calls = NULL;
    call_count = 0;
}

/* A list of at least one entry, so that NULL means that there is no memory. */
static void *list_of(int length, size_t bytes) { return malloc((size_t)(length > 0 ? length : 1) * bytes); }

/* A number of the file as MPI has it. */
static int constant(char argument, long number)
{
    static const int distributions[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
    if (argument == 'o')
        return number ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
    if (argument == 'D')
        return distributions[number < 0 || number > 2 ? 2 : number];
    if (argument == 'L' && number < 0)
        return MPI_DISTRIBUTE_DFLT_DARG;
    return (int)number;
}

/* Reads the arguments of a call from the rest of its line, or says what is wrong. */
static const char *read_arguments(struct call *call, long line, char *text)
{
    int ints = 0, lists = 0, addresses = 0;
    for (const char *argument = kinds[call->kind].arguments; *argument; argument++) {
        char *end = text;
        if (strchr("ioacn", *argument)) {
            long number = strtol(text, &end, 10);
            if (end == text)
                return "a line of the type lacks an argument";
            if (*argument == 'i' || *argument == 'o')
                call->ints[ints++] = constant(*argument, number);
            else if (*argument == 'a')
                call->addresses[addresses++] = number;
            else if (*argument == 'n')
                call->length = (int)number;
            else if (!(call->children = list_of(1, sizeof(int))) || number < 0 || number >= line)
                return "a line of the type has no child";
            else
                call->children[0] = (int)number;
            text = end;
            continue;
        }
        int *numbers = NULL;
        if (*argument == 'A')
            call->places = list_of(call->length, sizeof(MPI_Aint));
        else
            numbers = list_of(call->length, sizeof(int));
        if (*argument == 'C')
            call->children = numbers, call->handles = list_of(call->length, sizeof(MPI_Datatype));
        else if (*argument != 'A')
            call->lists[lists++] = numbers;
        if (*argument == 'A' ? !call->places : !numbers)
            return "there is no memory for the type";
        for (int index = 0; index < call->length; index++, text = end) {
            long number = strtol(text, &end, 10);
            if (end == text || (*argument == 'C' && (number < 0 || number >= line)))
                return "a list of the type is too short, or names a later line";
            if (*argument == 'A')
                call->places[index] = number;
            else
                numbers[index] = constant(*argument, number);
        }
    }
    return NULL;
}

static const char *read_line(char *text)
{
    char *rest = text + strcspn(text, " ");
    if (*rest)
        *rest++ = 0;
    struct call *grown = realloc(calls, (size_t)(call_count + 1) * sizeof *calls);
    if (!grown)
        return "there is no memory for the type";
    calls = grown;
    struct call *call = &calls[call_count];
    memset(call, 0, sizeof *call);
    call_count++;
    while (call->kind < KINDS && strcmp(kinds[call->kind].name, text) != 0)
        call->kind++;
    if (call->kind == KINDS)
        return call->kind = NAMED, "a line of the type names no constructor";
    if (call->kind == NAMED) {
        call->built = predefined(rest);
        return call->built == MPI_DATATYPE_NULL ? "this MPI lacks a predefined type" : NULL;
    }
    return read_arguments(call, call_count - 1, rest);
}

/* Reads a type from a file, in place of the one before; what is wrong with it, if anything. */
const char *read_type(const char *path)
{
    forget();
    FILE *file = fopen(path, "r");
    if (!file)
        return "the file of the type does not open";
    char *line = NULL;
    size_t room = 0;
    ssize_t bytes;
    const char *problem = NULL;
    while (!problem && (bytes = getline(&line, &room, file)) > 0) {
        if (line[bytes - 1] == '\n')
            line[bytes - 1] = 0;
        problem = read_line(line);
    }
    free(line);
    fclose(file);
    if (!problem && call_count == 0)
        problem = "the file of the type is empty";
    if (problem)
        forget();
    return problem;
}

static MPI_Datatype build(struct call *call)
{
    const int *ints = call->ints, length = call->length;
    int *const *lists = call->lists;
    const MPI_Aint *places = call->places;
    MPI_Datatype child = call->children ? calls[call->children[0]].built : MPI_DATATYPE_NULL, built = MPI_DATATYPE_NULL;
    switch (call->kind) {
    case CONTIGUOUS: MPI_Type_contiguous(ints[0], child, &built); break;
    case VECTOR: MPI_Type_vector(ints[0], ints[1], ints[2], child, &built); break;
    case HVECTOR: MPI_Type_create_hvector(ints[0], ints[1], call->addresses[0], child, &built); break;
    case INDEXED: MPI_Type_indexed(length, lists[0], lists[1], child, &built); break;
    case HINDEXED: MPI_Type_create_hindexed(length, lists[0], places, child, &built); break;
    case INDEXED_BLOCK: MPI_Type_create_indexed_block(length, ints[0], lists[0], child, &built); break;
    case HINDEXED_BLOCK: MPI_Type_create_hindexed_block(length, ints[0], places, child, &built); break;
    case STRUCT:
        for (int index = 0; index < length; index++)
            call->handles[index] = calls[call->children[index]].built;
        MPI_Type_create_struct(length, lists[0], places, call->handles, &built);
        break;
    case SUBARRAY:
        MPI_Type_create_subarray(length, lists[0], lists[1], lists[2], ints[0], child, &built);
        break;
    case DARRAY:
        MPI_Type_create_darray(ints[0], ints[1], length, lists[0], lists[1], lists[2], lists[3], ints[2], child, &built);
        break;
    case RESIZED: MPI_Type_create_resized(child, call->addresses[0], call->addresses[1], &built); break;
    case DUP: MPI_Type_dup(child, &built); break;
    default: break;
    }
    return built;
}

/* The type that was read last, not yet committed. The caller frees it, so a predefined type is duplicated. */
MPI_Datatype build_type(void)
{
    for (long line = 0; line < call_count; line++)
        if (calls[line].kind != NAMED)
            calls[line].built = build(&calls[line]);
    struct call *last = &calls[call_count - 1];
    MPI_Datatype type = last->built;
    if (last->kind == NAMED)
        MPI_Type_dup(last->built, &type);
    for (long line = 0; line + 1 < call_count; line++)
        if (calls[line].kind != NAMED)
            MPI_Type_free(&calls[line].built);
    return type;
}
