// Boxes of an array whose axes are permuted. A box passes through shared memory, so that both sides see long runs: it has
{%- for axis in memory_side.axes %} {{ axis.extent }} of {{ axis.count }}{{ "," if not loop.last }}{% endfor %} places of the axes in the order of memory.
{%- macro sum(axes, place, distance) %}{% for axis in axes %} + (offset){{ place }}{{ axis.at }} * {{ axis[distance] }}{% endfor %}{% endmacro %}
{%- macro times(words) %}{% if words > 1 %} * {{ words }}{% endif %}{% endmacro %}
{#- What a thread keeps of a side: its place in a row, and its row of a step. #}
{%- macro row_of_thread(side, order, distance) %}
    u32 {{ order }}_row = threadIdx.x;
{%- for axis in side.inner %}
    const u32 {{ order }}_place{{ axis.at }} = {{ order }}_row % {{ axis.places }}{{ times(axis.words) }};
    {{ order }}_row /= {{ axis.places }};
{%- endfor %}
    const bool {{ order }}_own = {{ order }}_row < {{ side.rows_at_once }};
    const offset {{ order }}_begin = 0{{ sum(side.inner, order ~ "_place", distance) }}
        {%- for axis in side.next %} + (offset){{ order }}_row{{ times(axis.words) }} * {{ axis[distance] }}{% endfor %};
    const offset {{ order }}_inside = 0{{ sum(side.inner, order ~ "_place", "shared") }}
        {%- for axis in side.next %} + (offset){{ order }}_row{{ times(axis.words) }} * {{ axis.shared }}{% endfor %};
{%- endmacro %}
{#- What a step adds to the place of a thread on a side, and whether the thread has a word. #}
{%- macro word_of_step(side, order, step) %}
            u32 rest = {{ step }};
{%- for axis in side.next %}
            const u32 place{{ axis.at }} = rest % {{ side.next_steps }} * {{ side.rows_at_once * axis.words }};
            rest /= {{ side.next_steps }};
{%- endfor %}
{%- for axis in side.outer %}
            const u32 place{{ axis.at }} = rest{% if not loop.last %} % {{ axis.places }}{% endif %};
{%- if not loop.last %}
            rest /= {{ axis.places }};
{%- endif %}
{%- endfor %}
            const bool has = true
{%- for axis in side.next %}{% if side.rows_at_once * side.next_steps > axis.places %} && (place{{ axis.at }} + {{ side.rows_at_once * axis.words }} <= {{ axis.extent }} || {{ order }}_row{{ times(axis.words) }} + place{{ axis.at }} < {{ axis.extent }}){% endif %}{% endfor %};
{%- endmacro %}
{#- Where the word is: bytes from the box's first one on a side, and words of the box. #}
{%- macro outside(side, order, distance) %}{{ order }}_begin + (0{{ sum(side.next, "place", distance) }}{{ sum(side.outer, "place", distance) }}){% endmacro %}
{%- macro inside(side, order) %}{{ order }}_inside + (0{{ sum(side.next, "place", "shared") }}{{ sum(side.outer, "place", "shared") }}){% endmacro %}
{%- set loaded = memory_side if pack else packed_side %}
{%- set loaded_order = "memory" if pack else "packed" %}
{%- set loaded_distance = "stride" if pack else "packed" %}
{%- set stored = packed_side if pack else memory_side %}
{%- set stored_order = "packed" if pack else "memory" %}
{%- set stored_distance = "packed" if pack else "stride" %}
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
    typedef {{ word_type }} word;
    typedef {{ offset_type }} offset;
{%- if pool %}
    word *const box = (word *){{ pool }};
{%- else %}
    __shared__ __align__(16) word box[{{ words }}];
{%- endif %}
    // The last box of an axis reaches back where the array has fewer places: the words of both are moved twice.
    u64 number = block;
{%- for axis in axes %}
{%- if axis.boxes > 1 %}
    const u32 origin{{ axis.at }} = {% if axis.boxes * axis.extent > axis.count %}min((u32)(number % {{ axis.boxes }}) * {{ axis.extent }}, {{ axis.count - axis.extent }}u){% else %}(u32)(number % {{ axis.boxes }}) * {{ axis.extent }}{% endif %};
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
{{- row_of_thread(memory_side, "memory", "stride") }}
{{- row_of_thread(packed_side, "packed", "packed") }}

    // All loads of a round are under way before its first store to shared memory.
    if ({{ loaded_order }}_own)
#pragma unroll {% if loaded.steps <= straight_steps %}{{ loaded.steps }}{% else %}1{% endif %}
    for (u32 round = 0; round < {{ loaded.steps }}; round += {{ loads }}) {
        {{ loaded.type }} value[{{ loads }}] = {};
#pragma unroll
        for (u32 step = 0; step < {{ loads }}; step++) {
            if (round + step >= {{ loaded.steps }})
                break;
{{- word_of_step(loaded, loaded_order, "round + step") }}
            if (has)
                value[step] = __ldg((const {{ loaded.type }} *)({{ "base" if pack else "begin" }} + ({{ outside(loaded, loaded_order, loaded_distance) }})));
        }
#pragma unroll
        for (u32 step = 0; step < {{ loads }}; step++) {
            if (round + step >= {{ loaded.steps }})
                break;
{{- word_of_step(loaded, loaded_order, "round + step") }}
            if (has) {
                const offset place = {{ inside(loaded, loaded_order) }};
{%- if pack %}
{%- for part in loaded.parts %}
                box[place + {{ part }} * {{ near_shared }}] = {% if loaded.at_once > 1 %}(word)(value[step] >> {{ 8 * word * part }}){% else %}value[step]{% endif %};
{%- endfor %}
{%- else %}
                *({{ loaded.type }} *)(box + place) = value[step];
{%- endif %}
            }
        }
    }
    __syncthreads();
    if ({{ stored_order }}_own) {
#pragma unroll {% if stored.steps <= straight_steps %}{{ stored.steps }}{% else %}8{% endif %}
        for (u32 step = 0; step < {{ stored.steps }}; step++) {
{{- word_of_step(stored, stored_order, "step") }}
            if (has) {
                const offset place = {{ inside(stored, stored_order) }};
                {{ stored.type }} *const to = ({{ stored.type }} *)({{ "begin" if pack else "base" }} + ({{ outside(stored, stored_order, stored_distance) }}));
{%- if pack %}
                *to = *(const {{ stored.type }} *)(box + place);
{%- elif stored.at_once > 1 %}
                {{ stored.type }} value = 0;
{%- for part in stored.parts %}
                value |= ({{ stored.type }})box[place + {{ part }} * {{ near_shared }}] << {{ 8 * word * part }};
{%- endfor %}
                *to = value;
{%- else %}
                *to = box[place];
{%- endif %}
            }
        }
    }
}
