/* I/O vectors in pieces, and flattened types in another process. */
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

static void pieces(yaksa_type_t type)
{
    enum { COUNT = 5 };
    uintptr_t length, written, bytes, fitting;
    DO(yaksa_iov_len(COUNT, type, &length));
    struct iovec *all = calloc(length, sizeof(*all)), piece[7];
    DO(yaksa_iov(NULL, COUNT, type, 0, all, length, &written));
    CHECK(written == length);
    for (uintptr_t max = 1; max <= 7; max++) {
        for (uintptr_t at = 0; at < length; at += written) {
            DO(yaksa_iov(NULL, COUNT, type, at, piece, max, &written));
            CHECK(written == (length - at < max ? length - at : max));
            CHECK(memcmp(piece, all + at, written * sizeof(*piece)) == 0);
        }
    }
    DO(yaksa_iov(NULL, COUNT, type, length, piece, 7, &written));
    CHECK(written == 0);
    DO(yaksa_iov(NULL, COUNT, type, 0, NULL, 0, &written));
    CHECK(written == 0);
    DO(yaksa_iov_len_max(COUNT, type, UINTPTR_MAX, &fitting, &bytes));
    CHECK(fitting == length && bytes == COUNT * size_of(type));
    DO(yaksa_iov_len_max(COUNT, type, all[0].iov_len + all[1].iov_len + all[2].iov_len - 1, &fitting, &bytes));
    CHECK(fitting == 2 && bytes == all[0].iov_len + all[1].iov_len);
    free(all);
}

/* The child makes the type, the parent uses it. */
static void across_processes(void)
{
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        yaksa_type_t type = mixed_type();
        uintptr_t size;
        DO(yaksa_flatten_size(type, &size));
        char *flat = malloc(size + 1);
        DO(yaksa_flatten(type, flat));
        CHECK(write(pipes[1], &size, sizeof(size)) == sizeof(size));
        CHECK(write(pipes[1], flat, size) == (ssize_t) size);
        _exit(0);
    }
    uintptr_t size, again;
    int status;
    CHECK(read(pipes[0], &size, sizeof(size)) == sizeof(size));
    /* MPICH places it anywhere. */
    char *flat = malloc(size + 1);
    CHECK(read(pipes[0], flat + 1, size) == (ssize_t) size);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    yaksa_type_t type, same = mixed_type();
    DO(yaksa_unflatten(&type, flat + 1));
    DO(yaksa_flatten_size(type, &again));
    CHECK(again == size && size_of(type) == size_of(same));
    intptr_t lb, extent, true_lb, true_extent;
    DO(yaksa_type_get_extent(same, &lb, &extent));
    DO(yaksa_type_get_true_extent(same, &true_lb, &true_extent));
    CHECK(has_bounds(type, lb, extent, true_lb, true_extent));
    static unsigned char memory[MIXED_BEFORE + MIXED_BYTES], packed[2][1024];
    for (size_t at = 0; at < sizeof(memory); at++)
        memory[at] = (unsigned char) (at * 13 + at / 241);
    uintptr_t actual;
    DO(yaksa_pack(memory + MIXED_BEFORE, 1, type, 0, packed[0], 1024, &actual, NULL, YAKSA_OP__REPLACE));
    DO(yaksa_pack(memory + MIXED_BEFORE, 1, same, 0, packed[1], 1024, &actual, NULL, YAKSA_OP__REPLACE));
    CHECK(actual == size_of(type) && memcmp(packed[0], packed[1], actual) == 0);
    DO(yaksa_type_free(type));
    DO(yaksa_type_free(same));
    flat[1] ^= 1;
    CHECK(yaksa_unflatten(&type, flat + 1) == YAKSA_ERR__INTERNAL);
    free(flat);
}

static void hints(void)
{
    yaksa_info_t info;
    DO(yaksa_info_create(&info));
    CHECK(yaksa_info_keyval_append(info, "yaksa_gpu_driver", "ze", 3) == YAKSA_ERR__NOT_SUPPORTED);
    CHECK(yaksa_info_keyval_append(info, "yaksa_hip_inbuf_ptr_attr", "x", 1) == YAKSA_ERR__NOT_SUPPORTED);
    DO(yaksa_info_keyval_append(info, "yaksa_gpu_driver", "cuda", 5));
    DO(yaksa_info_keyval_append(info, "yaksa_seq_iov_pack_threshold", (const void *) 16384, sizeof(uintptr_t)));
    DO(yaksa_info_keyval_append(info, "something else", NULL, 0));
    DO(yaksa_info_free(info));
    CHECK(yaksa_info_create(NULL) == YAKSA_ERR__INTERNAL);
}

int main(void)
{
    DO(yaksa_init(NULL));
    yaksa_type_t type = mixed_type();
    pieces(type);
    DO(yaksa_type_free(type));
    across_processes();
    hints();
    DO(yaksa_finalize());
    return 0;
}
