// Reads the cases of the GPU benchmark and draws their lists. Host code only; no dependency.

#ifndef DTC_BENCH_GPU_CASES_HPP
#define DTC_BENCH_GPU_CASES_HPP

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cases {

// A JSON value: what this index needs of one, so no escapes but of one character, and no fractions.
struct Value {
    enum Kind { Null, Number, String, List, Object } kind = Null;
    int64_t number = 0;
    std::string string;
    std::vector<Value> list;
    std::map<std::string, Value> members;

    const Value &operator[](const std::string &name) const {
        auto found = members.find(name);
        if (found == members.end()) throw std::runtime_error("expected a member \"" + name + "\", found none");
        return found->second;
    }
    bool has(const std::string &name) const { return members.count(name) != 0; }
};

class Reader {
public:
    explicit Reader(const std::string &text) : text(text) {}

    Value document() {
        Value value = read(0);
        space();
        if (at != text.size()) fail("the end");
        return value;
    }

private:
    const std::string &text;
    size_t at = 0;

    [[noreturn]] void fail(const std::string &expected) const {
        throw std::runtime_error("byte " + std::to_string(at) + ": expected " + expected);
    }
    void space() {
        while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) at++;
    }
    bool take(char wanted) {
        space();
        if (at >= text.size() || text[at] != wanted) return false;
        at++;
        return true;
    }
    std::string quoted() {
        std::string result;
        if (!take('"')) fail("a string");
        while (at < text.size() && text[at] != '"') {
            if (text[at] == '\\') at++;
            if (at < text.size()) result += text[at++];
        }
        if (!take('"')) fail("the end of a string");
        return result;
    }
    Value read(int depth) {
        if (depth > 32) fail("less depth");
        Value value;
        space();
        if (take('{')) {
            value.kind = Value::Object;
            if (take('}')) return value;
            do {
                std::string name = quoted();
                if (!take(':')) fail("a colon");
                value.members[name] = read(depth + 1);
            } while (take(','));
            if (!take('}')) fail("a brace");
        } else if (take('[')) {
            value.kind = Value::List;
            if (take(']')) return value;
            do {
                value.list.push_back(read(depth + 1));
            } while (take(','));
            if (!take(']')) fail("a bracket");
        } else if (at < text.size() && text[at] == '"') {
            value.kind = Value::String;
            value.string = quoted();
        } else {
            char *end = nullptr;
            value.kind = Value::Number;
            value.number = std::strtoll(text.c_str() + at, &end, 10);
            if (end == text.c_str() + at) fail("a value");
            at = static_cast<size_t>(end - text.c_str());
        }
        return value;
    }
};

// Contiguous bytes of memory, in packed order.
struct Run {
    int64_t offset;
    int64_t length;
};

struct Case {
    std::string name;
    int64_t packed_bytes = 0;
    int64_t buffer_bytes = 0;
    bool is_list = false;
    // A loop nest, outermost first.
    int64_t offset = 0;
    std::vector<int64_t> sizes, strides;
    int64_t element = 0;
    // A list.
    std::string list_kind, checksum;
    int64_t number = 0, unit = 0, most = 0;
    uint64_t seed = 0;
};

inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

inline uint64_t draw(uint64_t seed, uint64_t index) {
    return mix(seed + (index + 1) * 0x9e3779b97f4a7c15u);
}

// The runs of a list, checked against the index.
inline std::vector<Run> draw_list(const Case &which) {
    std::vector<Run> runs(static_cast<size_t>(which.number));
    if (which.list_kind == "blocks") {
        std::vector<std::pair<uint64_t, int64_t>> order(runs.size());
        for (size_t index = 0; index < order.size(); index++)
            order[index] = {draw(which.seed, index), static_cast<int64_t>(index)};
        std::sort(order.begin(), order.end());
        for (size_t index = 0; index < runs.size(); index++)
            runs[index] = {order[index].second * which.unit, which.unit};
    } else {
        int64_t position = 0;
        for (size_t index = 0; index < runs.size(); index++) {
            uint64_t drawn = draw(which.seed, index);
            uint64_t most = static_cast<uint64_t>(which.most);
            int64_t length = 1 + static_cast<int64_t>((drawn & 0xffffffffu) % most);
            int64_t gap = 1 + static_cast<int64_t>((drawn >> 32) % most);
            runs[index] = {position * which.unit, length * which.unit};
            position += length + gap;
        }
    }
    uint64_t sum = 0;
    for (size_t index = 0; index < runs.size(); index++) {
        sum += mix(mix(2 * index) ^ static_cast<uint64_t>(runs[index].offset));
        sum += mix(mix(2 * index + 1) ^ static_cast<uint64_t>(runs[index].length));
    }
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(sum));
    if (which.checksum != digits)
        throw std::runtime_error(which.name + ": expected the checksum " + which.checksum + ", found " + digits);
    return runs;
}

inline std::vector<Case> read(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(path + ": expected the index of cases, found no readable file");
    std::stringstream bytes;
    bytes << file.rdbuf();
    std::string text = bytes.str();
    Value document = Reader(text).document();
    std::vector<Case> result;
    for (const Value &entry : document["cases"].list) {
        Case next;
        const Value &shape = entry["shape"];
        next.name = entry["name"].string;
        next.packed_bytes = entry["packed_bytes"].number;
        next.buffer_bytes = entry["buffer_bytes"].number;
        next.list_kind = shape["kind"].string;
        if (next.list_kind == "nest") {
            next.offset = shape["offset_bytes"].number;
            next.element = shape["element_bytes"].number;
            for (const Value &size : shape["sizes"].list) next.sizes.push_back(size.number);
            for (const Value &stride : shape["strides_bytes"].list) next.strides.push_back(stride.number);
        } else {
            bool blocks = next.list_kind == "blocks";
            next.is_list = true;
            next.number = shape[blocks ? "blocks" : "runs"].number;
            next.unit = shape[blocks ? "block_bytes" : "unit_bytes"].number;
            next.most = blocks ? 0 : shape["most_units"].number;
            next.seed = static_cast<uint64_t>(shape["seed"].number);
            next.checksum = shape["checksum"].string;
        }
        result.push_back(next);
    }
    return result;
}

}  // namespace cases

#endif
