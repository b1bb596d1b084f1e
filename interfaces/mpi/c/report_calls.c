/*
 * Counts each call, by its name, for a process whose DTC_MPI_REPORT asks: the table of entry.c then leads here first. Otherwise nothing is
 * counted, and a call costs nothing more.
 */
#include "report_calls.h"

#include <inttypes.h>
#include <stdio.h>

#include "shapes.h"

typedef uintptr_t word;

/* Calls of one kind: those of which dtc did a part, and those that went on to the MPI. */
static struct counted {
    int64_t handled, passed, handled_nanoseconds, passed_nanoseconds;
    int64_t reasons[DTC_MPI_REASONS];
} counted[DTC_MPI_CALLS];

static const char *const names[DTC_MPI_CALLS] = {
#define CALL(name, shape, count) "MPI_" #name,
#include "calls.def"
#undef CALL
};

/* Where the counted calls go on. */
static dtc_mpi_function entries[DTC_MPI_CALLS];

static dtc_mpi_judge judge;

static void add(int64_t *number, int64_t more)
{
    __atomic_fetch_add(number, more, __ATOMIC_RELAXED);
}

/* After a call: whether this thread did something in it. */
static int tell(struct counted *call, int64_t begin, int64_t done)
{
    int64_t time = dtc_mpi_now() - begin;
    if (dtc_mpi_done_here() != done) {
        add(&call->handled, 1);
        add(&call->handled_nanoseconds, time);
        return 1;
    }
    add(&call->passed, 1);
    add(&call->passed_nanoseconds, time);
    return 0;
}

/* Why a call was not handled; -1 if all calls go to the MPI. */
static int reason(uintptr_t memory, int64_t elements, uintptr_t datatype, int rank, int what)
{
    return judge ? judge(memory, elements, datatype, rank, what) : -1;
}

/* Why the call of a shape was not handled; shapes with several datatypes, or none, are counted without a reason. */
#define SENT_ELEMENTS(number) reason(memory, number(elements), datatype, (int)rank, DTC_MPI_JUDGE_SEND)
#define RECEIVED_ELEMENTS(number) reason(memory, number(elements), datatype, (int)rank, DTC_MPI_JUDGE_RECEIVE)
#define PACKED_ELEMENTS(number) reason(memory, number(elements), datatype, 0, DTC_MPI_JUDGE_PACK)
#define NO_ELEMENTS(number) -1
#define REASON_SEND SENT_ELEMENTS
#define REASON_ISEND SENT_ELEMENTS
#define REASON_SEND_INIT SENT_ELEMENTS
#define REASON_RECV RECEIVED_ELEMENTS
#define REASON_IRECV RECEIVED_ELEMENTS
#define REASON_RECV_INIT RECEIVED_ELEMENTS
#define REASON_PACK PACKED_ELEMENTS
#define REASON_UNPACK PACKED_ELEMENTS
#define REASON_MRECV NO_ELEMENTS
#define REASON_IMRECV NO_ELEMENTS
#define REASON_SENDRECV NO_ELEMENTS
#define REASON_SENDRECV_REPLACE NO_ELEMENTS
#define REASON_ISENDRECV NO_ELEMENTS
#define REASON_ISENDRECV_REPLACE NO_ELEMENTS
#define REASON_ALLTOALLW NO_ELEMENTS
#define REASON_IALLTOALLW NO_ELEMENTS
#define REASON_NEIGHBOR_ALLTOALLW NO_ELEMENTS
#define REASON_INEIGHBOR_ALLTOALLW NO_ELEMENTS
#define REASON_ALLTOALLW_INIT NO_ELEMENTS
#define REASON_NEIGHBOR_ALLTOALLW_INIT NO_ELEMENTS
#define REASON_INIT NO_ELEMENTS
#define REASON_INIT_THREAD NO_ELEMENTS
#define REASON_FINALIZE NO_ELEMENTS
#define REASON_COMMIT NO_ELEMENTS
#define REASON_TYPE_FREE NO_ELEMENTS
#define REASON_COMM_FREE NO_ELEMENTS
#define REASON_START NO_ELEMENTS
#define REASON_STARTALL NO_ELEMENTS
#define REASON_WAIT NO_ELEMENTS
#define REASON_TEST NO_ELEMENTS
#define REASON_WAITALL NO_ELEMENTS
#define REASON_TESTALL NO_ELEMENTS
#define REASON_WAITANY NO_ELEMENTS
#define REASON_TESTANY NO_ELEMENTS
#define REASON_SOME NO_ELEMENTS
#define REASON_GET_STATUS NO_ELEMENTS
#define REASON_GET_STATUS_ALL NO_ELEMENTS
#define REASON_GET_STATUS_ANY NO_ELEMENTS
#define REASON_GET_STATUS_SOME NO_ELEMENTS
#define REASON_REQUEST_FREE NO_ELEMENTS

