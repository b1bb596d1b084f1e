/* Messages of elements in memory of a GPU, and between that and the host: every call for messages, for packs, and for their ends. The MPI
   must not touch memory of the GPU, unless it is CUDA-aware: an emulated GPU may see to that. 2 ranks or more. */
#include "device.h"
#include "large_counts.h"

enum { TAG = 5 };

static int size_of(MPI_Datatype datatype)
{
    int size;
    MPI_Type_size(datatype, &size);
    return size;
}

/* The ways to send, to receive, and to end what is under way. */
enum { SEND, SSEND, BSEND, ISEND, ISSEND, IBSEND, SENDS };
enum { RECV, PROBE, MRECV, IRECV, IMRECV, RECEIVES };
enum { WAIT, TEST, WAITALL, TESTALL, WAITANY, TESTANY, WAITSOME, TESTSOME, ASK, WAYS };

static void end(int way, MPI_Request *request, MPI_Status *status)
{
    int flag = 0, index, ended = 0;
    if (way == WAIT) MPI_Wait(request, status);
    if (way == WAITALL) MPI_Waitall(1, request, status);
    if (way == WAITANY) MPI_Waitany(1, request, &index, status);
    if (way == WAITSOME) MPI_Waitsome(1, request, &ended, &index, status);
    while (way == TEST && !flag) MPI_Test(request, &flag, status);
    while (way == TESTALL && !flag) MPI_Testall(1, request, &flag, status);
    while (way == TESTANY && !flag) MPI_Testany(1, request, &index, &flag, status);
    while (way == TESTSOME && !ended) MPI_Testsome(1, request, &ended, &index, status);
    while (way == ASK && !flag) MPI_Request_get_status(*request, &flag, status);
    if (way == ASK) MPI_Wait(request, MPI_STATUS_IGNORE);
    CHECK(*request == MPI_REQUEST_NULL, "way %d", way);
}

/* Sends; a datatype may be freed while its message is under way. */
static void send(int kind, int way, const void *memory, int count, MPI_Datatype datatype, int to)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    MPI_Datatype mine;
    if (kind == SEND) MPI_Send(memory, count, datatype, to, TAG, MPI_COMM_WORLD);
    if (kind == SSEND) MPI_Ssend(memory, count, datatype, to, TAG, MPI_COMM_WORLD);
    if (kind == BSEND) MPI_Bsend(memory, count, datatype, to, TAG, MPI_COMM_WORLD);
    if (kind < ISEND) return;
    MPI_Type_dup(datatype, &mine);
    if (kind == ISEND) MPI_Isend(memory, count, mine, to, TAG, MPI_COMM_WORLD, &request);
    if (kind == ISSEND) MPI_Issend(memory, count, mine, to, TAG, MPI_COMM_WORLD, &request);
    if (kind == IBSEND) MPI_Ibsend(memory, count, mine, to, TAG, MPI_COMM_WORLD, &request);
    MPI_Type_free(&mine);
    end(way, &request, &status);
}

static void receive(int kind, int way, void *memory, int count, MPI_Datatype datatype, int from, MPI_Status *status)
{
    MPI_Request request;
    MPI_Status probed;
    MPI_Message message;
    MPI_Datatype mine;
    int found, came;
    MPI_Type_dup(datatype, &mine);
    if (kind == PROBE) MPI_Probe(from, TAG, MPI_COMM_WORLD, &probed), from = probed.MPI_SOURCE;
    if (kind == MRECV || kind == IMRECV) MPI_Mprobe(from, TAG, MPI_COMM_WORLD, &message, &probed);
    if (kind <= PROBE) MPI_Recv(memory, count, datatype, from, TAG, MPI_COMM_WORLD, status);
    if (kind == MRECV) MPI_Mrecv(memory, count, datatype, &message, status);
    if (kind == IRECV) MPI_Irecv(memory, count, mine, from, TAG, MPI_COMM_WORLD, &request);
    if (kind == IMRECV) MPI_Imrecv(memory, count, mine, &message, &request);
    MPI_Type_free(&mine);
    if (kind == IRECV || kind == IMRECV) end(way, &request, status);
    if (kind != PROBE && kind != MRECV && kind != IMRECV) return;
    MPI_Get_count(&probed, MPI_BYTE, &found);
    MPI_Get_count(status, MPI_BYTE, &came);
    CHECK(found == came, "%d %d", found, came);
}

