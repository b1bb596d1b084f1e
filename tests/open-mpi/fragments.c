/*
 * Types drawn at random, packed and unpacked by Open MPI's convertor in every way that its callers use, and sent between two
 * processes. Every byte is compared with a list of displacements that this program keeps by itself while it draws a type.
 *
 *   mpiexec -n 2 fragments [TYPES [SEED [CHECKS]]]
 *
 * Compiled against the sources of Open MPI, since the convertor is no part of its installation. Nothing that it checks is specific
 * to dtc. Prints how many types there were and how many of each check failed, after the first failures of a check: the type, what
 * was expected, and what was found. Returns 1 if one failed. CHECKS names some of "pack list copy whole unpack message".
 */
#include "opal_config.h"

#include <setjmp.h>

#include "opal/datatype/opal_convertor.h"

#include "types.h"

enum { LARGE = 300000 };

enum { PACK, LIST, COPY, WHOLE, UNPACK, MESSAGE, CHECKS };
static check checks[CHECKS] = {{"pack in fragments", 0},       {"list of pieces", 0},      {"copy", 0},
                               {"MPI_Pack and MPI_Unpack", 0}, {"unpack out of order", 0}, {"message", 0}};
static const char *const words[CHECKS] = {"pack", "list", "copy", "whole", "unpack", "message"};
static const char *wanted = "pack list copy whole unpack message";
static jmp_buf next_check;

/* Ends a check. What it allocated stays. */
#define END_CHECK(...) (fail(__VA_ARGS__), longjmp(next_check, 1))

static unsigned char expected(const elements *laid, long at) { return laid->memory[laid->at[at] - laid->low]; }

static void expect_packed(const elements *laid, const unsigned char *packed, long from, long bytes) {
    for (long at = from; at < from + bytes; at++) {
        if (packed[at - from] != expected(laid, at)) {
            END_CHECK("packed byte %ld of %ld: expected %d, found %d", at, laid->bytes, expected(laid, at), packed[at - from]);
        }
    }
}

/* Compares memory of `laid` with what is there when the first `bytes` of `packed` are unpacked into poison. */
static void expect_unpacked(const elements *laid, const unsigned char *packed, long bytes) {
    unsigned char *image = memory_of(laid->span + 2 * GUARD);
    memset(image, POISON, (size_t)(laid->span + 2 * GUARD));
    for (long at = 0; at < bytes; at++) {
        image[GUARD + laid->at[at] - laid->low] = packed[at];
    }
    for (long at = 0; at < laid->span + 2 * GUARD; at++) {
        if (laid->memory[at - GUARD] != image[at]) {
            END_CHECK("byte %ld of %ld in memory: expected %d, found %d", at - GUARD, laid->span, image[at], laid->memory[at - GUARD]);
        }
    }
    free(image);
}

static void poison(elements *laid) { memset(laid->memory - GUARD, POISON, (size_t)(laid->span + 2 * GUARD)); }

/* An MPI_Datatype of Open MPI begins with the datatype of its lower layer. */
static const opal_datatype_t *described(const drawn *made) { return (const opal_datatype_t *)made->type; }

static opal_convertor_t *prepared(const drawn *made, long count, const elements *laid, int send) {
    opal_convertor_t *convertor = opal_convertor_create((int32_t)opal_local_arch, 0);
    int status = send ? opal_convertor_prepare_for_send(convertor, described(made), (size_t)count, base(laid))
                      : opal_convertor_prepare_for_recv(convertor, described(made), (size_t)count, base(laid));
    if (status != OPAL_SUCCESS) {
        END_CHECK("prepare: expected status 0, found %d", status);
    }
    return convertor;
}

/* A few buffers of odd sizes; returns how many. */
static uint32_t buffers_at(struct iovec *iov, unsigned char *memory, long room) {
    uint32_t number = (uint32_t)draw(1, 3), at = 0;
    for (; at < number && (at == 0 || room > 0); at++) {
        long length = draw(1, draw(0, 3) ? 40 : 2000);
        length = length < room ? length : room;
        iov[at] = (struct iovec){memory, (size_t)length};
        memory += length;
        room -= length;
    }
    return at;
}

