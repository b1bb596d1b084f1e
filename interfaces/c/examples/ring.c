/*
 * A ring of processes, each with a part of a matrix, that hand the rightmost column of doubles to the left halo column of the
 * next one. The column is strided: it is packed into the buffer that the socket sends.
 */
#include "check.h"
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4, ROWS = 100, COLUMNS = 32 };

/* Columns 0 and COLUMNS - 1 are halos. */
static double part[ROWS][COLUMNS];

static void transfer_all(int socket, char *bytes, size_t length, int sending) {
    while (length > 0) {
        ssize_t moved = sending ? write(socket, bytes, length) : read(socket, bytes, length);
        EXPECT(moved > 0);
        bytes += moved;
        length -= (size_t)moved;
    }
}

static void run(int rank, int left, int right) {
    dtc_config config = DTC_CONFIG_INIT;
    dtc_engine *engine;
    CALL(dtc_init(&config, &engine));
    dtc_type *element, *column;
    CALL(dtc_type_basic(engine, DTC_KIND_FLOAT, sizeof(double), &element));
    int64_t numbers[] = {ROWS, 1, COLUMNS};
    const dtc_type *children[] = {element};
    CALL(dtc_type_create(engine, DTC_COMBINER_VECTOR, numbers, 3, NULL, 0, children, 1, NULL, &column));
    CALL(dtc_type_commit(column, 0));
    dtc_info info = DTC_INFO_INIT;
    CALL(dtc_type_query(column, &info));
    EXPECT(info.packed_size == ROWS * (int64_t)sizeof(double));

    for (int row = 0; row < ROWS; row++) {
        for (int at = 0; at < COLUMNS; at++) {
            part[row][at] = rank * 1e6 + row * 1e3 + at;
        }
    }
    char *packed = malloc((size_t)info.packed_size);
    int64_t done;
    CALL(dtc_pack(column, &part[0][COLUMNS - 2], 1, 0, packed, info.packed_size, &done, NULL));
    EXPECT(done == info.packed_size);
    /* A column fits the buffer of a socket, so all may send before any receives. */
    transfer_all(right, packed, (size_t)done, 1);
    transfer_all(left, packed, (size_t)done, 0);
    CALL(dtc_unpack(column, &part[0][0], 1, 0, packed, done, &done, NULL));
    int neighbour = (rank + RANKS - 1) % RANKS;
    for (int row = 0; row < ROWS; row++) {
        EXPECT(part[row][0] == neighbour * 1e6 + row * 1e3 + COLUMNS - 2);
        EXPECT(part[row][1] == rank * 1e6 + row * 1e3 + 1);
    }
    free(packed);
    CALL(dtc_type_release(element));
    CALL(dtc_type_release(column));
    CALL(dtc_finalize(engine));
}

int main(void) {
    /* Between rank and the next: the rank has end 0, the next one end 1. */
    int sockets[RANKS][2];
    for (int rank = 0; rank < RANKS; rank++) {
        EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[rank]) == 0);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            run(rank, sockets[(rank + RANKS - 1) % RANKS][1], sockets[rank][0]);
            exit(0);
        }
    }
    for (int rank = 0; rank < RANKS; rank++) {
        int status;
        EXPECT(wait(&status) > 0);
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    printf("ring: %d ranks have the columns of their neighbours\n", RANKS);
    return 0;
}
