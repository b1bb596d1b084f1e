// Accumulate: elements of memory become themselves combined with the packed ones. A thread has whole elements, so that nobody
// else touches their bytes.{% if parts > 1 %} An element has {{ parts }} words, which may lie apart.{% endif %}
{%- if cut %} The call may cut its first and last word, between elements.{% endif %}
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    typedef {{ word_type }} word;
    const u64 last = first + bytes;
    const index begin = (index)((first + {{ unit - 1 }}) / {{ unit }}), end = (index)(last / {{ unit }});
    const auto combined = [](const Value &mine, const Value &theirs) {
        return combine(Operation::{{ operation }}, Element::{{ element }}, {{ element_bytes }}, mine, theirs);
    };
{%- if cut %}

    if (block == 0) {
        // One thread for each element of the words that the call cuts, which may be the same one.
        const u64 head = min((u64)begin * {{ unit }} - first, bytes), tail = end < begin ? 0 : last % {{ unit }};
        const u64 skipped = (u64)threadIdx.x * {{ element_bytes }};
        if (skipped < head + tail) {
            const u64 position = skipped < head ? first + skipped : last - tail + (skipped - head);
            u8 *target = memory + place(tables, (index)(position / {{ unit }})) + position % {{ unit }};
            const Value mine = load_value(target, {{ element_bytes }});
            store_value(target, combined(mine, load_value(packed + (position - first), {{ element_bytes }})), {{ element_bytes }});
        }
    }
    if (end <= begin)
        return;
{%- endif %}

    const index units = end - begin;
    const u8 *source = packed + ((u64)begin * {{ unit }} - first);
    const index base = (index)block * {{ threads * unroll }} + threadIdx.x;
    // Threads beyond the end load the last unit once more, so that all loads are under way before the first store.
    word *place_of[{{ unroll }}][{{ parts }}];
    word mine[{{ unroll }}][{{ parts }}];
{%- if aligned %}
    word theirs[{{ unroll }}][{{ parts }}];
{%- else %}
    Value theirs[{{ unroll }}];
{%- endif %}
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index at = min(base + step * {{ threads }}, units - 1);
#pragma unroll
        for (u32 part = 0; part < {{ parts }}; part++)
            place_of[step][part] = (word *)(memory + place(tables, (begin + at) * {{ parts }} + part));
    }
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        const index at = min(base + step * {{ threads }}, units - 1);
#pragma unroll
        for (u32 part = 0; part < {{ parts }}; part++)
            mine[step][part] = *place_of[step][part];
{%- if aligned %}
#pragma unroll
        for (u32 part = 0; part < {{ parts }}; part++)
            theirs[step][part] = __ldg((const word *)source + at * {{ parts }} + part);
{%- else %}
        const u8 *unit = source + (u64)at * {{ unit }};
        // Aligned words around the first and last bytes reach outside the packed bytes.
        if (unit >= packed + 8 && unit + {{ unit + 8 }} <= packed + bytes)
            theirs[step] = { load_bytes(unit, {% if unit > 8 %}8{% else %}{{ unit }}{% endif %}), {% if unit > 8 %}load_bytes(unit + 8, {{ unit - 8 }}){% else %}0{% endif %} };
        else
            theirs[step] = load_pieces<u8>(unit, {{ unit }});
{%- endif %}
    }
#pragma unroll
    for (u32 step = 0; step < {{ unroll }}; step++) {
        Value value = {0, 0};
{%- if aligned %}
        Value other = {0, 0};
{%- else %}
        const Value &other = theirs[step];
{%- endif %}
#pragma unroll
        for (u32 part = 0; part < {{ parts }}; part++) {
{%- if word == 16 %}
            value = {mine[step][part].x, mine[step][part].y};
{%- if aligned %}
            other = {theirs[step][part].x, theirs[step][part].y};
{%- endif %}
{%- else %}
            put(value, part * {{ word }}, mine[step][part]);
{%- if aligned %}
            put(other, part * {{ word }}, theirs[step][part]);
{%- endif %}
{%- endif %}
        }
{%- if elements == 1 %}
        const Value result = combined(value, other);
{%- else %}
        Value result = {0, 0};
#pragma unroll
        for (u32 byte = 0; byte < {{ unit }}; byte += {{ element_bytes }}) {
            const Value one = combined({take(value, byte), 0}, {take(other, byte), 0});
            put(result, byte, one.low{% if element_bytes < 8 %} & {{ element_mask }}{% endif %});
        }
{%- endif %}
        if (base + step * {{ threads }} < units) {
#pragma unroll
            for (u32 part = 0; part < {{ parts }}; part++)
                *place_of[step][part] = {% if word == 16 %}make_ulonglong2(result.low, result.high){% else %}(word)take(result, part * {{ word }}){% endif %};
        }
    }
}
