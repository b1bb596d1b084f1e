/*
 * Blocks that go from elements of one process into elements of another one, by one launch and without packed bytes between (direct.h). It is
 * done only where the receiver has DTC_MPI_DIRECT=elements: others open memory of the program, and CUDA leaves open what happens if the program
 * frees it meanwhile.
 *
 * The receiver describes elements beside the place where packed bytes may lie: their datatype and their allocation. The sender chooses, and
 * tells with what it has packed.
 */
#ifndef DTC_MPI_ELEMENTS_H
#define DTC_MPI_ELEMENTS_H

/* Fewest bytes of a contiguous piece, on average, that is written over a link by itself. Between two H200, pieces of 8 bytes move at 104 GB/s,
   packed at 338; pieces of 128 bytes at 363. */
enum { LONG_PIECE = 128 };

/* Nanoseconds that a launch takes beside others, and one that is waited for; bytes that an unpack moves in one. */
enum { BESIDE_OTHERS = 3000, WAITED_FOR = 9000, UNPACKED_BYTES = 1400 };

static int describes_elements;

/* The bytes between the first and the last of a block, from the address of its datatype on; 0 if that is unknown. */
static int reach_of(const struct block *block, int64_t *low, int64_t *length)
{
    dtc_info info = DTC_INFO_INIT;
    int64_t reach;
    if (dtc_type_query(block->plan->type, &info) != DTC_OK || __builtin_mul_overflow(block->elements - 1, info.extent, &reach)) return 0;
    *low = info.true_lb + (reach < 0 ? reach : 0);
    return !__builtin_add_overflow(info.true_extent, reach < 0 ? -reach : reach, length);
}

/* Describes a block; 0 if others shall not write into its elements. */
static int describe(struct dtc_mpi_board *board, const struct block *block, struct dtc_mpi_elements *elements)
{
    struct dtc_mpi_type type = {0};
    int64_t length, low, reach, offset;
    if (block->plan != byte_plan && block->plan->piece < LONG_PIECE) return 0;
    if (!reach_of(block, &low, &reach) || dtc_flatten_size(block->plan->type, &length) != DTC_OK || length > DTC_MPI_MOST_OF_TYPE) return 0;
    type.length = (int32_t)length;
    if (dtc_flatten(block->plan->type, type.bytes, length) != DTC_OK) return 0;
    const void *first = (const void *)((uintptr_t)block->memory + (uintptr_t)low);
    if (dtc_memory_export_part(dtc_mpi_engine, block->where.device, first, reach, elements->name, &offset, &elements->allocation) != DTC_OK) return 0;
    elements->type = dtc_mpi_board_enter(board, &type);
    elements->count = block->elements;
    elements->place = offset - low;
    return elements->type >= 0;
}

/* Describes the blocks that one process sends, behind those that are; the first, or -1 if it shall pack them. */
static int64_t describe_all(struct dtc_mpi_board *board, const struct block *blocks, int length, int *described)
{
    int first = *described;
    for (int at = 0; describes_elements && at < length; at++) {
        if (blocks[at].bytes == 0) continue;
        if (*described < DTC_MPI_MOST_ELEMENTS && describe(board, &blocks[at], &dtc_mpi_board_elements(board)[*described])) ++*described;
        else *described = first, length = 0;
    }
    return *described > first ? first : -1;
}

/* Whether a launch for each of so many blocks takes less time than one unpack of all of them. */
static int copies_pay(int blocks, int64_t bytes)
{
    return (int64_t)BESIDE_OTHERS * blocks <= WAITED_FOR + bytes / UNPACKED_BYTES;
}

/* A type of another process; null if it cannot be made. */
static const dtc_type *type_of(struct dtc_mpi_board *board, dtc_type **known, int peer, int64_t number)
{
    if (number < 0 || number >= DTC_MPI_MOST_TYPES) return NULL;
    dtc_type **made = &known[peer * DTC_MPI_MOST_TYPES + number];
    const struct dtc_mpi_type *type = dtc_mpi_board_type_of(board, peer, (int)number);
    if (!*made && dtc_unflatten(dtc_mpi_engine, type->bytes, type->length, made) != DTC_OK) *made = NULL;
    return *made;
}

#endif
