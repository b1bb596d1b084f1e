/* Every call that completes requests, behind programs.h. */

/* The ways to complete requests. */
enum way { WAIT, TEST, WAITALL, TESTALL, WAITANY, TESTANY, WAITSOME, TESTSOME, ASK, ASK_ALL, ASK_ANY, ASK_SOME, WAYS };

/* Completes all requests; those that have ended one by one are told by Waitany and the like. */
static inline void complete(enum way way, int length, MPI_Request *requests, MPI_Status *statuses)
{
    int ignore = statuses == MPI_STATUSES_IGNORE, left = length, flag = 0, index, indices[300], ended, nulls = 0;
    MPI_Status several[300];
    for (int at = 0; at < length; at++) nulls += requests[at] == MPI_REQUEST_NULL;
    switch (way) {
    case WAIT:
        for (int at = 0; at < length; at++) MPI_Wait(&requests[at], ignore ? MPI_STATUS_IGNORE : &statuses[at]);
        break;
    case TEST:
        for (int at = 0; at < length; at++)
            for (flag = 0; !flag;) MPI_Test(&requests[at], &flag, ignore ? MPI_STATUS_IGNORE : &statuses[at]);
        break;
    case WAITALL:
        MPI_Waitall(length, requests, statuses);
        break;
    case TESTALL:
        while (!flag) MPI_Testall(length, requests, &flag, statuses);
        break;
    case WAITANY:
    case TESTANY:
        for (left -= nulls; left > 0;) {
            MPI_Status status;
            if (way == WAITANY) MPI_Waitany(length, requests, &index, ignore ? MPI_STATUS_IGNORE : &status), flag = 1;
            else MPI_Testany(length, requests, &index, &flag, ignore ? MPI_STATUS_IGNORE : &status);
            if (!flag) continue;
            CHECK(index >= 0 && index < length, "%d", index);
            if (!ignore) statuses[index] = status;
            left--;
        }
        break;
    case WAITSOME:
    case TESTSOME:
        for (left -= nulls; left > 0; left -= ended) {
            if (way == WAITSOME) MPI_Waitsome(length, requests, &ended, indices, ignore ? MPI_STATUSES_IGNORE : several);
            else MPI_Testsome(length, requests, &ended, indices, ignore ? MPI_STATUSES_IGNORE : several);
            CHECK(ended >= 0 && ended <= left, "%d", ended);
            for (int at = 0; at < ended && !ignore; at++) statuses[indices[at]] = several[at];
        }
        break;
    default:
        /* What was received may be read once a call has told of the end; the others end the requests. */
        for (int at = 0; way == ASK && at < length; at++)
            for (flag = 0; !flag;) MPI_Request_get_status(requests[at], &flag, ignore ? MPI_STATUS_IGNORE : &statuses[at]);
#if HAS_GET_STATUS_OF_MANY
        for (flag = 0; way == ASK_ALL && !flag;) MPI_Request_get_status_all(length, requests, &flag, statuses);
        for (flag = 0; way == ASK_ANY && !flag && length > nulls;)
            MPI_Request_get_status_any(length, requests, &index, &flag, ignore ? MPI_STATUS_IGNORE : several);
        for (ended = 0; way == ASK_SOME && ended == 0 && length > nulls;)
            MPI_Request_get_status_some(length, requests, &ended, indices, ignore ? MPI_STATUSES_IGNORE : several);
        if (way == ASK_ALL) break;
#endif
        if (way != ASK) MPI_Waitall(length, requests, statuses);
    }
}

/* Ends what complete() has only asked for. */
static inline void end(enum way way, int length, MPI_Request *requests)
{
    if (way >= ASK) MPI_Waitall(length, requests, MPI_STATUSES_IGNORE);
    for (int at = 0; at < length; at++) CHECK(requests[at] == MPI_REQUEST_NULL, "%d of %d, way %d", at, length, way);
}