/* One message from rank 0 to rank 1, which has room for `room` elements. */
static void message(int sends, int receives, int way, struct buffer *sent, MPI_Datatype out, int count, MPI_Datatype in, int room,
                    enum where into)
{
    int bytes = size_of(out) * count, found = -1;
    if (rank == 0) send(sends, way, sent->memory, count, out, 1);
    if (rank != 1) return;
    struct buffer received = buffer(in, room, 2, into);
    struct elements expected = elements(in, room, 2);
    MPI_Status status;
    memset(&status, 0x5a, sizeof status);
    receive(receives, way, received.memory, room, in, sends % 2 ? MPI_ANY_SOURCE : 0, &status);
    download(&received);
    expect(sent->host, expected, bytes);
    CHECK(same(received.host, expected), "%d elements, sends %d, receives %d, way %d, into %d", count, sends, receives, way, into);
    MPI_Get_count(&status, in, &found);
    int size = size_of(in), whole = size > 0 && bytes - bytes / size * size == 0;
    CHECK(!whole || found == bytes / size, "%d", found);
    MPI_Get_elements(&status, MPI_BYTE, &found);
    CHECK(found == bytes, "%d of %d bytes", found, bytes);
    CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == TAG, "%d %d", status.MPI_SOURCE, status.MPI_TAG);
    release(&received);
    drop(expected);
}

/* Where elements lie of a message, or of either end of a pack: all pairs with a GPU, the one that is not current among them. */
enum { PLACES = 7 };
static const enum where places[PLACES][2] = {{ON_DEVICE, ON_HOST},  {ON_HOST, ON_DEVICE},  {ON_DEVICE, ON_DEVICE}, {ON_OTHER, ON_HOST},
                                             {ON_HOST, ON_OTHER}, {ON_OTHER, ON_DEVICE}, {ON_DEVICE, ON_OTHER}};

/* Between GPUs and the host, and one pair with the other GPU in turn. */
static void both(int sends, int receives, int way, MPI_Datatype out, int count, MPI_Datatype in, int room)
{
    static int turn;
    turn++;
    for (int at = 0; at < 4; at++) {
        int kind = at < 3 ? at : 3 + turn % 4;
        struct buffer sent = buffer(out, count, 1, places[kind][0]);
        message(sends, receives, way, &sent, out, count, in, room, places[kind][1]);
        /* Messages may wait in the buffer of MPI_Bsend, and their elements must stay. */
        MPI_Barrier(MPI_COMM_WORLD);
        release(&sent);
    }
}

static void pairs(void)
{
    MPI_Datatype rows = vector(700, 1, 3), wide = vector(40, 20, 31), mixed = structure(-8);
    MPI_Datatype fields = vector_of(7, 2, 3, MPI_DOUBLE), longer = vector(100, 1, 2);
    for (int sends = 0; sends < SENDS; sends++)
        for (int receives = 0; receives < RECEIVES; receives++) {
            int way = (sends * RECEIVES + receives) % WAYS;
            both(sends, receives, way, rows, 1, rows, 1);
            both(sends, receives, way, wide, 3, MPI_INT, 2400);
            both(sends, receives, way, MPI_INT, 1400, longer, 14);
            both(sends, receives, way, MPI_DOUBLE, 3000, MPI_DOUBLE, 4000);
            both(sends, receives, way, fields, 20, fields, 30);
            both(sends, receives, way, MPI_INT, 0, rows, 1);
            /* MPICH 4.0 sends too many bytes of such a struct from the buffer of MPI_Bsend. */
            if (sends != BSEND && sends != IBSEND) both(sends, receives, way, mixed, 200, mixed, 300);
            if (sends != BSEND && sends != IBSEND) both(sends, receives, way, MPI_DOUBLE_INT, 60, MPI_DOUBLE_INT, 70);
        }
    for (int way = 0; way < WAYS; way++) both(ISEND, IRECV, way, longer, 7, rows, 1);
    /* Where an MPI does not buffer. */
    MPI_Datatype many = vector(40000, 1, 2);
    both(SEND, RECV, WAIT, many, 1, many, 1);
    both(ISEND, IRECV, WAIT, MPI_DOUBLE, 40000, many, 2);
    both(SEND, RECV, WAIT, mixed, 8000, mixed, 8000);
    MPI_Type_free(&many), MPI_Type_free(&rows), MPI_Type_free(&wide), MPI_Type_free(&mixed), MPI_Type_free(&fields), MPI_Type_free(&longer);
}

