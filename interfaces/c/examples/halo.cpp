// The six faces of a block in a 3-D grid, from C++: handles that release themselves, errors as exceptions.
#include <array>
#include <cstring>
#include <dtc.h>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <vector>

static void call(int status) {
    if (status != DTC_OK) {
        throw std::runtime_error(dtc_message());
    }
}

struct Release {
    void operator()(dtc_engine *engine) const { dtc_finalize(engine); }
    void operator()(dtc_type *type) const { dtc_type_release(type); }
};
using Engine = std::unique_ptr<dtc_engine, Release>;
using Type = std::unique_ptr<dtc_type, Release>;

static Engine start() {
    dtc_config config = DTC_CONFIG_INIT;
    config.policy = DTC_POLICY_EAGER;
    dtc_engine *engine = nullptr;
    call(dtc_init(&config, &engine));
    return Engine(engine);
}

static Type box(const Engine &engine, const std::array<int64_t, 3> &sizes, const std::array<int64_t, 3> &subsizes,
                const std::array<int64_t, 3> &starts) {
    dtc_type *element = nullptr, *made = nullptr;
    call(dtc_type_basic(engine.get(), DTC_KIND_FLOAT, sizeof(double), &element));
    Type owned(element);
    std::vector<int64_t> numbers{3};
    for (const auto &list : {sizes, subsizes, starts}) {
        numbers.insert(numbers.end(), list.begin(), list.end());
    }
    numbers.push_back(DTC_ORDER_C);
    call(dtc_type_create(engine.get(), DTC_COMBINER_SUBARRAY, numbers.data(), int64_t(numbers.size()), nullptr, 0,
                         &element, 1, nullptr, &made));
    call(dtc_type_commit(made, 0));
    return Type(made);
}

int main() try {
    const std::array<int64_t, 3> sizes{10, 12, 14};
    const auto engine = start();
    std::vector<double> grid(size_t(sizes[0] * sizes[1] * sizes[2]));
    for (size_t at = 0; at < grid.size(); at++) {
        grid[at] = double(at);
    }
    for (size_t axis = 0; axis < 3; axis++) {
        for (int64_t side : {int64_t(0), sizes[axis] - 1}) {
            std::array<int64_t, 3> subsizes = sizes, starts{};
            subsizes[axis] = 1;
            starts[axis] = side;
            const auto face = box(engine, sizes, subsizes, starts);
            std::vector<double> packed(size_t(subsizes[0] * subsizes[1] * subsizes[2]));
            int64_t done = 0;
            call(dtc_pack(face.get(), grid.data(), 1, 0, packed.data(), int64_t(packed.size() * sizeof(double)), &done,
                          nullptr));
            size_t at = 0;
            for (int64_t x = starts[0]; x < starts[0] + subsizes[0]; x++) {
                for (int64_t y = starts[1]; y < starts[1] + subsizes[1]; y++) {
                    for (int64_t z = starts[2]; z < starts[2] + subsizes[2]; z++) {
                        if (packed[at++] != grid[size_t((x * sizes[1] + y) * sizes[2] + z)]) {
                            throw std::runtime_error("a face has wrong elements");
                        }
                    }
                }
            }
        }
    }
    // What is wrong is said with its place.
    try {
        box(engine, sizes, {1, 1, 99}, {0, 0, 0});
        throw std::logic_error("a box larger than its grid was accepted");
    } catch (const std::runtime_error &error) {
        if (std::strstr(error.what(), "subarray.subsizes[2]") == nullptr) {
            throw;
        }
    }
    std::cout << "halo: six faces\n";
    return 0;
} catch (const std::exception &error) {
    std::cerr << "halo: " << error.what() << '\n';
    return 1;
}
