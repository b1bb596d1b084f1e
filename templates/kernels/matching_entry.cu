extern "C" __global__ void __launch_bounds__({{ threads }})
dtc_match(u8 *queues, u8 *matches, const u8 *, u64 capacity, u64 stride)
{
    __shared__ union {
{%- if wildcards != "none" %}
        Matrix matrix;
{%- endif %}
{%- if ordering %}
        Ranks ranks;
{%- else %}
        Tables tables;
{%- endif %}
    } shared;
    __shared__ u32 totals[{{ threads // 32 }}];
{%- if checked %}
    __shared__ u32 status;
{%- endif %}
{%- if wildcards != "none" %}
    __shared__ u32 wildcards;
{%- endif %}

    const Queue queue = queue_of(queues, matches, capacity, stride);
    const u32 messages = queue.header->messages, receives = queue.header->receives;
    if (messages > capacity || receives > capacity) {
        if (threadIdx.x == 0) {
            queue.header->matched = queue.header->examined = 0;
            queue.header->status = OVERFLOWN;
        }
        return;
    }
{%- if checked or wildcards != "none" %}
    if (threadIdx.x == 0) {
{%- if checked %}
        status = 0;
{%- endif %}
{%- if wildcards != "none" %}
        wildcards = 0;
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
            atomicOr(&wildcards, 1u);
{%- endif %}
{%- if checked %}
        if (forbidden(pattern))
            atomicOr(&status, WILDCARD);
{%- endif %}
    }
{%- if checked and not ordering %}
    for (u32 at = threadIdx.x; at < messages; at += {{ threads }}) {
        if (out_of_range(queue.messages[at]))
            atomicOr(&status, RANGE);
    }
{%- endif %}
    __syncthreads();

{%- if not ordering %}
{%- if checked %}
    // Then the queue is left alone.
    const u32 kept = status != 0 ? messages : match_hash(queue, messages, receives, shared.tables);
{%- else %}
    const u32 kept = match_hash(queue, messages, receives, shared.tables);
{%- endif %}
{%- elif wildcards == "none" %}
    const u32 kept = match_ranks(queue, messages, receives, shared.ranks{% if checked %}, status{% endif %});
{%- else %}
    const u32 kept = wildcards != 0 ? match_matrix(queue, messages, receives, shared.matrix{% if checked %}, status{% endif %})
                                    : match_ranks(queue, messages, receives, shared.ranks{% if checked %}, status{% endif %});
{%- endif %}
    const u32 matched = messages - kept;
    __syncthreads();
{%- if not ordering and (unexpected or checked) %}
    if (matched != 0 && kept != 0)
        compact(queue.messages, queue.message_handles, messages, totals, [&](u32 at) { return queue.messages[at] != TAKEN; });
{%- endif %}
    if (matched != 0 && matched != receives)
        compact(queue.receives, queue.receive_handles, receives, totals, [&](u32 at) { return queue.pairs[at].y == NONE; });
    if (threadIdx.x == 0) {
        queue.header->messages = {% if unexpected or checked %}kept{% else %}0{% endif %};
        queue.header->receives = receives - matched;
        queue.header->matched = matched;
        queue.header->examined = receives;
        queue.header->status = {% if checked %}status{% if not unexpected %} | (kept != 0 ? UNEXPECTED : 0){% endif %}{% else %}0{% endif %};
    }
}