/* The whole message in fragments of a few buffers each, from a position on, with clones under way. */
static void pack_in_fragments(const drawn *made, long count, const elements *laid) {
    if (laid->bytes > 4 * MOST_BYTES) {
        return;
    }
    opal_convertor_t *convertor = prepared(made, count, laid, 1);
    unsigned char *packed = memory_of(laid->bytes + 3 * 2048);
    size_t position = laid->bytes > 0 && draw(0, 1) ? (size_t)draw(0, laid->bytes - 1) : 0;
    opal_convertor_set_position(convertor, &position);
    int idle = 0;
    for (int done = laid->bytes == 0; !done;) {
        struct iovec iov[3];
        uint32_t buffers = buffers_at(iov, packed, laid->bytes - (long)position + 20), given = buffers;
        long lengths[3] = {(long)iov[0].iov_len, buffers > 1 ? (long)iov[1].iov_len : 0, buffers > 2 ? (long)iov[2].iov_len : 0};
        size_t moved = 0;
        if (draw(0, 5) == 0) {
            opal_convertor_t *clone = opal_convertor_create((int32_t)opal_local_arch, 0);
            int with_stack = (int)draw(0, 1);
            opal_convertor_clone(convertor, clone, with_stack);
            if (!with_stack) {
                opal_convertor_set_position(clone, &position);
            }
            OBJ_RELEASE(convertor);
            convertor = clone;
        }
        done = opal_convertor_pack(convertor, iov, &buffers, &moved);
        if (done < 0 || buffers > given) {
            END_CHECK("at %zu: expected 0 or 1 and at most %u buffers, found %d and %u", position, given, done, buffers);
        }
        size_t sum = 0;
        for (uint32_t at = 0; at < buffers; at++) {
            /* Some functions of Open MPI leave the length of a last buffer that they did not fill. */
            size_t length = iov[at].iov_len < moved - sum ? iov[at].iov_len : moved - sum;
            if ((long)length > lengths[at] || position + sum + length > (size_t)laid->bytes) {
                END_CHECK("at %zu: expected at most %ld bytes in buffer %u, found %zu", position, lengths[at], at, length);
            }
            expect_packed(laid, iov[at].iov_base, (long)(position + sum), (long)length);
            sum += length;
        }
        idle = sum == 0 ? idle + 1 : 0;
        if (sum != moved || (done == 1) != (position + sum == (size_t)laid->bytes) || idle > 100) {
            END_CHECK("at %zu: expected %zu bytes and the end at %ld, found %zu and %d", position, sum, laid->bytes, moved, done);
        }
        position += sum;
    }
    struct iovec last = {packed, 10};
    uint32_t buffers = 1;
    size_t moved = 1;
    if (opal_convertor_pack(convertor, &last, &buffers, &moved) != 1 || moved != 0 || last.iov_len != 0) {
        END_CHECK("behind the end: expected 1 and no bytes, found %zu", moved);
    }
    free(packed);
    OBJ_RELEASE(convertor);
}

/* Fragments that are cut anywhere and arrive in any order, each at its position. */
static void unpack_out_of_order(const drawn *made, long count, elements *laid, const unsigned char *packed) {
    enum { MOST = 64 };
    long begins[MOST + 1], order[MOST], fragments = 0;
    if (laid->repeats) {
        return;
    }
    begins[0] = 0;
    while (begins[fragments] < laid->bytes) {
        long rest = laid->bytes - begins[fragments], length = draw(1, draw(0, 1) ? 13 : 1 + laid->bytes / 4);
        length = fragments == MOST - 1 || length > rest ? rest : length;
        order[fragments] = fragments;
        fragments++;
        begins[fragments] = begins[fragments - 1] + length;
    }
    for (long at = fragments - 1; at > 0; at--) {
        long other = draw(0, at), kept = order[at];
        order[at] = order[other];
        order[other] = kept;
    }
    opal_convertor_t *convertor = prepared(made, count, laid, 0);
    for (long turn = 0; turn < fragments; turn++) {
        long from = begins[order[turn]], length = begins[order[turn] + 1] - from, cut = draw(0, length);
        struct iovec iov[2] = {{(void *)(packed + from), (size_t)length}, {NULL, 0}};
        uint32_t buffers = 1;
        if (cut > 0 && cut < length) {
            iov[0].iov_len = (size_t)cut;
            iov[1] = (struct iovec){(void *)(packed + from + cut), (size_t)(length - cut)};
            buffers = 2;
        }
        size_t position = (size_t)from, moved = 0;
        opal_convertor_set_position(convertor, &position);
        int done = opal_convertor_unpack(convertor, iov, &buffers, &moved);
        if (position != (size_t)from || done != (from + length == laid->bytes) || (long)moved != length) {
            END_CHECK("at %ld: expected %ld bytes, found %zu at %zu, and %d", from, length, moved, position, done);
        }
    }
    expect_unpacked(laid, packed, laid->bytes);
    OBJ_RELEASE(convertor);
    poison(laid);
}