/* Packs and unpacks of which either end lies on a GPU. */
static void packs(MPI_Datatype datatype, int count)
{
    int bytes = size_of(datatype) * count, theirs = 0;
    count_type position;
    struct elements plain = elements(datatype, count, 1);
    unsigned char *expected = calloc(1, (size_t)bytes + 8);
    PMPI_Pack(plain.memory, count, datatype, expected + 4, bytes, &theirs, MPI_COMM_WORLD);
    for (int kind = 0; kind < PLACES; kind++) {
        /* Elements of the host are packed into a GPU through pinned memory alone. Open MPI does not look where packed bytes are. */
        if ((getenv("EMULATOR_NO_PINNED") || getenv("DEVICE_INSIDE")) && places[kind][0] == ON_HOST) continue;
        struct buffer memory = buffer(datatype, count, 1, places[kind][0]), packed = buffer(MPI_BYTE, bytes + 8, 2, places[kind][1]);
        position = 4;
        MPI_Pack(memory.memory, count, datatype, packed.memory, bytes + 8, &position, MPI_COMM_WORLD);
        download(&packed);
        CHECK(position == bytes + 4 && !memcmp(packed.host.memory + 4, expected + 4, (size_t)bytes), "kind %d, %d", kind, (int)position);
        CHECK(packed.host.memory[3] == byte_at(3, 2) && packed.host.memory[bytes + 4] == byte_at(bytes + 4, 2), "kind %d", kind);
        struct buffer back = buffer(datatype, count, 3, memory.where);
        struct elements wanted = elements(datatype, count, 3);
        theirs = 4;
        position = 4;
        PMPI_Unpack(expected, bytes + 4, &theirs, wanted.memory, count, datatype, MPI_COMM_WORLD);
        MPI_Unpack(packed.memory, bytes + 4, &position, back.memory, count, datatype, MPI_COMM_WORLD);
        download(&back);
        CHECK(position == theirs && same(back.host, wanted), "kind %d, %d", kind, (int)position);
        /* Too short; MPICH itself, if it is asked, does not look. */
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        position = 9;
        int asked = bytes > 0 && !getenv("DEVICE_AWARE"), refused = 1;
        if (asked) refused = MPI_Pack(memory.memory, count, datatype, packed.memory, bytes + 8, &position, MPI_COMM_WORLD) != MPI_SUCCESS;
        CHECK(refused && position == 9, "%d", (int)position);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
        release(&memory), release(&packed), release(&back), drop(wanted);
    }
    free(expected);
    drop(plain);
}

static void random_types(void)
{
    for (int round = 0; round < 60; round++) {
        MPI_Datatype datatype = random_type();
        int count = 1 + draw(9), sends = draw(SENDS), receives = draw(RECEIVES), way = draw(WAYS);
        if (sends == BSEND || sends == IBSEND) sends++;
        if (sends == SENDS) sends = SEND;
        both(sends, receives, way, datatype, count, datatype, count + draw(3));
        packs(datatype, count);
        MPI_Type_free(&datatype);
    }
}

