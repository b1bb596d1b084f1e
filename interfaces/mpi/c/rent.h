/*
 * When a datatype is decoded: once its uses have cost the MPI what decoding costs, so that one that is used once, or for a few bytes, costs next
 * to nothing, and one that is used often is decoded early enough. (The rule of ski rental: at most twice the cost of the better choice, had
 * the uses been known. Karlin, Manasse, Rudolph and Sleator, Competitive snoopy caching, Algorithmica 3, 1988.)
 *
 * What a use costs is estimated from its bytes, at what the MPI loses on pieces that are just short enough for dtc (profit.h).
 */
#ifndef DTC_MPI_RENT_H
#define DTC_MPI_RENT_H

/* Nanoseconds that decoding takes: at least, for an entry of a list, and for a member of a structure (bench/results/2026-11-26-mpi-first-uses.md). */
enum { PRICE_LEAST = 2700, PRICE_OF_ENTRY = 70, PRICE_OF_MEMBER = 200 };

/* How many times as much the uses of a datatype must have cost whose elements may be contiguous: most are, and are left to the MPI. Others
   transpose. */
enum { PRICE_OF_DENSE = 8 };

/* A datatype that is never decoded. */
static const int64_t PRICELESS = INT64_MAX;

/* Whether elements have as many bytes as they reach over. */
static int may_be_contiguous(MPI_Datatype datatype, int64_t size)
{
    MPI_Count lb = 0, extent = 0, true_lb = 0, true_extent = 0;
    int known = PMPI_Type_get_extent_x(datatype, &lb, &extent) == MPI_SUCCESS &&
                PMPI_Type_get_true_extent_x(datatype, &true_lb, &true_extent) == MPI_SUCCESS;
    return known && extent == size && true_extent == size;
}

/* Bytes of the pieces of a contiguous datatype or a vector of predefined elements; 0 if that is unknown. */
static int64_t piece_of(MPI_Datatype datatype, const dtc_mpi_envelope *envelope)
{
    int integers[3];
    MPI_Aint addresses[1];
    MPI_Datatype child;
    MPI_Count counts[1], size = 0;
    int contiguous = envelope->combiner == MPI_COMBINER_CONTIGUOUS;
    int vector = envelope->combiner == MPI_COMBINER_VECTOR || envelope->combiner == MPI_COMBINER_HVECTOR;
    if (!(contiguous || vector) || envelope->n_counts || envelope->n_integers > 3 || envelope->n_addresses > 1 || envelope->n_types != 1) return 0;
    if (PMPI_Type_get_contents_c(datatype, envelope->n_integers, envelope->n_addresses, 0, 1, integers, addresses, counts, &child) != MPI_SUCCESS)
        return 0;
    int is_predefined = dtc_mpi_is_predefined(dtc_mpi_get_envelope(child).combiner);
    if (is_predefined) PMPI_Type_size_x(child, &size);
    dtc_mpi_free_handle(child);
    return size * (contiguous ? INT32_MAX : integers[1]);
}

/* What decoding costs, in nanoseconds. */
static int64_t price_of(MPI_Datatype datatype, int64_t size)
{
    dtc_mpi_envelope envelope = dtc_mpi_get_envelope(datatype);
    int64_t entries = envelope.n_integers > envelope.n_addresses ? envelope.n_integers : envelope.n_addresses;
    int64_t price = PRICE_LEAST + PRICE_OF_ENTRY * (entries > envelope.n_counts ? entries : envelope.n_counts) + PRICE_OF_MEMBER * envelope.n_types;
    if (piece_of(datatype, &envelope) > limits.longest_piece) return PRICELESS;
    return may_be_contiguous(datatype, size) ? PRICE_OF_DENSE * price : price;
}

/* Decodes a datatype, if the MPI accepts it, which it says by a send to no process; if not, `refused` is its error, which it has told. Null if dtc
   cannot decode it, or if another thread is decoding one. */
static struct plan *plan_buy(struct remembered *place, MPI_Datatype datatype, MPI_Comm communicator, int *refused)
{
    if (!is_ready()) return NULL;
    *refused = PMPI_Send(NULL, 0, datatype, MPI_PROC_NULL, 0, communicator);
    if (*refused != MPI_SUCCESS) return NULL;
    plan_make(datatype);
    recall_anew(place, datatype);
    return place->plan;
}

/* The plan of a datatype of elements that the MPI cannot be given, or that has many uses to come: decoded now if it is not. Null if it is
   predefined, or cannot be decoded. */
static struct plan *plan_now(MPI_Datatype datatype, MPI_Comm communicator, int *refused)
{
    if (datatype == MPI_DATATYPE_NULL) return NULL;
    struct remembered *place = recall(datatype);
    return place->is == NOT_DECODED ? plan_buy(place, datatype, communicator, refused) : place->plan;
}

/* Decodes the datatype of a persistent request, whose first use decides how all of its messages go; returns the error of the MPI, which it has
   told. */
static int decode_first(int64_t elements, MPI_Datatype datatype, int rank, MPI_Comm communicator)
{
    int refused = MPI_SUCCESS;
    MPI_Count size = 0;
    if (elements <= 0 || rank == MPI_PROC_NULL || communicator == MPI_COMM_NULL || datatype == MPI_DATATYPE_NULL) return MPI_SUCCESS;
    int on_host = place_of(NULL).device < 0;
    if (on_host && (PMPI_Type_size_x(datatype, &size) != MPI_SUCCESS || size * (MPI_Count)elements < limits.least)) return MPI_SUCCESS;
    plan_now(datatype, communicator, &refused);
    return refused;
}

/* The same for elements that the processor reaches, if the datatype is not known to be decoded or predefined: null also as long as it is not decoded.
   A use of fewer than `least` bytes is not counted. */
static __attribute__((noinline)) struct plan *plan_rent(int64_t elements, MPI_Datatype datatype, int64_t least, MPI_Comm communicator,
                                                        int *refused)
{
    MPI_Count size = 0;
    int64_t bytes;
    if (datatype == MPI_DATATYPE_NULL || PMPI_Type_size_x(datatype, &size) != MPI_SUCCESS) return NULL;
    if (__builtin_mul_overflow(elements, size, &bytes) || bytes < least) return NULL;
    struct remembered *place = recall(datatype);
    if (place->is != NOT_DECODED) return place->plan;
    if (limits.leaves_whole) {
        place->paid += (bytes < LARGEST_MESSAGE ? bytes : LARGEST_MESSAGE) * limits.lost / 1000;
        if (place->paid < PRICE_LEAST) return NULL;
        if (!place->price) place->price = price_of(datatype, size);
        if (place->paid < place->price) return NULL;
    }
    return plan_buy(place, datatype, communicator, refused);
}

static inline struct plan *plan_of_use(int64_t elements, MPI_Datatype datatype, int64_t least, MPI_Comm communicator, int *refused)
{
    const struct remembered *place = place_of_handle(datatype);
    if (__builtin_expect(is_recalled(place, datatype) && place->is != NOT_DECODED, 1)) return place->plan;
    return plan_rent(elements, datatype, least, communicator, refused);
}

#endif
