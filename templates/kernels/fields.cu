// Fields: the fields of a record lie in arrays far apart, and records that are packed one after the other are neighbours there. A
// thread has the fields of a record, a block {{ records }} records of {{ size }} bytes. Their packed bytes pass through shared memory, so that
// both sides see whole lines.
static __device__ __forceinline__ void move_block(
    u8 *memory, u8 *packed, const u8 *tables, u64 first, u64 bytes, const {{ call }} &call, u32 block)
{
{%- if pool %}
    uint4 *const stage = {{ pool }};
{%- else %}
    __shared__ uint4 stage[{{ shared // 16 }}];
{%- endif %}
    const u64 last = first + bytes;
    const index begin = (index)((first + {{ size - 1 }}) / {{ size }}), end = (index)(last / {{ size }});

    if (block == 0) {
        // The bytes of the records that the call cuts, which may be the same one.
        const u64 head = min((u64)begin * {{ size }} - first, bytes), tail = end < begin ? 0 : last % {{ size }};
        for (u64 at = threadIdx.x; at < head + tail; at += {{ threads }}) {
            const u64 position = at < head ? first + at : last - tail + (at - head);
            u8 *byte = memory + place({{ context }}tables, (index)position);
            {% if pack %}packed[position - first] = *byte{% else %}*byte = packed[position - first]{% endif %};
        }
    }
    const index record = begin + (index)block * {{ records }};
    if (record >= end)
        return;

    const u32 count = (u32)min((index){{ records }}, end - record);
    // The tile lies in shared memory as it does among the packed bytes, which it may begin inside an aligned word of.
    const u32 head = (u32)(u64)(packed + ((u64)record * {{ size }} - first)) & 15, until = head + count * {{ size }};
    u8 *lines = packed + ((u64)record * {{ size }} - first) - head;
{%- if permuted %}
    // Eight words in turn lie in all banks, whichever eight threads take.
    const auto quad = [&](u32 at) -> uint4 & { return stage[at ^ (at / 8 & 7)]; };
{%- else %}
    const auto quad = [&](u32 at) -> uint4 & { return stage[at]; };
{%- endif %}
    const auto staged = [&](u32 at) { return (u8 *)&quad(at / 16) + at % 16; };
{%- if not pack %}

    for (u32 at = threadIdx.x; at * 16 < until; at += {{ threads }}) {
        if (at * 16 >= head && at * 16 + 16 <= until) {
            quad(at) = __ldg((const uint4 *)lines + at);
        } else {
            for (u32 byte = max(at * 16, head); byte < min(at * 16 + 16, until); byte++)
                *staged(byte) = lines[byte];
        }
    }
    __syncthreads();
{%- endif %}

    for (u32 at = threadIdx.x; at < count; at += {{ threads }}) {
        u8 *base = memory + outer({{ context }}tables, record + at);
        const u32 to = head + at * {{ size }};
{%- for group in groups %}
{%- if pack %}
{%- for word in group %}
        const {{ word.type }} value_{{ word.number }} = __ldg((const {{ word.type }} *)(base + {{ word.offset }}));
{%- endfor %}
{%- for word in group %}
{%- for part in word.parts %}
        *({{ part.type }} *)staged(to + {{ part.packed }}) = {% if word.divided %}({{ part.type }})(value_{{ word.number }} >> {{ part.shift }}){% else %}value_{{ word.number }}{% endif %};
{%- endfor %}
{%- endfor %}
{%- else %}
{%- for word in group %}
        const {{ word.type }} value_{{ word.number }} = {% for part in word.parts %}{% if word.divided %}{% if not loop.first %} | {% endif %}({{ word.type }})*(const {{ part.type }} *)staged(to + {{ part.packed }}) << {{ part.shift }}{% else %}*(const {{ part.type }} *)staged(to + {{ part.packed }}){% endif %}{% endfor %};
{%- endfor %}
{%- for word in group %}
        *({{ word.type }} *)(base + {{ word.offset }}) = value_{{ word.number }};
{%- endfor %}
{%- endif %}
{%- endfor %}
    }
{%- if pack %}
    __syncthreads();

    for (u32 at = threadIdx.x; at * 16 < until; at += {{ threads }}) {
        if (at * 16 >= head && at * 16 + 16 <= until) {
            ((uint4 *)lines)[at] = quad(at);
        } else {
            for (u32 byte = max(at * 16, head); byte < min(at * 16 + 16, until); byte++)
                lines[byte] = *staged(byte);
        }
    }
{%- endif %}
}
