/* What a call costs more that goes on to the MPI, in nanoseconds: the shortest of many batches of packs of few bytes, against the
   shortest of PMPI_Pack; the same for a message to oneself, sent and received, for tests of a request that is the MPI's, while one
   of dtc is under way, and for datatypes that are made, committed and freed. If DTC_CUDA_DRIVER names a driver, the process uses CUDA. */
#include "device.h"
#include <time.h>

enum { CALLS = 1000, BATCHES = 2000 };

typedef int pack_function(const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm);

static double batch(pack_function *pack, const void *memory, MPI_Datatype datatype)
{
    struct timespec begin, end;
    char packed[256];
    int position;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int call = 0; call < CALLS; call++) position = 0, pack(memory, 1, datatype, packed, sizeof packed, &position, MPI_COMM_SELF);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / CALLS;
}

static void measure(const char *name, MPI_Datatype datatype)
{
    double ours = 1e9, theirs = 1e9;
    double memory[64] = {0};
    for (int round = 0; round < BATCHES; round++) {
        double time = batch(MPI_Pack, memory, datatype);
        if (time < ours) ours = time;
        time = batch(PMPI_Pack, memory, datatype);
        if (time < theirs) theirs = time;
    }
    printf("cost: %s: %.1f ns more\n", name, ours - theirs);
}

typedef int exchange_function(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);

static double messages(exchange_function *exchange, void *memory, void *received, MPI_Datatype datatype)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int call = 0; call < CALLS; call++)
        exchange(memory, 1, datatype, 0, 3, received, 1, datatype, 0, 3, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / CALLS;
}

/* Both ends of a message are asked about. */
static void measure_messages(const char *name, MPI_Datatype datatype)
{
    double ours = 1e9, theirs = 1e9;
    double memory[64] = {0}, received[64];
    for (int round = 0; round < BATCHES / 2; round++) {
        double time = messages(MPI_Sendrecv, memory, received, datatype);
        if (time < ours) ours = time;
        time = messages(PMPI_Sendrecv, memory, received, datatype);
        if (time < theirs) theirs = time;
    }
    printf("cost: message, %s: %.1f ns more\n", name, (ours - theirs) / 2);
}

typedef int test_function(MPI_Request *, int *, MPI_Status *);

static double tests(test_function *test, MPI_Request *request)
{
    struct timespec begin, end;
    int flag;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int call = 0; call < CALLS; call++) test(request, &flag, MPI_STATUS_IGNORE);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / CALLS;
}

/* A request that has not been started is complete: the MPI returns at once. */
static void measure_tests(MPI_Datatype derived)
{
    double ours = 1e9, theirs = 1e9;
    static double memory[4000];
    int number;
    MPI_Request request, under_way;
    MPI_Recv_init(&number, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &request);
    for (int again = 0; again < 2; again++) {
        MPI_Irecv(memory, 2000 / 3, derived, 0, 2, MPI_COMM_SELF, &under_way);
        if (again == 0) MPI_Cancel(&under_way), MPI_Wait(&under_way, MPI_STATUS_IGNORE);
    }
    for (int round = 0; round < BATCHES / 4; round++) {
        double time = tests(MPI_Test, &request);
        if (time < ours) ours = time;
        time = tests(PMPI_Test, &request);
        if (time < theirs) theirs = time;
    }
    printf("cost: request: %.1f ns more\n", ours - theirs);
    MPI_Cancel(&under_way);
    MPI_Wait(&under_way, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

typedef int type_function(MPI_Datatype *);

static double commits(type_function *commit, type_function *release)
{
    struct timespec begin, end;
    MPI_Datatype made;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int call = 0; call < CALLS; call++) MPI_Type_vector(3, 1, 2 + call % 8, MPI_DOUBLE, &made), commit(&made), release(&made);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / CALLS;
}

static void measure_commits(void)
{
    double ours = 1e9, theirs = 1e9;
    for (int round = 0; round < BATCHES; round++) {
        double time = commits(MPI_Type_commit, MPI_Type_free);
        if (time < ours) ours = time;
        time = commits(PMPI_Type_commit, PMPI_Type_free);
        if (time < theirs) theirs = time;
    }
    printf("cost: datatype: %.1f ns more\n", ours - theirs);
}

int main(int argc, char **argv)
{
    MPI_Datatype rows;
    MPI_Init(&argc, &argv);
    MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &rows);
    MPI_Type_commit(&rows);
    if (getenv("DTC_CUDA_DRIVER")) open_device(0);
    measure("predefined", MPI_DOUBLE);
    measure("derived", rows);
    measure_messages("predefined", MPI_DOUBLE);
    measure_messages("derived", rows);
    measure_tests(rows);
    measure_commits();
    MPI_Type_free(&rows);
    MPI_Finalize();
    return 0;
}