/* The pieces of memory in packed order, a few at a time, from a position on. */
static void list_pieces(const drawn *made, long count, const elements *laid) {
    if (laid->bytes > 4 * MOST_BYTES) {
        return;
    }
    opal_convertor_t *convertor = prepared(made, count, laid, (int)draw(0, 1));
    size_t position = laid->bytes > 0 && draw(0, 1) ? (size_t)draw(0, laid->bytes - 1) : 0;
    /* Open MPI's lists begin at basic elements; dtc's anywhere. */
    long at = (long)(position -= position % 16);
    if (made->bytes % 16 != 0 || position == 0) {
        at = (long)(position = 0);
    }
    opal_convertor_set_position(convertor, &position);
    at = (long)position;
    for (int done = laid->bytes == 0; !done;) {
        struct iovec iov[5];
        uint32_t pieces = (uint32_t)draw(1, 5), given = pieces;
        size_t length = 0;
        done = opal_convertor_raw(convertor, iov, &pieces, &length);
        if (done < 0 || pieces > given || (pieces == 0 && !done)) {
            END_CHECK("at %ld: expected 1 to %u pieces, found %u and %d", at, given, pieces, done);
        }
        for (uint32_t piece = 0; piece < pieces; piece++) {
            for (size_t byte = 0; byte < iov[piece].iov_len; byte++, at++) {
                long found = (unsigned char *)iov[piece].iov_base + byte - (unsigned char *)base(laid);
                if (at >= laid->bytes || found != laid->at[at]) {
                    END_CHECK("packed byte %ld of %ld: expected displacement %ld, found %ld", at, laid->bytes,
                              at < laid->bytes ? laid->at[at] : -1, found);
                }
            }
        }
        if (done != (at == laid->bytes)) {
            END_CHECK("expected the end at %ld, found %d at %ld", laid->bytes, done, at);
        }
    }
    OBJ_RELEASE(convertor);
}

/* Elements of one type into the same of another buffer, by the call that collectives make. */
static void copy(const drawn *made, long count, const elements *from, const unsigned char *packed) {
    if (from->repeats) {
        return;
    }
    elements to = lay_out(made, count, 0);
    opal_datatype_copy_content_same_ddt(described(made), (int32_t)count, base(&to), base(from));
    expect_unpacked(&to, packed, to.bytes);
    end(&to);
}

