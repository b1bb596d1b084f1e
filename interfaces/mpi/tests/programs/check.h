/* What the test programs share. A failed check names its line and ends the job. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition, ...)                                                                                                     \
    do {                                                                                                                           \
        if (!(condition)) {                                                                                                        \
            printf("%s:%d: %s: ", __FILE__, __LINE__, #condition);                                                                \
            printf(__VA_ARGS__);                                                                                                   \
            puts("");                                                                                                              \
            fflush(stdout);                                                                                                        \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                                         \
        }                                                                                                                          \
    } while (0)

/* A byte that depends on all of the place and the seed. */
static inline unsigned char byte_at(long place, unsigned seed)
{
    uint64_t mixed = ((uint64_t)place + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ seed * UINT64_C(0xbf58476d1ce4e5b9);
    return (unsigned char)(mixed >> 56 ^ mixed >> 29);
}

/* Memory of elements: `memory` is where the datatype is applied, the bytes begin at `low`. */
struct elements {
    unsigned char *bytes, *memory;
    long length;
    int count;
    MPI_Datatype datatype;
};

/* Memory for elements, filled with random bytes. */
static inline struct elements elements(MPI_Datatype datatype, int count, unsigned seed)
{
    MPI_Aint lb, extent, true_lb, true_extent;
    MPI_Type_get_extent(datatype, &lb, &extent);
    MPI_Type_get_true_extent(datatype, &true_lb, &true_extent);
    long reach = extent * (count > 0 ? count - 1 : 0), low = true_lb + (reach < 0 ? reach : 0);
    struct elements made = {.length = true_extent + labs(reach) + 1, .count = count, .datatype = datatype};
    made.bytes = malloc((size_t)made.length);
    made.memory = made.bytes - low;
    for (long at = 0; at < made.length; at++) made.bytes[at] = byte_at(at, seed);
    return made;
}

static inline int same(struct elements one, struct elements other)
{
    return one.length == other.length && !memcmp(one.bytes, other.bytes, (size_t)one.length);
}

/* Puts what the sender has into the receiver's memory by the MPI alone, without a message. */
static inline void expect(struct elements sent, struct elements received, int received_bytes)
{
    int size, position = 0;
    PMPI_Type_size(sent.datatype, &size);
    char *packed = malloc((size_t)size * (size_t)sent.count + 1);
    PMPI_Pack(sent.memory, sent.count, sent.datatype, packed, size * sent.count, &position, MPI_COMM_SELF);
    PMPI_Type_size(received.datatype, &size);
    int whole = size ? received_bytes / size : 0;
    position = 0;
    PMPI_Unpack(packed, received_bytes, &position, received.memory, whole, received.datatype, MPI_COMM_SELF);
    free(packed);
}

static inline void drop(struct elements elements)
{
    free(elements.bytes);
}
