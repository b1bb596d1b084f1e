// Groups: a block has the packed bytes of up to {{ groups }} groups of {{ size }} bytes in shared memory. Its lanes go through the {{ words }} words of one
// group after the other, in the order of memory, so that they use whole sectors.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
{%- if pool %}
    uint4 *const stage = {{ pool }};
{%- else %}
    __shared__ uint4 stage[{{ shared // 16 }}];
{%- endif %}
    // Where groups lie in memory; and of every word of a group where it lies there, where it is packed, and how wide it is.
    i64 *const bases = (i64 *)(stage + {{ stage_bytes // 16 }});
    uint2 *const words = (uint2 *)(bases + {{ groups }});
    const u64 last = first + bytes;
    const index begin = (index)((first + {{ size - 1 }}) / {{ size }}), end = (index)(last / {{ size }});

    if (block == 0) {
        // The bytes of the groups that the call cuts, which may be the same one.
        const u64 head = min((u64)begin * {{ size }} - first, bytes), tail = end < begin ? 0 : last % {{ size }};
        for (u64 at = threadIdx.x; at < head + tail; at += {{ threads }}) {
            const u64 position = at < head ? first + at : last - tail + (at - head);
            u8 *byte = memory + place({{ context }}tables, (index)position);
            {% if pack %}packed[position - first] = *byte{% else %}*byte = packed[position - first]{% endif %};
        }
    }
    const index group = begin + (index)block * {{ groups }};
    if (group >= end)
        return;

    const u32 count = (u32)min((index){{ groups }}, end - group), all = count * {{ words }};
    // The tile lies in shared memory as it does among the packed bytes, where it may begin inside a line.
    const u32 head = (u32)(u64)(packed + ((u64)group * {{ size }} - first)) & 15, until = head + count * {{ size }};
    u8 *const lines = packed + ((u64)group * {{ size }} - first) - head;
    const auto whole = [&](u32 at) { return at * 16 >= head && at * 16 + 16 <= until; };
{%- if not pack %}
    uint4 line[{{ rounds }}];
#pragma unroll
    for (u32 round = 0; round < {{ rounds }}; round++) {
        const u32 at = round * {{ threads }} + threadIdx.x;
        if (whole(at))
            line[round] = __ldcs((const uint4 *)lines + at);
    }
{%- endif %}
    for (u32 at = threadIdx.x; at < {{ words }}; at += {{ threads }})
        words[at] = __ldg((const uint2 *)(tables + {{ list }}) + at);
    for (u32 at = threadIdx.x; at < count; at += {{ threads }})
        bases[at] = outer({{ context }}tables, group + at);
    __syncthreads();
{%- if pack %}
{%- if checked %}

    // Words around the runs may reach out of the memory of the call.
    const u8 *const lowest = memory + call.low, *const highest = memory + call.high - {{ widest }};
{%- endif %}
    for (u32 from = threadIdx.x; from < all; from += {{ threads * rounds }}) {
        // All loads are under way before the first store.
        {{ word_type }} value[{{ rounds }}];
        u32 to[{{ rounds }}];
#pragma unroll
        for (u32 round = 0; round < {{ rounds }}; round++) {
            const u32 at = from + round * {{ threads }}, its = at / {{ words }};
            if (at >= all)
                continue;
            const uint2 word = words[at - its * {{ words }}];
            const u8 *const place_of = memory + (bases[its] + (int)word.x);
            to[round] = head + its * {{ size }} + word.y;
{%- if checked %}
            if ((i64)place_of < (i64)lowest || (i64)place_of > (i64)highest) {
                value[round] = 0;
                for (u32 byte = word.y >> 24; byte < (word.y >> 24) + (word.y >> 16 & 255); byte++)
                    value[round] |= ({{ word_type }})place_of[byte] << 8 * byte;
                continue;
            }
{%- endif %}
            value[round] = __ldg((const {{ word_type }} *)place_of);
        }
#pragma unroll
        for (u32 round = 0; round < {{ rounds }}; round++) {
            if (from + round * {{ threads }} >= all)
                continue;
{%- if shifts %}
            value[round] >>= 8 * (to[round] >> 24);
{%- endif %}
            {{ part_type }} *const target = ({{ part_type }} *)((u8 *)stage + (to[round] & 0xffff));
{%- for its in parts %}
            {% if mixed and not loop.first %}if ({{ its.at }} < (to[round] >> 16 & 255))
                {% endif %}target[{{ loop.index0 }}] = {% if divided %}({{ part_type }})(value[round] >> {{ its.shift }}){% else %}value[round]{% endif %};
{%- endfor %}
        }
    }
    __syncthreads();

    for (u32 at = threadIdx.x; at * 16 < until; at += {{ threads }}) {
        if (whole(at)) {
            ((uint4 *)lines)[at] = stage[at];
        } else {
            for (u32 byte = max(at * 16, head); byte < min(at * 16 + 16, until); byte++)
                lines[byte] = ((const u8 *)stage)[byte];
        }
    }
{%- else %}
{%- if prefetched %}
    // Sectors that are stored in part are read: early, and not store by store.
    for (u32 at = threadIdx.x; at < all; at += {{ threads }})
        prefetch(memory + (bases[at / {{ words }}] + (int)words[at % {{ words }}].x));
{%- endif %}
#pragma unroll
    for (u32 round = 0; round < {{ rounds }}; round++) {
        const u32 at = round * {{ threads }} + threadIdx.x;
        if (whole(at)) {
            stage[at] = line[round];
        } else {
            for (u32 byte = max(at * 16, head); byte < min(at * 16 + 16, until); byte++)
                ((u8 *)stage)[byte] = lines[byte];
        }
    }
    __syncthreads();

#pragma unroll 4
    for (u32 at = threadIdx.x; at < all; at += {{ threads }}) {
        const u32 its = at / {{ words }};
        const uint2 word = words[at - its * {{ words }}];
        u8 *const place_of = memory + (bases[its] + (int)word.x);
        const u32 from = head + its * {{ size }} + (word.y & 0xffff);
{%- if part >= widest %}
        const {{ word_type }} value = *(const {{ part_type }} *)((const u8 *)stage + from);
{%- else %}
        const u32 *const around = (const u32 *)stage + from / 4;
{%- if part == 4 %}
        const u64 value = around[0] | (u64)around[1] << 32;
{%- elif widest <= 4 %}
        const u32 value = __funnelshift_r(around[0], around[1], 8 * (from & 3));
{%- else %}
        const u32 low = __funnelshift_r(around[0], around[1], 8 * (from & 3));
        const u64 value = low | (u64)__funnelshift_r(around[1], around[2], 8 * (from & 3)) << 32;
{%- endif %}
{%- endif %}
{%- for width in widths %}
        {% if mixed %}if (word.y >> 16 == {{ width.log }})
            {% endif %}*({{ width.type }} *)place_of = {% if mixed or part < widest %}({{ width.type }}){% endif %}value;
{%- endfor %}
    }
{%- endif %}
}
