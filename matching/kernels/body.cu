// Shared memory of a block.
struct Shared {
    union {
{%- if wildcards != "none" %}
        Matrix matrix;
{%- if has_classes %}
        Classes classes;
{%- endif %}
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
    // A bit for each kind of pattern that a receive has.
    u32 kinds;
{%- if has_classes %}
    // Those of the first {{ threads }} receives that have a wildcard.
    u32 wild;
{%- endif %}
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
        shared.kinds = 0;
{%- if has_classes %}
        shared.wild = 0;
{%- endif %}
{%- endif %}
    }
    __syncthreads();
{%- endif %}
{%- if wildcards != "none" %}
    u32 kinds = 0;
{%- if has_classes %}
    bool wild = false;
{%- endif %}
{%- endif %}
    // No receive has a message yet.
    for (u32 at = threadIdx.x; at < receives; at += {{ threads }}) {
        queue.pairs[at] = make_uint2(queue.receive_handles[at], NONE);
{%- if wildcards != "none" or checked %}
        const u64 pattern = queue.receives[at];
{%- endif %}
{%- if wildcards != "none" %}
        kinds |= 1u << kind_of(pattern);
{%- if has_classes %}
        wild |= at < {{ threads }} && kind_of(pattern) != 0;
{%- endif %}
{%- endif %}
{%- if checked %}
        if (forbidden(pattern))
            atomicOr(&shared.status, WILDCARD);
{%- endif %}
    }
{%- if wildcards != "none" %}
    for (u32 kind = 0; kind < {{ 4 if wildcards == "both" else 2 }}; kind++) {
        if (__any_sync(~0u, (int)(kinds >> kind & 1)) && threadIdx.x % 32 == 0)
            atomicOr(&shared.kinds, 1u << kind);
    }
{%- if has_classes %}
    const u32 wilds = __ballot_sync(~0u, wild);
    if (wilds != 0 && threadIdx.x % 32 == 0)
        atomicAdd(&shared.wild, (u32)__popc(wilds));
{%- endif %}
{%- endif %}
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
    u32 kept = 0;
    if (shared.kinds <= 1) {
        kept = match_ranks(queue, messages, receives, shared.ranks{% if checked %}, shared.status{% endif %});
    } else {
{%- if has_classes %}
        u32 start = 0;
        const bool tries = (u64)messages * receives > {{ compared }} && shared.wild * {{ rare }} <= min(receives, {{ threads }}u);
        if (tries)
            kept = match_classes(queue, messages, receives, shared.kinds, start, shared.totals, shared.classes{% if checked %}, shared.status{% endif %});
        if (start < messages)
            kept = match_matrix(queue, start, kept, tries ? shared.totals : nullptr, messages, receives, shared.matrix{% if checked %}, shared.status{% endif %});
{%- else %}
        kept = match_matrix(queue, 0, 0, nullptr, messages, receives, shared.matrix{% if checked %}, shared.status{% endif %});
{%- endif %}
    }
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
