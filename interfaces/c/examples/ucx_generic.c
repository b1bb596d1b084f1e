/*
 * A generic datatype of UCX over libdtc: the callbacks pack into and unpack from the buffers of the transport, fragment by
 * fragment. Two processes: one sends a column of a matrix, the other receives it into a column of its own.
 */
#include "check.h"
#include <string.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

/* What start hands to the other callbacks. There is no cursor: fragments may come in any order. */
typedef struct {
    const dtc_type *type;
    void *buffer;
    int64_t count;
} operation;

static void *start(void *context, void *buffer, size_t count) {
    operation *state = malloc(sizeof *state);
    EXPECT(state != NULL);
    *state = (operation){context, buffer, (int64_t)count};
    return state;
}

static void *start_pack(void *context, const void *buffer, size_t count) {
    return start(context, (void *)buffer, count);
}

static size_t packed_size(void *state) {
    const operation *asked = state;
    dtc_info info = DTC_INFO_INIT;
    CALL(dtc_type_query(asked->type, &info));
    return (size_t)(asked->count * info.packed_size);
}

static size_t pack(void *state, size_t offset, void *packed, size_t max) {
    const operation *asked = state;
    int64_t done;
    int status = dtc_pack(asked->type, asked->buffer, asked->count, (int64_t)offset, packed, (int64_t)max, &done, NULL);
    return status == DTC_OK ? (size_t)done : 0;
}

static ucs_status_t unpack(void *state, size_t offset, const void *packed, size_t length) {
    const operation *asked = state;
    int status = dtc_unpack(asked->type, asked->buffer, asked->count, (int64_t)offset, packed, (int64_t)length, NULL, NULL);
    return status == DTC_OK ? UCS_OK : UCS_ERR_INVALID_PARAM;
}

static const ucp_generic_dt_ops_t callbacks = {start_pack, start, packed_size, pack, unpack, free};

/* Large enough for a rendezvous in many fragments. */
enum { ROWS = 200000, COLUMNS = 5 };

static void exchange_all(int descriptor, void *bytes, size_t length, int writing) {
    for (char *at = bytes; length > 0;) {
        ssize_t moved = writing ? write(descriptor, at, length) : read(descriptor, at, length);
        EXPECT(moved > 0);
        at += moved;
        length -= (size_t)moved;
    }
}

static void wait_for(ucp_worker_h worker, ucs_status_ptr_t request) {
    EXPECT(!UCS_PTR_IS_ERR(request));
    if (request != NULL) {
        while (ucp_request_check_status(request) == UCS_INPROGRESS) {
            ucp_worker_progress(worker);
        }
        EXPECT(ucp_request_check_status(request) == UCS_OK);
        ucp_request_free(request);
    }
}

static void run(int sends, int in, int out) {
    ucp_params_t parameters = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_worker_params_t worker_parameters = {0};
    EXPECT(ucp_init(&parameters, NULL, &context) == UCS_OK);
    EXPECT(ucp_worker_create(context, &worker_parameters, &worker) == UCS_OK);

    /* Each tells the other its address over a pipe. */
    ucp_address_t *own;
    size_t length, other_length;
    EXPECT(ucp_worker_get_address(worker, &own, &length) == UCS_OK);
    exchange_all(out, &length, sizeof length, 1);
    exchange_all(out, own, length, 1);
    ucp_worker_release_address(worker, own);
    exchange_all(in, &other_length, sizeof other_length, 0);
    void *other = malloc(other_length);
    exchange_all(in, other, other_length, 0);
    ucp_ep_params_t endpoint_parameters = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = other};
    ucp_ep_h endpoint;
    EXPECT(ucp_ep_create(worker, &endpoint_parameters, &endpoint) == UCS_OK);

    dtc_engine *engine;
    dtc_type *element, *column;
    CALL(dtc_init(NULL, &engine));
    CALL(dtc_type_named(engine, "MPI_DOUBLE", &element));
    int64_t numbers[] = {ROWS, 1, COLUMNS};
    const dtc_type *children[] = {element};
    CALL(dtc_type_create(engine, DTC_COMBINER_VECTOR, numbers, 3, NULL, 0, children, 1, NULL, &column));
    CALL(dtc_type_commit(column, 0));
    ucp_datatype_t datatype;
    EXPECT(ucp_dt_create_generic(&callbacks, column, &datatype) == UCS_OK);

    double *matrix = calloc(ROWS * COLUMNS, sizeof(double));
    ucp_request_param_t with = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE, .datatype = datatype};
    char done = 0;
    if (sends) {
        for (int row = 0; row < ROWS; row++) {
            matrix[row * COLUMNS + 2] = row + 0.5;
        }
        wait_for(worker, ucp_tag_send_nbx(endpoint, matrix + 2, 1, 7, &with));
        exchange_all(in, &done, 1, 0);
    } else {
        wait_for(worker, ucp_tag_recv_nbx(worker, matrix + 4, 1, 7, (ucp_tag_t)-1, &with));
        for (int row = 0; row < ROWS; row++) {
            EXPECT(matrix[row * COLUMNS + 4] == row + 0.5 && matrix[row * COLUMNS + 3] == 0);
        }
        exchange_all(out, &done, 1, 1);
    }

    ucp_dt_destroy(datatype);
    wait_for(worker, ucp_ep_close_nb(endpoint, UCP_EP_CLOSE_MODE_FLUSH));
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
    free(matrix);
    free(other);
    CALL(dtc_type_release(element));
    CALL(dtc_type_release(column));
    CALL(dtc_finalize(engine));
}

int main(void) {
    int forth[2], back[2], status;
    EXPECT(pipe(forth) == 0 && pipe(back) == 0);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        run(0, forth[0], back[1]);
        return 0;
    }
    run(1, back[0], forth[1]);
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    printf("ucx_generic: a column of %d doubles between two processes\n", ROWS);
    return 0;
}
