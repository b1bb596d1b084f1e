// Boxes of an array whose axes are permuted. A box passes through shared memory, so that both sides see long runs: it has
{%- for axis in memory_side.axes %} {{ axis.extent }} of {{ axis.count }}{{ "," if not loop.last }}{% endfor %} places of the axes in the order of memory.
{%- macro places(side) %}
            u32 rest = at;
{%- for axis in side.axes %}
{%- set extent = axis.extent // side.at_once if loop.first else axis.extent %}
{%- set scale = side.at_once if loop.first else 1 %}
{%- if loop.last %}
            const u32 place{{ axis.at }} = rest{% if scale > 1 %} * {{ scale }}{% endif %};
{%- else %}
            const u32 place{{ axis.at }} = rest % {{ extent }}{% if scale > 1 %} * {{ scale }}{% endif %};
            rest /= {{ extent }};
{%- endif %}
{%- endfor %}
            const bool has = {% if side.volume % threads != 0 %}at < {{ side.volume }}{% else %}true{% endif %}
{%- for axis in side.axes %}{% if axis.ragged %} && place{{ axis.at }} < {{ axis.count }} - origin{{ axis.at }}{% endif %}{% endfor %};
{%- endmacro %}
{%- macro shared_at(side) %}{% for axis in side.axes %}{{ " + " if not loop.first }}place{{ axis.at }} * {{ axis.shared }}{% endfor %}{% endmacro %}
{%- macro memory_at(side) %}{% for axis in side.axes %}{{ " + " if not loop.first }}(offset)place{{ axis.at }} * {{ axis.stride }}{% endfor %}{% endmacro %}
{%- macro packed_at(side) %}{% for axis in side.axes %}{{ " + " if not loop.first }}(offset)place{{ axis.at }} * {{ axis.packed }}{% endfor %}{% endmacro %}
{%- set loaded = memory_side if pack else packed_side %}
{%- set stored = packed_side if pack else memory_side %}
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

    // All loads of a round are under way before its first store to shared memory.
    for (u32 round = 0; round < {{ loaded.steps }}; round += {{ loads }}) {
        {{ loaded.type }} value[{{ loads }}] = {};
#pragma unroll
        for (u32 step = 0; step < {{ loads }}; step++) {
            const u32 at = (round + step) * {{ threads }} + threadIdx.x;
            if (round + step >= {{ loaded.steps }})
                break;
{{- places(loaded) }}
            if (has)
                value[step] = __ldg((const {{ loaded.type }} *)({% if pack %}base + ({{ memory_at(loaded) }}){% else %}begin + ({{ packed_at(loaded) }}){% endif %}));
        }
#pragma unroll
        for (u32 step = 0; step < {{ loads }}; step++) {
            const u32 at = (round + step) * {{ threads }} + threadIdx.x;
            if (round + step >= {{ loaded.steps }})
                break;
{{- places(loaded) }}
            if (has) {
{%- if pack %}
{%- for part in loaded.parts %}
                box[{{ shared_at(loaded) }} + {{ part }} * {{ near_shared }}] = {% if loaded.at_once > 1 %}(word)(value[step] >> {{ 8 * word * part }}){% else %}value[step]{% endif %};
{%- endfor %}
{%- else %}
                *({{ loaded.type }} *)(box + ({{ shared_at(loaded) }})) = value[step];
{%- endif %}
            }
        }
    }
    __syncthreads();
#pragma unroll 8
    for (u32 step = 0; step < {{ stored.steps }}; step++) {
        const u32 at = step * {{ threads }} + threadIdx.x;
        {
{{- places(stored) }}
            if (has) {
{%- if pack %}
                *({{ stored.type }} *)(begin + ({{ packed_at(stored) }})) = *(const {{ stored.type }} *)(box + ({{ shared_at(stored) }}));
{%- elif stored.at_once > 1 %}
                {{ stored.type }} value = 0;
{%- for part in stored.parts %}
                value |= ({{ stored.type }})box[{{ shared_at(stored) }} + {{ part }} * {{ near_shared }}] << {{ 8 * word * part }};
{%- endfor %}
                *({{ stored.type }} *)(base + ({{ memory_at(stored) }})) = value;
{%- else %}
                *({{ stored.type }} *)(base + ({{ memory_at(stored) }})) = box[{{ shared_at(stored) }}];
{%- endif %}
            }
        }
    }
}