/* A message of elements of one type into elements of another, from rank 0 to rank 1 and back. */
static void send(const drawn *made, long count, const elements *laid, const drawn *other, long others, int freed) {
    checking = &checks[MESSAGE];
    if (strstr(wanted, words[MESSAGE]) == NULL || setjmp(next_check) != 0) {
        return;
    }
    elements received = lay_out(other, others, 0);
    if (laid->bytes > received.bytes || received.repeats) {
        end(&received);
        return;
    }
    unsigned char *packed = memory_of(laid->bytes);
    for (long at = 0; at < laid->bytes; at++) {
        packed[at] = expected(laid, at);
    }
    MPI_Request requests[2];
    MPI_Datatype sent, taken;
    MPI_Type_dup(made->type, &sent);
    MPI_Type_dup(other->type, &taken);
    MPI_Type_commit(&sent);
    MPI_Type_commit(&taken);
    MPI_Status status;
    int bytes;
    MPI_Irecv(base(&received), (int)others, taken, 1 - rank, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(base(laid), (int)count, sent, 1 - rank, 7, MPI_COMM_WORLD, &requests[1]);
    if (freed) {
        MPI_Type_free(&sent);
        MPI_Type_free(&taken);
    }
    MPI_Wait(&requests[0], &status);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (bytes != laid->bytes) {
        END_CHECK("expected %ld bytes, found %d", laid->bytes, bytes);
    }
    expect_unpacked(&received, packed, laid->bytes);
    if (!freed) {
        MPI_Type_free(&sent);
        MPI_Type_free(&taken);
    }
    free(packed);
    end(&received);
}

static void whole(const drawn *made, long count, elements *laid, const unsigned char *packed) {
    unsigned char *found = memory_of(laid->bytes);
    int position;
    /* The first call has a convertor. dtc serves the second without one. */
    for (int turn = 0; turn < 2; turn++) {
        position = 0;
        memset(found, 0, (size_t)laid->bytes);
        MPI_Pack(base(laid), (int)count, made->type, found, (int)laid->bytes, &position, MPI_COMM_WORLD);
        if (position != laid->bytes) {
            END_CHECK("MPI_Pack: expected %ld bytes, found %d", laid->bytes, position);
        }
        expect_packed(laid, found, 0, laid->bytes);
    }
    if (!laid->repeats) {
        poison(laid);
        position = 0;
        MPI_Unpack((void *)packed, (int)laid->bytes, &position, base(laid), (int)count, made->type, MPI_COMM_WORLD);
        expect_unpacked(laid, packed, laid->bytes);
    }
    free(found);
}

/* Everything that one process does with elements of a type. */
static void move(const drawn *made, long count, elements *laid) {
    unsigned char *packed = memory_of(laid->bytes);
    for (long at = 0; at < laid->bytes; at++) {
        packed[at] = expected(laid, at);
    }
    for (volatile int at = PACK; at <= UNPACK; at++) {
        checking = &checks[at];
        if (strstr(wanted, words[at]) == NULL || setjmp(next_check) != 0) {
            continue;
        }
        switch (at) {
        case PACK:
            pack_in_fragments(made, count, laid);
            break;
        case LIST:
            list_pieces(made, count, laid);
            break;
        case COPY:
            copy(made, count, laid, packed);
            break;
        case WHOLE:
            whole(made, count, laid, packed);
            break;
        default:
            poison(laid);
            unpack_out_of_order(made, count, laid, packed);
        }
    }
    free(packed);
}

int main(int argc, char **argv) {
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    long types = argc > 1 ? atol(argv[1]) : 500, messages = 0, repeating = 0, bytes = 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    wanted = argc > 3 ? argv[3] : wanted;
    for (int of_short = 0; of_short < 2; of_short++) {
        drawn named = pair(of_short);
        elements laid = lay_out(&named, 9, 1);
        move(&named, 9, &laid);
        end(&laid);
        free(named.at);
    }
    for (type_number = 0; type_number < types; type_number++) {
        /* Both ranks draw the same. */
        state = (seed << 32) + (uint64_t)type_number * 977;
        drawn made = node((int)draw(1, 5)), other = node((int)draw(1, 4));
        MPI_Type_commit(&made.type);
        MPI_Type_commit(&other.type);
        long count = draw(0, 4);
        if (draw(0, 9) == 0 && made.bytes > 0) {
            count = 1 + LARGE / made.bytes;
        }
        elements laid = lay_out(&made, count, 1 + (int)type_number);
        if (ranks == 2) {
            long others = other.bytes > 0 ? (laid.bytes + other.bytes - 1) / other.bytes : 1;
            send(&made, count, &laid, &made, count + draw(0, 1), (int)draw(0, 1));
            send(&made, count, &laid, &other, others, (int)draw(0, 1));
            messages += 2;
        }
        move(&made, count, &laid);
        repeating += laid.repeats;
        bytes += laid.bytes;
        end(&laid);
        release(&made);
        release(&other);
    }
    if (rank == 0) {
        printf("%ld types: %ld bytes, %ld with bytes that repeat, %ld messages\n", types, bytes, repeating, messages);
    }
    int failed = 0;
    for (int at = 0; at < CHECKS; at++) {
        if (checks[at].failures > 0) {
            printf("rank %d: %s: %ld failed\n", rank, checks[at].name, checks[at].failures);
            failed = 1;
        }
    }
    MPI_Finalize();
    return failed;
}
