{% set next = 32 if prefetched else threads -%}
{% if combined -%}
// Elements at places that the tables of the call lead to, combined with packed ones. Those of entries that are none are skipped.
{% else -%}
// Words from place to place, aligned in both and in the packed bytes. Places that the tables of the call lead to are skipped where an
// entry is none.
{%- if prefetched %} Sectors that are stored in part are read: early, and not store by store. A warp's words are neighbours.{% endif %}
{% endif -%}
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const Tabled &call, u32 block)
{
    typedef {{ word_type }} word;
    const u64 last = first + bytes;
    const index begin = (index)((first + {{ word - 1 }}) / {{ word }}), end = (index)(last / {{ word }});
{%- if copy %}
    // From words of the source to words of the target.
    const index ahead = (index)((i64)(call.words[0] - first) / {{ word }});
{%- endif %}
{%- if word > 1 %}

    if (block == 0 && (first | bytes) % {{ word }} != 0) {
        // One thread for each byte of the words that the call cuts, which may be the same one.
        const u64 head = min((u64)begin * {{ word }} - first, bytes), tail = end < begin ? 0 : last % {{ word }};
        if (threadIdx.x < head + tail) {
            const u64 position = threadIdx.x < head ? first + threadIdx.x : last - tail + (threadIdx.x - head);
            u64 from, to;
            if (places(memory, packed, tables, first, call, (index)(position / {{ word }}){% if copy %}, ahead{% endif %}, from, to))
                *(u8 *)(to + position % {{ word }}) = *(const u8 *)(from + position % {{ word }});
        }
    }
    if (end <= begin)
        return;
{%- endif %}

    const index words = end - begin;
    const index base = (index)block * {{ threads * unroll }} + {% if prefetched %}threadIdx.x / 32 * {{ 32 * unroll }} + threadIdx.x % 32{% else %}threadIdx.x{% endif %};
    // All loads are under way before the first store.
{%- if combined %}
    Value mine[{{ unroll }}], value[{{ unroll }}];
{%- else %}
    word value[{{ unroll }}];
{%- endif %}
    u64 target_of[{{ unroll }}];
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index at = base + step * {{ next }};
        u64 from, to;
        target_of[step] = 0;
        if (at < words && places(memory, packed, tables, first, call, begin + at{% if copy %}, ahead{% endif %}, from, to)) {
{%- if combined %}
            value[step] = load_value((const u8 *)from, {{ word }});
            mine[step] = load_value((const u8 *)to, {{ word }});
{%- else %}
            value[step] = __ldg((const word *)from);
{%- endif %}
            target_of[step] = to;
        }
    }
{%- if prefetched %}
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++)
        prefetch_ends((const u8 *)target_of[step], {{ word }});
{%- endif %}
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        if (target_of[step] != 0)
{%- if combined %}
            store_value((u8 *)target_of[step], combine(Operation::{{ operation }}, Element::{{ element }}, {{ word }}, mine[step], value[step]), {{ word }});
{%- else %}
            *(word *)target_of[step] = value[step];
{%- endif %}
    }
}
