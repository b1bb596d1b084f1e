{% set next = 32 if prefetched else threads -%}
// Words: packed word `at` is the memory word at place(at), aligned on both sides.
{%- if streamed %} Stores leave the cache to memory.{% endif %}
{%- if prefetched %} Sectors that are stored in part are read: early, and not store by store. A warp's words are neighbours.{% endif %}
{%- if cut %} The call may cut its first and last word.{% endif %}
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    typedef {{ word_type }} word;
    const u64 last = first + bytes;
    const index begin = (index)((first + {{ word - 1 }}) / {{ word }}), end = (index)(last / {{ word }});
{%- if cut and word > 1 %}

    if (block == 0 && (first | bytes) % {{ word }} != 0) {
        // One thread for each byte of the words that the call cuts, which may be the same one.
        const u64 head = min((u64)begin * {{ word }} - first, bytes), tail = end < begin ? 0 : last % {{ word }};
        if (threadIdx.x < head + tail) {
            const u64 position = threadIdx.x < head ? first + threadIdx.x : last - tail + (threadIdx.x - head);
            u8 *byte = memory + place({{ context }}tables, (index)(position / {{ word }})) + position % {{ word }};
            {% if pack %}packed[position - first] = *byte{% else %}*byte = packed[position - first]{% endif %};
        }
    }
    if (end <= begin)
        return;
{%- endif %}

    const index words = end - begin;
    word *aligned = (word *)(packed + ((u64)begin * {{ word }} - first));
{%- if cut and pack %}
    // Warps begin at lines of the packed bytes; what wraps around below the first word is beyond the last.
    const index ahead = (index)((u64)aligned / {{ word }} % {{ 128 // word }});
{%- endif %}
{%- if unroll == 1 %}
    const index at = (index)block * {{ threads }} + threadIdx.x{% if cut and pack %} - ahead{% endif %};
{%- if prefetched %}
    word *const place_of = (word *)(memory + place({{ context }}tables, begin + min(at, words - 1)));
    prefetch_ends((const u8 *)place_of, {{ word }});
    const word value = __ldg(aligned + min(at, words - 1));
    if (at < words)
        *place_of = value;
{%- else %}
    if (at < words) {
        word *place_of = (word *)(memory + place({{ context }}tables, begin + at));
        {% if streamed %}__stcs(aligned + at, __ldg(place_of)){% elif pack %}aligned[at] = __ldg(place_of){% else %}*place_of = __ldg(aligned + at){% endif %};
    }
{%- endif %}
{%- else %}
    const index base = (index)block * {{ threads * unroll }} + {% if prefetched %}threadIdx.x / 32 * {{ 32 * unroll }} + threadIdx.x % 32{% else %}threadIdx.x{% endif %}{% if cut and pack %} - ahead{% endif %};
    // Threads beyond the end move the last word once more: where a store may be left out, the compiler puts the load of its word behind the other stores.
{%- if prefetched %}
    // Loads are not before the requests, so that sectors are under way as long as words are.
{%- endif %}
    word value[{{ unroll }}];
    word *place_of[{{ unroll }}];
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index at = min(base + step * {{ next }}, words - 1);
        place_of[step] = (word *)(memory + place({{ context }}tables, begin + at));
{%- if prefetched %}
        prefetch_ends((const u8 *)place_of[step], {{ word }});
{%- endif %}
    }
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        {% if pack %}value[step] = __ldg(place_of[step]){% else %}value[step] = __ldg(aligned + min(base + step * {{ next }}, words - 1)){% endif %};
    }
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        {% if streamed %}__stcs(aligned + min(base + step * {{ next }}, words - 1), value[step]){% elif pack %}aligned[min(base + step * {{ next }}, words - 1)] = value[step]{% else %}*place_of[step] = value[step]{% endif %};
    }
{%- endif %}
}
