// Boxes of an array whose axes are permuted. A box passes through shared memory, so that both sides see long runs: it has
{%- for axis in nearest %} {{ axis.extent }} of {{ axis.count }}{{ "," if not loop.last }}{% endfor %} places of the axes in the order of memory.
{%- macro times(words) %}{% if words > 1 %} * {{ words }}{% endif %}{% endmacro %}
{#- Words of shared memory: an axis that is the run of several has them by the places of each. #}
{%- macro shared_of(axis, place) %}{% for part in axis.inside %} + (offset)({{ place }}{% if part.divisor > 1 %} / {{ part.divisor }}{% endif %}{% if not loop.last %} % {{ part.extent }}{% endif %}) * {{ part.stride }}{% endfor %}{% endmacro %}
{%- macro shared_sum(axes, place) %}{% for axis in axes %}{{ shared_of(axis, place ~ axis.at) }}{% endfor %}{% endmacro %}
{%- macro moved(axes, place) %}{% for axis in axes %} + (offset){{ place }}{{ axis.at }} * {{ axis.distance }}{% endfor %}{% endmacro %}
{#- What a thread keeps of a side: its place in a row, and its row of a step. #}
{%- macro row_of_thread(side, order) %}
    u32 {{ order }}_row = threadIdx.x;
{%- for axis in side.inner %}
    const u32 {{ order }}_place{{ axis.at }} = {{ order }}_row % {{ axis.places }}{{ times(axis.words) }};
    {{ order }}_row /= {{ axis.places }};
{%- endfor %}
    const bool {{ order }}_own = {{ order }}_row < {{ side.rows_at_once }};
{%- for axis in side.next %}
    const u32 {{ order }}_place{{ axis.at }} = {{ order }}_row{{ times(axis.words) }};
{%- endfor %}
    const offset {{ order }}_begin = 0{{ moved(side.inner, order ~ "_place") }}{{ moved(side.next, order ~ "_place") }};
{%- endmacro %}
{#- Of a step: its place, and whether a thread has words in it. #}
{%- macro words_of_step(side, order, step) %}
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
{%- for axis in side.next %}{% if side.rows_at_once * side.next_steps > axis.places %} && (place{{ axis.at }} + {{ side.rows_at_once * axis.words }} <= {{ axis.extent }} || {{ order }}_place{{ axis.at }} + place{{ axis.at }} < {{ axis.extent }}){% endif %}{% endfor %};
{%- endmacro %}
{#- Where they are on the side, and in shared memory. #}
{%- macro outside(side, order, base) %}{{ base }} + ({{ order }}_begin + (0{{ moved(side.next, "place") }}{{ moved(side.outer, "place") }})){% endmacro %}
{%- macro inside(side, first) %}{{ first }} + (0{{ shared_sum(side.next, "place") }}{{ shared_sum(side.outer, "place") }}){% endmacro %}
{%- set loaded = memory_side if pack else packed_side %}
{%- set loaded_order = "memory" if pack else "packed" %}
{%- set stored = packed_side if pack else memory_side %}
{%- set stored_order = "packed" if pack else "memory" %}
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
{{- row_of_thread(memory_side, "memory") }}
{{- row_of_thread(packed_side, "packed") }}
    const offset packed_inside = 0{{ shared_sum(packed_side.inner, "packed_place") }}{{ shared_sum(packed_side.next, "packed_place") }};
{%- set run = memory_side.run %}
{%- if turn.parts > 0 %}
    // Which of its words a thread begins with: threads whose first ones are in one bank begin with others.
    const u32 turn = threadIdx.x / {{ turn.threads }} * {{ turn.parts }};
{%- endif %}
{%- set others = (memory_side.inner + memory_side.next)[1:] %}
{%- if run.words == 1 %}
    const offset memory_inside0 = 0{{ shared_of(run, "memory_place" ~ run.at) }}{{ shared_sum(others, "memory_place") }};
{%- else %}
{%- for part in memory_side.parts %}
    const u32 part{{ part }} = {% if turn.parts > 0 %}(turn + {{ part }}) % {{ run.words }}{% else %}{{ part }}{% endif %};
    const u32 word{{ part }} = memory_place{{ run.at }} + part{{ part }};
    const offset memory_inside{{ part }} = 0{{ shared_of(run, "word" ~ part) }}{{ shared_sum(others, "memory_place") }};
{%- endfor %}
{%- endif %}
{%- if prefetched %}

    // Sectors that are stored in part are read: early, and not store by store.
    if (memory_own) {
#pragma unroll {% if stored.steps <= straight_steps %}{{ stored.steps }}{% else %}8{% endif %}
        for (u32 step = 0; step < {{ stored.steps }}; step++) {
{{- words_of_step(stored, stored_order, "step") }}
{%- if parted %}
            if (has)
{%- else %}
            const u32 of_run = memory_place{{ run.at }}{% if not stored.inner %} + place{{ run.at }}{% endif %};
            if (has && (of_run == 0 || of_run == {{ run.extent - run.words }}))
{%- endif %}
                prefetch({{ outside(stored, stored_order, "base") }});
        }
    }
{%- endif %}

    // All loads of a round are under way before its first store to shared memory.
    if ({{ loaded_order }}_own)
#pragma unroll {% if loaded.steps <= straight_steps %}{{ loaded.steps }}{% else %}1{% endif %}
    for (u32 round = 0; round < {{ loaded.steps }}; round += {{ loads }}) {
        {{ loaded.type }} value[{{ loads }}] = {};
#pragma unroll
        for (u32 step = 0; step < {{ loads }}; step++) {
            if (round + step >= {{ loaded.steps }})
                break;
{{- words_of_step(loaded, loaded_order, "round + step") }}
            if (has)
                value[step] = __ldg((const {{ loaded.type }} *)({{ outside(loaded, loaded_order, "base" if pack else "begin") }}));
        }
#pragma unroll
        for (u32 step = 0; step < {{ loads }}; step++) {
            if (round + step >= {{ loaded.steps }})
                break;
{{- words_of_step(loaded, loaded_order, "round + step") }}
            if (has) {
{%- if not pack %}
                *({{ loaded.type }} *)(box + ({{ inside(loaded, "packed_inside") }})) = value[step];
{%- elif run.words == 1 %}
                box[{{ inside(loaded, "memory_inside0") }}] = value[step];
{%- else %}
{%- for part in loaded.parts %}
                box[{{ inside(loaded, "memory_inside" ~ part) }}] = (word)(value[step] >> {{ 8 * word }} * part{{ part }});
{%- endfor %}
{%- endif %}
            }
        }
    }
    __syncthreads();
    if ({{ stored_order }}_own) {
#pragma unroll {% if stored.steps <= straight_steps %}{{ stored.steps }}{% else %}8{% endif %}
        for (u32 step = 0; step < {{ stored.steps }}; step++) {
{{- words_of_step(stored, stored_order, "step") }}
            if (has) {
                {{ stored.type }} *const to = ({{ stored.type }} *)({{ outside(stored, stored_order, "begin" if pack else "base") }});
{%- if pack %}
                *to = *(const {{ stored.type }} *)(box + ({{ inside(stored, "packed_inside") }}));
{%- elif run.words == 1 %}
                *to = box[{{ inside(stored, "memory_inside0") }}];
{%- else %}
                {{ stored.type }} value = 0;
{%- for part in stored.parts %}
                value |= ({{ stored.type }})(({{ stored.type }})box[{{ inside(stored, "memory_inside" ~ part) }}] << {{ 8 * word }} * part{{ part }});
{%- endfor %}
                *to = value;
{%- endif %}
            }
        }
    }
}
