/*
 * Messages and packs of more than 2 GiB, from a process to itself, in memory of the host or, with "device", of a GPU: 7 GiB of memory. A
 * byte depends on its place, and elements are filled and compared in pieces. Tells each call that was right.
 */
#include "device.h"

enum { TAG = 5, PIECE = 64 << 20 };

/* Rows of blocks of doubles: longer than an int counts, packed and as raw spans. */
enum { ROW_BYTES = 48 << 16, ROW_LENGTH = 56 << 16, ROWS = 690 };
static const int64_t bytes = (int64_t)ROW_BYTES * ROWS, length = (int64_t)ROW_LENGTH * ROWS;

/* Bytes of a block, and from one to the next. A CUDA-aware MPI is given these elements, and some copy each block by itself: there are 44,160 on
   a GPU, and 45 million on the host. */
static int64_t block = 48, stride = 56;

static enum where where;

static unsigned char *take(int64_t size)
{
    unsigned char *taken = where == ON_HOST ? malloc((size_t)size) : (unsigned char *)take_device_memory(where, size);
    CHECK(taken, "%ld bytes", (long)size);
    return taken;
}

static void give(unsigned char *memory)
{
    if (where == ON_HOST) free(memory);
    else cuda.MemFree_v2((uintptr_t)memory);
}

/* What lies at a place of the elements that are sent, in words of 8 bytes. */
static uint64_t word_at(int64_t place)
{
    return ((uint64_t)place + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Fills elements, or with `compare` holds those that were received against those that were sent; bytes between blocks stay. */
static void visit(unsigned char *memory, int compare)
{
    uint64_t *piece = malloc(PIECE);
    for (int64_t at = 0; at < length; at += PIECE) {
        int64_t size = length - at < PIECE ? length - at : PIECE;
        uint64_t *words = where == ON_HOST ? (uint64_t *)(memory + at) : piece;
        if (compare && where != ON_HOST) CHECK(!cuda.MemcpyDtoH_v2(piece, (uintptr_t)memory + (uintptr_t)at, (size_t)size), "copy");
        for (int64_t word = 0; word < size / 8; word++) {
            int64_t place = at / 8 + word;
            uint64_t expected = place * 8 % stride < block ? word_at(place) : 7;
            if (compare) CHECK(words[word] == expected, "word %ld", (long)place);
            else words[word] = word_at(place);
        }
        if (!compare && where != ON_HOST) CHECK(!cuda.MemcpyHtoD_v2((uintptr_t)memory + (uintptr_t)at, piece, (size_t)size), "copy");
    }
    free(piece);
}

/* Has all words be 7, which no element is. */
static void clear(unsigned char *memory)
{
    uint64_t *piece = malloc(PIECE);
    for (int word = 0; word < PIECE / 8; word++) piece[word] = 7;
    for (int64_t at = 0; at < length; at += PIECE) {
        size_t size = (size_t)(length - at < PIECE ? length - at : PIECE);
        if (where == ON_HOST) memcpy(memory + at, piece, size);
        else CHECK(!cuda.MemcpyHtoD_v2((uintptr_t)memory + (uintptr_t)at, piece, size), "copy");
    }
    free(piece);
}

static void tell(const char *call)
{
    printf("large: %s\n", call);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    where = argc > 1 && !strcmp(argv[1], "device") ? ON_DEVICE : ON_HOST;
    if (where == ON_DEVICE) open_device(rank), block <<= 10, stride <<= 10;
    MPI_Datatype rows = vector_of((int)(ROW_BYTES / block), (int)block / 8, (int)stride / 8, MPI_DOUBLE), spaced, whole;
    MPI_Type_create_resized(rows, 0, ROW_LENGTH, &spaced);
    MPI_Type_commit(&spaced);
    MPI_Type_contiguous(ROWS, spaced, &whole);
    MPI_Type_commit(&whole);
    unsigned char *sent = take(length), *received = take(length);
    MPI_Request request;
    MPI_Status status;
    MPI_Count found = 0;
    visit(sent, 0);
    /* Many elements, and one of many bytes. */
    clear(received);
    MPI_Sendrecv(sent, ROWS, spaced, 0, TAG, received, ROWS, spaced, 0, TAG, MPI_COMM_SELF, &status);
    visit(received, 1);
    MPI_Get_elements_x(&status, MPI_DOUBLE, &found);
    CHECK(found == bytes / 8, "%ld", (long)found);
    tell("MPI_Sendrecv");
    clear(received);
    MPI_Irecv(received, 1, whole, 0, TAG, MPI_COMM_SELF, &request);
    MPI_Send(sent, ROWS, spaced, 0, TAG, MPI_COMM_SELF);
    MPI_Wait(&request, &status);
    visit(received, 1);
    tell("MPI_Irecv and MPI_Send");
#if HAS_LARGE_COUNTS
    MPI_Count count = ROWS, one = 1;
    MPI_Aint place = 0;
    clear(received);
    MPI_Irecv_c(received, count, spaced, 0, TAG, MPI_COMM_SELF, &request);
    MPI_Send_c(sent, one, whole, 0, TAG, MPI_COMM_SELF);
    MPI_Wait(&request, &status);
    visit(received, 1);
    tell("MPI_Irecv_c and MPI_Send_c");
    clear(received);
    MPI_Alltoallw_c(sent, &count, &place, &spaced, received, &one, &place, &whole, MPI_COMM_SELF);
    visit(received, 1);
    tell("MPI_Alltoallw_c");
    /* Packed data that lie with the elements, and behind a position that no int holds. */
    MPI_Count size = bytes + 100, position = 100;
    unsigned char *packed = take(size);
    MPI_Pack_c(sent, count, spaced, packed, size, &position, MPI_COMM_SELF);
    CHECK(position == size, "%ld", (long)position);
    clear(received);
    position = 100;
    MPI_Unpack_c(packed, size, &position, received, count / 2, spaced, MPI_COMM_SELF);
    MPI_Unpack_c(packed, size, &position, received + count / 2 * ROW_LENGTH, count / 2, spaced, MPI_COMM_SELF);
    CHECK(position == size, "%ld", (long)position);
    visit(received, 1);
    tell("MPI_Pack_c and MPI_Unpack_c");
    give(packed);
#endif
    give(sent), give(received);
    MPI_Type_free(&rows), MPI_Type_free(&spaced), MPI_Type_free(&whole);
    puts("large: done");
    MPI_Finalize();
    return 0;
}