/* Persistent requests, started again with other data, received into other elements than were sent. */
static void persistent(int kind, enum where from, enum where into)
{
    MPI_Datatype rows = vector(500, 1, 2), wide = vector(250, 2, 5);
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    struct buffer sent = buffer(rows, 2, 1, from), received = buffer(wide, 3, 3, into), theirs = buffer(rows, 2, 1, ON_HOST);
    struct elements expected = elements(wide, 3, 3);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Recv_init(received.memory, 3, wide, left, TAG, MPI_COMM_WORLD, &requests[0]);
    if (kind == 0) MPI_Send_init(sent.memory, 2, rows, right, TAG, MPI_COMM_WORLD, &requests[1]);
    if (kind == 1) MPI_Ssend_init(sent.memory, 2, rows, right, TAG, MPI_COMM_WORLD, &requests[1]);
    if (kind == 2) MPI_Bsend_init(sent.memory, 2, rows, right, TAG, MPI_COMM_WORLD, &requests[1]);
    if (kind == 3) MPI_Rsend_init(sent.memory, 2, rows, right, TAG, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < 4; round++) {
        int found = -1;
        refill(&sent, (unsigned)(50 + 10 * round + rank));
        refill(&theirs, (unsigned)(50 + 10 * round + left));
        expect(theirs.host, expected, 4000);
        MPI_Start(&requests[0]);
        MPI_Barrier(MPI_COMM_WORLD);
        if (round % 2) MPI_Start(&requests[1]);
        else MPI_Startall(1, &requests[1]);
        if (round % 2) MPI_Waitall(2, requests, statuses);
        else for (int at = 0; at < 2; at++) MPI_Wait(&requests[at], &statuses[at]);
        download(&received);
        CHECK(same(received.host, expected), "round %d", round);
        MPI_Get_count(&statuses[0], wide, &found);
        CHECK(found == 2 && statuses[0].MPI_SOURCE == left, "%d", found);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Type_free(&rows), MPI_Type_free(&wide);
    release(&sent), release(&received), release(&theirs), drop(expected);
}

/* Exchanges around the ring, in place, to and from no process, blocking or not. */
static void exchanges(int later, MPI_Datatype datatype, int count, enum where from, enum where into)
{
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, bytes = size_of(datatype) * count, found = -1;
    struct buffer sent = buffer(datatype, count, 10 + (unsigned)rank, from), received = buffer(datatype, count + 1, 5, into);
    struct elements theirs = elements(datatype, count, 10 + (unsigned)left), expected = elements(datatype, count + 1, 5);
    MPI_Status status;
    MPI_Request request = MPI_REQUEST_NULL;
    expect(theirs, expected, bytes);
#if HAS_ISENDRECV
    if (later) MPI_Isendrecv(sent.memory, count, datatype, right, TAG, received.memory, count + 1, datatype, left, TAG, MPI_COMM_WORLD, &request);
#endif
    if (later) end(WAIT, &request, &status);
    else MPI_Sendrecv(sent.memory, count, datatype, right, TAG, received.memory, count + 1, datatype, left, TAG, MPI_COMM_WORLD, &status);
    download(&received);
    CHECK(same(received.host, expected), "later %d", later);
    if (!later) MPI_Get_count(&status, MPI_BYTE, &found);
    CHECK(later || (found == bytes && status.MPI_SOURCE == left), "%d", found);
    drop(expected);
    expected = elements(datatype, count, 10 + (unsigned)rank);
    expect(theirs, expected, bytes);
    /* MPICH 5.0 itself exchanges other elements, if their sizes differ, in place. */
    for (int nowhere = 0; nowhere < 2 && !(later && from == ON_HOST); nowhere++) {
        int to = nowhere ? MPI_PROC_NULL : right, source = nowhere ? MPI_PROC_NULL : left;
#if HAS_ISENDRECV
        if (later) MPI_Isendrecv_replace(sent.memory, count, datatype, to, TAG, source, TAG, MPI_COMM_WORLD, &request);
#endif
        if (later) end(TEST, &request, &status);
        else MPI_Sendrecv_replace(sent.memory, count, datatype, to, TAG, source, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        download(&sent);
        CHECK(same(sent.host, expected), "in place, later %d, nowhere %d", later, nowhere);
    }
    release(&sent), release(&received), drop(theirs), drop(expected);
}

/* Messages that are too long, receives that are cancelled, and requests that are freed. Open MPI 4.1 and 5.0 write too long a message past
   the end of a contiguous receive, which those on a GPU are if it is CUDA-aware. */
static void ends(MPI_Datatype datatype, int count)
{
    MPI_Comm communicator;
    MPI_Request request;
    MPI_Status status;
    int class = MPI_SUCCESS, flag = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
    struct buffer sent = buffer(datatype, 3 * count, 6, ON_DEVICE), received = buffer(datatype, count, 7, ON_DEVICE);
    int too_long = !getenv("DEVICE_AWARE");
    if (rank == 0 && too_long) MPI_Send(sent.memory, 3 * count, datatype, 1, TAG, communicator);
    if (rank == 1 && too_long) {
        MPI_Error_class(MPI_Recv(received.memory, count, datatype, 0, TAG, communicator, MPI_STATUS_IGNORE), &class);
        CHECK(class == MPI_ERR_TRUNCATE, "%d", class);
        download(&received);
        CHECK(received.host.bytes[received.host.length - 1] == byte_at(received.host.length - 1, 7), "overrun");
    }
    refill(&received, 7);
    MPI_Irecv(received.memory, count, datatype, rank, 77, communicator, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    download(&received);
    struct elements before = elements(datatype, count, 7);
    CHECK(flag && same(received.host, before), "cancelled");
    /* What has been freed ends during later calls; what is the MPI's alone, by itself. */
    int staged = size_of(datatype) > 4 || !getenv("DEVICE_AWARE");
    if (rank == 0 && staged) {
        MPI_Isend(sent.memory, count, datatype, 1, TAG, communicator, &request);
        MPI_Request_free(&request);
        MPI_Recv(NULL, 0, MPI_INT, 1, 9, communicator, MPI_STATUS_IGNORE);
    } else if (rank == 1 && staged) {
        struct elements expected = elements(datatype, count, 7), theirs = elements(datatype, count, 6);
        expect(theirs, expected, size_of(datatype) * count);
        MPI_Irecv(received.memory, count, datatype, 0, TAG, communicator, &request);
        MPI_Request_free(&request);
        for (int number = 0; !same(received.host, expected); download(&received)) {
            MPI_Irecv(&number, 1, MPI_INT, 1, 8, communicator, &request);
            MPI_Send(&number, 1, MPI_INT, 1, 8, communicator);
            for (flag = 0; !flag;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            /* Open MPI alone makes no progress in calls that end at once. */
            if (getenv("DEVICE_INSIDE")) MPI_Iprobe(0, TAG + 1, communicator, &flag, MPI_STATUS_IGNORE);
        }
        MPI_Send(NULL, 0, MPI_INT, 0, 9, communicator);
        drop(expected), drop(theirs);
    }
    release(&sent), release(&received), drop(before);
    MPI_Comm_free(&communicator);
}

/* Elements at absolute addresses, some on the GPU and some on the host. */
static void absolute(void)
{
    struct buffer parts[2][2];
    MPI_Datatype made[2];
    for (int side = 0; side < 2; side++) {
        MPI_Aint places[2];
        int lengths[] = {300, 500};
        for (int at = 0; at < 2; at++) {
            parts[side][at] = buffer(MPI_INT, lengths[at], (unsigned)(side * 2 + at), at == 0 ? ON_DEVICE : ON_HOST);
            MPI_Get_address(parts[side][at].memory, &places[at]);
        }
        MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &made[side]);
        MPI_Type_commit(&made[side]);
    }
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    MPI_Sendrecv(MPI_BOTTOM, 1, made[0], right, TAG, MPI_BOTTOM, 1, made[1], left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int at = 0; at < 2; at++) {
        download(&parts[1][at]);
        CHECK(!memcmp(parts[0][at].host.memory, parts[1][at].host.memory, at ? 2000 : 1200), "part %d", at);
        release(&parts[0][at]), release(&parts[1][at]);
    }
    MPI_Type_free(&made[0]), MPI_Type_free(&made[1]);
}

/* Several messages that end in one call, of several places and lengths: shorter than the receive, empty, longer than what is unpacked with
   others. They are sent by persistent requests, which one call starts. */
static void several(int way)
{
    enum { MESSAGES = 9, LONG = 8 };
    struct buffer sent[MESSAGES], received[MESSAGES];
    struct elements expected[MESSAGES];
    MPI_Request out[MESSAGES], in[MESSAGES];
    MPI_Status statuses[MESSAGES];
    MPI_Datatype rows = vector(100, 1, 2), most = vector(1 << 21, 1, 2);
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, indices[MESSAGES], found, flag = 0, ended = 0;
    for (int at = 0; at < MESSAGES; at++) {
        MPI_Datatype datatype = at == LONG ? most : rows;
        int count = at == LONG ? 1 : (at * 7 + way) % 11;
        enum where from = at % 4 == 3 ? ON_HOST : at % 5 == 4 ? ON_OTHER : ON_DEVICE;
        sent[at] = buffer(datatype, count, (unsigned)at, from), received[at] = buffer(datatype, count + at % 2, 50, at % 3 ? ON_DEVICE : from);
        expected[at] = elements(datatype, count + at % 2, 50);
        expect(sent[at].host, expected[at], size_of(datatype) * count);
        MPI_Recv_init(received[at].memory, count + at % 2, datatype, left, 10 + at, MPI_COMM_WORLD, &in[at]);
        MPI_Send_init(sent[at].memory, count, datatype, right, 10 + at, MPI_COMM_WORLD, &out[at]);
    }
    MPI_Startall(MESSAGES, in);
    MPI_Startall(MESSAGES, out);
    if (way == WAITALL) MPI_Waitall(MESSAGES, in, statuses), ended = MESSAGES;
    while (way == TESTALL && !flag) MPI_Testall(MESSAGES, in, &flag, statuses), ended = MESSAGES;
    while (ended < MESSAGES) {
        if (way == WAITSOME) MPI_Waitsome(MESSAGES, in, &found, indices, &statuses[ended]);
        else MPI_Testsome(MESSAGES, in, &found, indices, &statuses[ended]);
        CHECK(found != MPI_UNDEFINED, "%d ended", ended);
        ended += found;
    }
    MPI_Waitall(MESSAGES, out, MPI_STATUSES_IGNORE);
    for (int at = 0; at < MESSAGES; at++) {
        download(&received[at]);
        CHECK(same(received[at].host, expected[at]), "message %d, way %d", at, way);
        release(&sent[at]), release(&received[at]), drop(expected[at]);
        MPI_Request_free(&in[at]), MPI_Request_free(&out[at]);
    }
    MPI_Type_free(&rows), MPI_Type_free(&most);
}

/* Packed bytes from a GPU as elements with padding, whose datatype is freed while the message is under way. MPIs differ in what they do to padding. */
static void padded(enum where into, int later)
{
    MPI_Datatype numbers = vector_of(100, 3, 5, MPI_LONG_DOUBLE), mine;
    int bytes = 2 * size_of(numbers);
    struct buffer sent = buffer(MPI_BYTE, bytes, 3, ON_DEVICE), received = buffer(numbers, 3, 4, into);
    struct elements expected = elements(numbers, 3, 4);
    MPI_Request request;
    if (rank == 0) MPI_Send(sent.memory, bytes, MPI_PACKED, 1, TAG, MPI_COMM_WORLD);
    if (rank == 1 && !later) MPI_Recv(received.memory, 3, numbers, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1 && later) {
        MPI_Type_dup(numbers, &mine);
        MPI_Irecv(received.memory, 3, mine, 0, TAG, MPI_COMM_WORLD, &request);
        MPI_Type_free(&mine);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    download(&received);
    expect(sent.host, expected, bytes);
    for (long at = 0; rank == 1 && at < expected.length; at++)
        CHECK(at % 16 >= 10 || received.host.bytes[at] == expected.bytes[at], "byte %ld, into %d", at, into);
    MPI_Type_free(&numbers);
    release(&sent), release(&received), drop(expected);
}

/* More messages than any limit of what others may have to read, of many lengths; they come in order, by any tag. */
static void unread(void)
{
    enum { MESSAGES = 150 };
    MPI_Datatype rows = vector(25, 1, 2);
    struct buffer sent = buffer(rows, 40 + MESSAGES, 3, ON_DEVICE);
    MPI_Request requests[MESSAGES];
    for (int at = 0; rank == 0 && at < MESSAGES; at++) MPI_Isend(sent.memory, 40 + at, rows, 1, at, MPI_COMM_WORLD, &requests[at]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int at = 0; rank == 1 && at < MESSAGES; at++) {
        struct buffer received = buffer(rows, 40 + MESSAGES, 4, at % 3 ? ON_DEVICE : ON_HOST);
        struct elements expected = elements(rows, 40 + MESSAGES, 4);
        MPI_Message message;
        MPI_Status status;
        int flag = 0, found;
        while (!flag && at % 2) MPI_Iprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
        while (!flag) MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
        MPI_Get_count(&status, rows, &found);
        CHECK(found == 40 + at && status.MPI_TAG == at, "%d elements with tag %d at %d", found, status.MPI_TAG, at);
        if (at % 2) MPI_Recv(received.memory, 40 + MESSAGES, rows, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        else MPI_Mrecv(received.memory, 40 + MESSAGES, rows, &message, &status);
        MPI_Get_count(&status, rows, &found);
        CHECK(found == 40 + at && status.MPI_TAG == at, "%d elements with tag %d at %d", found, status.MPI_TAG, at);
        download(&received);
        expect(sent.host, expected, 100 * (40 + at));
        CHECK(same(received.host, expected), "message %d", at);
        release(&received), drop(expected);
    }
    if (rank == 0) MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
    MPI_Type_free(&rows);
    release(&sent);
}

int main(int argc, char **argv)
{
    /* DEVICE_INSIDE: dtc is inside Open MPI, which only opens memory of other processes if each has its GPU when it begins. */
    if (getenv("DEVICE_INSIDE")) open_device(launched_rank());
    begin(&argc, &argv);
    CHECK(ranks >= 2, "%d", ranks);
    if (!getenv("DEVICE_INSIDE")) open_device(rank);
    int room = 16 << 20;
    void *attached = malloc((size_t)room);
    MPI_Buffer_attach(attached, room);
    MPI_Datatype rows = vector(500, 1, 2), mixed = structure(-8);
    pairs();
    random_types();
    packs(MPI_INT, 500), packs(rows, 3), packs(mixed, 90);
    for (int kind = 0; kind < PLACES; kind++) {
        enum where from = places[kind][0], into = places[kind][1];
        for (int send = 0; send < 4; send++)
            if (send != 2 || HAS_BSEND_INIT) persistent(send, from, into);
        for (int later = 0; later <= HAS_ISENDRECV; later++) {
            exchanges(later, rows, 3, from, into);
            exchanges(later, mixed, 50, from, into);
            exchanges(later, MPI_INT, 3000, from, into);
        }
    }
    several(WAITALL), several(TESTALL), several(WAITSOME), several(TESTSOME);
    ends(rows, 4), ends(MPI_INT, 40000), ends(rows, 200);
    for (int kind = 0; kind < 4; kind++) padded(kind % 2 ? ON_HOST : ON_DEVICE, kind / 2);
    unread();
    /* Its parts on the host and on the GPU are moved one after the other through pinned memory. */
    if (!getenv("EMULATOR_NO_PINNED")) absolute();
    MPI_Type_free(&rows), MPI_Type_free(&mixed);
    MPI_Buffer_detach(&attached, &room);
    free(attached);
    if (rank == 0) puts("device: done");
    MPI_Finalize();
    return 0;
}
