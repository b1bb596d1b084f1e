// Shared memory of a block.
struct Shared {
    union {
{%- if wildcards != "none" %}
        Matrix matrix;
{%- endif %}
        Ranks ranks;
{%- if not ordering %}
        Tables tables;
{%- endif %}
{%- if serves %}
        Near near;
{%- endif %}
    };
    u32 totals[{{ threads // 32 }}];
{%- if checked %}
    u32 status;
{%- endif %}
{%- if wildcards != "none" %}
    u32 wildcards;
{%- endif %}
};

// Matches what is in the lists of a queue, and moves up what is left.
static __device__ __forceinline__ void match_queue(const Queue &queue, u32 messages, u32 receives, Shared &shared)
{
{%- if checked or wildcards != "none" %}
    if (threadIdx.x == 0) {
{%- if checked %}
        shared.status = 0;
{%- endif %}
{%- if wildcards != "none" %}
        shared.wildcards = 0;
{%- endif %}
    }
    __syncthreads();
{%- endif %}
    // No receive has a message yet.
    for (u32 at = threadIdx.x; at < receives; at += {{ threads }}) {
        queue.pairs[at] = make_uint2(queue.receive_handles[at], NONE);
{%- if wildcards != "none" or checked %}
        const u64 pattern = queue.receives[at];
{%- endif %}
{%- if wildcards != "none" %}
        if ((((u32)(pattern >> 32) | (u32)pattern) & ANY) != 0)
            atomicOr(&shared.wildcards, 1u);
{%- endif %}
{%- if checked %}
        if (forbidden(pattern))
            atomicOr(&shared.status, WILDCARD);
{%- endif %}
    }
{%- if checked and not ordering %}
    for (u32 at = threadIdx.x; at < messages; at += {{ threads }}) {
        if (out_of_range(queue.messages[at]))
            atomicOr(&shared.status, RANGE);
    }
{%- endif %}
    __syncthreads();

{%- if not ordering %}
{%- if checked %}
    // A queue with faults is left alone.
    u32 kept = shared.status != 0 ? messages : match_hash(queue, messages, receives, shared.tables);
{%- else %}
    u32 kept = match_hash(queue, messages, receives, shared.tables);
{%- endif %}
    const bool by_ranks = kept == REPEATED;
    if (by_ranks) {
        // All threads have read the tables, whose memory the ranks take.
        __syncthreads();
        kept = match_ranks(queue, messages, receives, shared.ranks{% if checked %}, shared.status{% endif %});
    }
{%- elif wildcards == "none" %}
    const u32 kept = match_ranks(queue, messages, receives, shared.ranks{% if checked %}, shared.status{% endif %});
{%- else %}
    const u32 kept = shared.wildcards != 0 ? match_matrix(queue, messages, receives, shared.matrix{% if checked %}, shared.status{% endif %})
                                           : match_ranks(queue, messages, receives, shared.ranks{% if checked %}, shared.status{% endif %});
{%- endif %}
    const u32 matched = messages - kept;
    __syncthreads();
{%- if not ordering and (unexpected or checked) %}
    if (!by_ranks && matched != 0 && kept != 0)
        compact(queue.messages, queue.message_handles, messages, shared.totals, [&](u32 at) { return queue.messages[at] != TAKEN; });
{%- endif %}
    if (matched != 0 && matched != receives)
        compact(queue.receives, queue.receive_handles, receives, shared.totals, [&](u32 at) { return queue.pairs[at].y == NONE; });
    if (threadIdx.x == 0) {
        queue.header->messages = {% if unexpected or checked %}kept{% else %}0{% endif %};
        queue.header->receives = receives - matched;
        queue.header->matched = matched;
        queue.header->examined = receives;
        queue.header->status = {% if checked %}shared.status{% if not unexpected %} | (kept != 0 ? UNEXPECTED : 0){% endif %}{% else %}0{% endif %};
    }
}