/* A word as a number of the kind of the call. */
#define NUMBER_count(word) (int)word
#define NUMBER_large_count(word) (int64_t)word

#define PARAMETER(kind, name) word name
#define TYPE(kind, name) word
#define ARGUMENT(kind, name) name
#define CALL(name, shape, count)                                                                                                  \
    static int count_##name(ARGUMENTS_##shape(PARAMETER, count))                                                                  \
    {                                                                                                                              \
        struct counted *call = &counted[DTC_MPI_CALL_##name];                                                                     \
        int64_t begin = dtc_mpi_now(), done = dtc_mpi_done_here();                                                                        \
        int result = ((int (*)(ARGUMENTS_##shape(TYPE, count)))entries[DTC_MPI_CALL_##name])(ARGUMENTS_##shape(ARGUMENT, count));  \
        int why = tell(call, begin, done) ? -1 : REASON_##shape(NUMBER_##count);                                                  \
        if (why >= 0) add(&call->reasons[why], 1);                                                                                \
        return result;                                                                                                             \
    }
#include "calls.def"
#undef CALL

void dtc_mpi_count_calls(dtc_mpi_function table[DTC_MPI_CALLS], dtc_mpi_judge judged)
{
    static const dtc_mpi_function counting[DTC_MPI_CALLS] = {
#define CALL(name, shape, count) (dtc_mpi_function)count_##name,
#include "calls.def"
#undef CALL
    };
    judge = judged;
    for (int call = 0; call < DTC_MPI_CALLS; call++) {
        entries[call] = table[call];
        table[call] = counting[call];
    }
}

/* The name of the ABI, for the report of a process whose calls all go to the MPI. */
static const char *unserved;

static int finalize_unserved(void)
{
    dtc_mpi_report_calls(unserved);
    return ((int (*)(void))entries[DTC_MPI_CALL_Finalize])();
}

void dtc_mpi_count_unserved_calls(dtc_mpi_function table[DTC_MPI_CALLS], const char *abi)
{
    unserved = abi;
    dtc_mpi_count_calls(table, NULL);
    table[DTC_MPI_CALL_Finalize] = (dtc_mpi_function)finalize_unserved;
}

void dtc_mpi_report_calls(const char *abi)
{
    static const char *const reasons[DTC_MPI_REASONS] = {
        "predefined datatype", "contiguous", "not decoded, or long double", "long pieces", "few bytes", "few uses", "too many bytes",
        "elements of several sizes", "nothing to move", "first use, no memory, or MPI_BOTTOM",
    };
    /* One write for a line: those of several processes do not mix. */
    char line[512];
    for (int at = 0; at < DTC_MPI_CALLS; at++) {
        const struct counted *call = &counted[at];
        if (!call->handled && !call->passed) continue;
        size_t end = (size_t)snprintf(line, sizeof line, "%s: %" PRId64 " with dtc in %.6f s, %" PRId64 " passed on in %.6f s", names[at],
                                      call->handled, (double)call->handled_nanoseconds * 1e-9, call->passed,
                                      (double)call->passed_nanoseconds * 1e-9);
        const char *before = " (";
        for (int reason = 0; reason < DTC_MPI_REASONS && end < sizeof line; reason++) {
            if (!call->reasons[reason]) continue;
            end += (size_t)snprintf(line + end, sizeof line - end, "%s%" PRId64 " %s", before, call->reasons[reason], reasons[reason]);
            before = ", ";
        }
        fprintf(stderr, "libdtc_mpi: %s: call %s%s\n", abi, line, *before == ',' ? ")" : "");
    }
}
