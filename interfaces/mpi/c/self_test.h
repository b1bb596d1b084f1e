/*
 * Whether bytes mean to the MPI what they mean to dtc: its packed data are the bytes of the type map and no more, and a message of
 * packed bytes is received into elements. It is asked on a communicator of this process alone.
 */
#ifndef DTC_MPI_SELF_TEST_H
#define DTC_MPI_SELF_TEST_H

enum { TEST_BYTES = 4096, TEST_COUNT = 3, TEST_TAG = 7 };

/* Makes the datatypes of the test; how many. */
static int test_types(MPI_Datatype types[3])
{
    int lengths[] = {1, 2, 1};
    MPI_Aint places[] = {40, 0, 56};
    int made = PMPI_Type_vector(7, 2, 3, MPI_INT, &types[0]) == MPI_SUCCESS;
    if (!made || PMPI_Type_create_resized(types[0], 0, 96, &types[1]) != MPI_SUCCESS) return made;
    MPI_Datatype parts[] = {MPI_INT, MPI_DOUBLE, MPI_SHORT};
    return 2 + (PMPI_Type_create_struct(3, lengths, places, parts, &types[2]) == MPI_SUCCESS);
}

/* Whether the MPI packs, sends and receives elements of a datatype as dtc does. */
static int test_type(MPI_Datatype *datatype, MPI_Comm communicator, unsigned char *memory)
{
    unsigned char *expected = memory + TEST_BYTES, *found = expected + TEST_BYTES, *back = found + TEST_BYTES;
    dtc_type *type;
    MPI_Status status;
    int position = 0, received = 0;
    int64_t done = 0;
    if (PMPI_Type_commit(datatype) != MPI_SUCCESS || dtc_mpi_type(&decoder, *datatype, &type) != DTC_OK) return 0;
    for (int at = 0; at < TEST_BYTES; at++) memory[at] = (unsigned char)(at * 167 + (at >> 5)), back[at] = 0;
    dtc_info info = DTC_INFO_INIT;
    int same = dtc_type_commit(type, 0) == DTC_OK && dtc_type_query(type, &info) == DTC_OK;
    int bytes = TEST_COUNT * (int)info.packed_size;
    same = same && dtc_pack(type, memory, TEST_COUNT, 0, found, TEST_BYTES, &done, NULL) == DTC_OK && done == bytes;
    same = same && PMPI_Pack(memory, TEST_COUNT, *datatype, expected, TEST_BYTES, &position, communicator) == MPI_SUCCESS;
    same = same && position == bytes && !memcmp(expected, found, (size_t)bytes);
    same = same && PMPI_Sendrecv(found, bytes, MPI_PACKED, 0, TEST_TAG, back, TEST_COUNT, *datatype, 0, TEST_TAG, communicator,
                                 &status) == MPI_SUCCESS;
    same = same && PMPI_Get_count(&status, *datatype, &received) == MPI_SUCCESS && received == TEST_COUNT;
    same = same && dtc_pack(type, back, TEST_COUNT, 0, expected, TEST_BYTES, &done, NULL) == DTC_OK;
    same = same && !memcmp(expected, found, (size_t)bytes);
    memset(found, 0, (size_t)bytes);
    same = same && PMPI_Sendrecv(memory, TEST_COUNT, *datatype, 0, TEST_TAG, found, bytes, MPI_PACKED, 0, TEST_TAG, communicator,
                                 &status) == MPI_SUCCESS;
    same = same && PMPI_Get_count(&status, MPI_PACKED, &received) == MPI_SUCCESS && received == bytes;
    same = same && !memcmp(expected, found, (size_t)bytes);
    dtc_type_release(type);
    return same;
}

/* 1 if the MPI and dtc agree. */
static int self_test(void)
{
    unsigned char *memory = (unsigned char *)malloc(4 * TEST_BYTES);
    MPI_Datatype types[3];
    MPI_Comm communicator;
    /* Messages on MPI_COMM_SELF itself could meet receives of the program. */
    if (!memory || PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &communicator) != MPI_SUCCESS) {
        free(memory);
        return 0;
    }
    int made = test_types(types), same = made == 3;
    for (int at = 0; at < made; at++) {
        same = same && test_type(&types[at], communicator, memory);
        PMPI_Type_free(&types[at]);
    }
    PMPI_Comm_free(&communicator);
    free(memory);
    return same;
}

#endif
