// Boxes of an array of words of {{ word }} bytes whose axes are permuted. A box passes through shared memory, so that both sides see long runs. Both move aligned words
// of 4 bytes, of which the first and the last of a run may have less than {{ ahead }} words of it.
{#- Notes where the runs of a side begin: bytes from the box's first word, and words of shared memory; below 0 for runs beyond the array. #}
{%- macro list(side, packs) %}
    for (u32 at = threadIdx.x; at < {{ side.runs }}; at += {{ threads }}) {
        u32 rest = at;
        int offset = 0, inside = 0;
        bool has = true;
{%- for axis in side.outer %}
        {
            const u32 place = {% if loop.last %}rest{% else %}rest % {{ axis.extent }}{% endif %};
{%- if not loop.last %}
            rest /= {{ axis.extent }};
{%- endif %}
{%- if axis.ragged %}
            has = has && place < {{ axis.count }} - origin{{ axis.at }};
{%- endif %}
            offset += (int)(place * {{ axis.packed if packs else axis.stride }});
            inside += (int)(place * {{ axis.shared }});
        }
{%- endfor %}
        {{ "packed" if packs else "memory" }}_runs[at] = make_int2(offset, has ? inside : -1);
    }
{%- endmacro %}
{#- Unit `at` of a side: its run, and the words of the run in front of it, below 0 if it begins before the run. #}
{%- macro unit(side, packs) %}
            const u32 run = at / {{ side.units }};
{%- if side.all % threads != 0 %}
            const int2 place = at < {{ side.all }} ? {{ "packed" if packs else "memory" }}_runs[run] : make_int2(0, -1);
{%- else %}
            const int2 place = {{ "packed" if packs else "memory" }}_runs[run];
{%- endif %}
            u8 *const start = {{ "begin" if packs else "base" }} + place.x;
            const int before = (int)((at - run * {{ side.units }}) * {{ ahead }}) - (int)((u32)(u64)start % 4 / {{ word }});
            const bool has = place.y >= 0 && before < {{ "packed" if packs else "memory" }}_length;
{%- endmacro %}
{#- Where word `i` of a run is in shared memory. #}
{%- macro shared_of(side, i) %}place.y{% for distance in side.distances %} + {% if loop.last %}{{ rest(side, loop.index0, i) }}{% else %}{{ rest(side, loop.index0, i) }} % {{ distance[0] }}{% endif %} * {{ distance[1] }}{% endfor %}{% endmacro %}
{%- macro rest(side, number, i) %}(u32)({{ i }}){% for distance in side.distances %}{% if loop.index0 < number %} / {{ distance[0] }}{% endif %}{% endfor %}{% endmacro %}
{%- set loaded = memory_side if pack else packed_side %}
{%- set loaded_length = "memory_length" if pack else "packed_length" %}
{%- set stored = packed_side if pack else memory_side %}
{%- set stored_length = "packed_length" if pack else "memory_length" %}
{%- macro length(side) %}{% if side.cut and side.cut.ragged %}(int)(min({{ side.cut.count }} - origin{{ side.cut.at }}, {{ side.cut.extent }}u) * {{ side.each }}){% else %}{{ side.longest }}{% endif %}{% endmacro %}
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    typedef {{ word_type }} word;
{%- if pool %}
    uint4 *const stage = {{ pool }};
{%- else %}
    __shared__ uint4 stage[{{ shared_bytes // 16 }}];
{%- endif %}
    word *const box = (word *)stage;
    int2 *const memory_runs = (int2 *)(stage + {{ box_bytes // 16 }}), *const packed_runs = memory_runs + {{ memory_side.runs }};
    u64 number = block;
{%- for axis in axes %}
{%- if axis.boxes > 1 %}
    const u32 origin{{ axis.at }} = (u32)(number % {{ axis.boxes }}) * {{ axis.extent }};
    number /= {{ axis.boxes }};
{%- endif %}
{%- endfor %}
    u8 *base = memory + (i64)(first / {{ size }}ull + number) * {{ extent }} + {{ origin }};
    u8 *begin = packed + number * {{ size }}ull;
{%- for axis in axes %}
{%- if axis.boxes > 1 %}
    base += (i64)origin{{ axis.at }} * {{ axis.stride }};
    begin += (u64)origin{{ axis.at }} * {{ axis.packed }};
{%- endif %}
{%- endfor %}
    // Words of a run, which the end of the array may cut.
    const int memory_length = {{ length(memory_side) }}, packed_length = {{ length(packed_side) }};
{{- list(memory_side, false) }}
{{- list(packed_side, true) }}
    __syncthreads();

    // Aligned words around the ends of runs may reach out of the memory of the call.
{%- if pack %}
    const u8 *const lowest = memory + call.low, *const highest = memory + call.high - 4;
{%- else %}
    const u8 *const lowest = packed, *const highest = packed + bytes - 4;
{%- endif %}
    // All loads of a round are under way before its first store to shared memory.
    for (u32 round = 0; round < {{ loaded.steps }}; round += {{ loads }}) {
        u32 value[{{ loads }}] = {};
#pragma unroll
        for (u32 step = 0; step < {{ loads }}; step++) {
            const u32 at = (round + step) * {{ threads }} + threadIdx.x;
            if (round + step >= {{ loaded.steps }})
                break;
{{- unit(loaded, not pack) }}
            const u8 *const from = start + before * {{ word }};
            if (has && from >= lowest && from <= highest)
                value[step] = __ldg((const u32 *)from);
            else if (has)
                for (int part = max(0, -before); part < min({{ ahead }}, {{ loaded_length }} - before); part++)
                    value[step] |= (u32)((const word *)from)[part] << {{ 8 * word }} * part;
        }
#pragma unroll
        for (u32 step = 0; step < {{ loads }}; step++) {
            const u32 at = (round + step) * {{ threads }} + threadIdx.x;
            if (round + step >= {{ loaded.steps }})
                break;
{{- unit(loaded, not pack) }}
{%- for part in parts %}
            if (has && (u32)(before + {{ part }}) < (u32){{ loaded_length }})
                box[{{ shared_of(loaded, "before + " ~ part) }}] = (word)(value[step] >> {{ 8 * word * part }});
{%- endfor %}
        }
    }
    __syncthreads();
#pragma unroll 4
    for (u32 step = 0; step < {{ stored.steps }}; step++) {
        const u32 at = step * {{ threads }} + threadIdx.x;
        {
{{- unit(stored, pack) }}
            word *const to = (word *)(start + before * {{ word }});
            if (has && before >= 0 && before + {{ ahead }} <= {{ stored_length }}) {
                u32 value = 0;
{%- for part in parts %}
                value |= (u32)box[{{ shared_of(stored, "before + " ~ part) }}] << {{ 8 * word * part }};
{%- endfor %}
                *(u32 *)to = value;
            } else if (has) {
{%- for part in parts %}
                if ((u32)(before + {{ part }}) < (u32){{ stored_length }})
                    to[{{ part }}] = box[{{ shared_of(stored, "before + " ~ part) }}];
{%- endfor %}
            }
        }
    }
}
