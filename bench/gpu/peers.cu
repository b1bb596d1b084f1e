// What a CUDA programmer would use in place of dtc, timed on one GPU: copies of the runtime library, CUB's batched copy,
// and the cost of launches. Writes one JSON object per line; README.md tells how to build, run and read it.

#include "cases.hpp"

#include <cub/device/device_memcpy.cuh>
#include <cuda_runtime.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <unistd.h>

namespace {

constexpr int ROUNDS = 9;
constexpr int64_t FLUSH_BYTES = int64_t(256) << 20;
// Compared behind every result, so that a write past the end is seen.
constexpr int64_t GUARD_BYTES = 4096;
constexpr double CUT_OFF_SECONDS = 10;
// Cases that have not begun by then are left out.
constexpr double LAST_START_SECONDS = 130;
constexpr unsigned ALARM_SECONDS = 148;
// So long does a kernel hold the device while the host enqueues what is timed.
constexpr uint64_t HOLD_NANOSECONDS = 300000;
constexpr int POISON = 0xa5;
constexpr int MAX_LOOPS = 6;
constexpr int64_t MAX_COPIES = 1024;

FILE *out = nullptr;
bool wrong_bytes = false;
std::chrono::steady_clock::time_point started;

double seconds_since(std::chrono::steady_clock::time_point time) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - time).count();
}

struct Failure {
    std::string text;
};

void check(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return;
    // Takes back an error that the next call would report again.
    cudaGetLastError();
    throw Failure{std::string(what) + ": " + cudaGetErrorString(error)};
}
#define CHECK(call) check((call), #call)

// What is timed.
struct Peer {
    std::string name;
    std::function<void()> call;
};

struct Times {
    std::vector<double> cold, warm;
};

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void line(const std::string &peer, const std::string &name, bool pack, int64_t packed, const std::string &rest) {
    // Names hold nothing that JSON would escape.
    std::fprintf(out, "{\"peer\": \"%s\", \"case\": \"%s\", \"direction\": \"%s\", \"packed_bytes\": %lld, %s}\n",
                 peer.c_str(), name.c_str(), pack ? "pack" : "unpack", static_cast<long long>(packed), rest.c_str());
    std::fflush(out);
}

std::string times_text(double cold, double warm, size_t rounds) {
    char text[128];
    std::snprintf(text, sizeof text, "\"cold_us\": %.3f, \"warm_us\": %.3f, \"rounds\": %zu", cold, warm, rounds);
    return text;
}

std::string error_text(const std::string &error) {
    std::string safe;
    for (char letter : error)
        if (letter != '"' && letter != '\\' && static_cast<unsigned char>(letter) >= 32) safe += letter;
    return "\"cold_us\": null, \"warm_us\": null, \"error\": \"" + safe + "\"";
}

// Kernels that verify; nothing here is fast on purpose.

__global__ void empty() {}

__global__ void hold(uint64_t nanoseconds) {
    uint64_t begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begin < nanoseconds);
}

__global__ void fill_random(uint64_t *words, int64_t count, uint64_t seed) {
    int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        uint64_t z = seed + uint64_t(i + 1) * 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        words[i] = z ^ (z >> 31);
    }
}

// Writes the flushed buffer; the value changes so that no write can be left out.
__global__ void flush(uint4 *words, int64_t count, unsigned value) {
    int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        words[i] = make_uint4(value, value, value, value);
}

__global__ void count_differences(const uint64_t *a, const uint64_t *b, int64_t count, unsigned long long *differences) {
    int64_t step = int64_t(gridDim.x) * blockDim.x;
    unsigned long long found = 0;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) found += a[i] != b[i];
    if (found != 0) atomicAdd(differences, found);
}

struct Nest {
    int loops;
    int64_t offset, element;
    int64_t sizes[MAX_LOOPS], strides[MAX_LOOPS];
};

template <bool PACK>
__global__ void reference_nest(Nest nest, char *memory, char *packed, int64_t bytes) {
    int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < bytes; i += step) {
        int64_t rest = i / nest.element;
        int64_t place = nest.offset + i % nest.element;
        for (int loop = nest.loops - 1; loop >= 0; loop--) {
            place += rest % nest.sizes[loop] * nest.strides[loop];
            rest /= nest.sizes[loop];
        }
        if (PACK) packed[i] = memory[place];
        else memory[place] = packed[i];
    }
}

// One warp a run.
template <bool PACK>
__global__ void reference_list(const int64_t *offsets, const int64_t *starts, const unsigned *lengths, int64_t runs,
                               char *memory, char *packed) {
    int64_t warp = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    int64_t step = int64_t(gridDim.x) * blockDim.x / 32;
    for (int64_t run = warp; run < runs; run += step) {
        for (int64_t i = threadIdx.x % 32; i < int64_t(lengths[run]); i += 32) {
            if (PACK) packed[starts[run] + i] = memory[offsets[run] + i];
            else memory[offsets[run] + i] = packed[starts[run] + i];
        }
    }
}

__global__ void pointers(void **results, char *base, const int64_t *offsets, int64_t count) {
    int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) results[i] = base + offsets[i];
}

constexpr int BLOCKS = 132 * 16;
constexpr int THREADS = 256;

template <typename T>
struct Device {
    T *data = nullptr;

    explicit Device(int64_t count) { CHECK(cudaMalloc(reinterpret_cast<void **>(&data), size_t(count) * sizeof(T))); }
    ~Device() { cudaFree(data); }
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;

    void set(const std::vector<T> &values) {
        CHECK(cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
        // The call may return before the bytes are there, and other CUDA streams do not wait for it.
        CHECK(cudaDeviceSynchronize());
    }
};

int64_t rounded(int64_t bytes) {
    return (bytes + GUARD_BYTES + 15) / 16 * 16;
}

class Bench {
public:
    explicit Bench(const std::vector<cases::Case> &all)
        : span(largest(all, &cases::Case::buffer_bytes)), packed(largest(all, &cases::Case::packed_bytes)),
          source(span), target(span), wanted_memory(span), packed_source(packed), packed_target(packed),
          wanted_packed(packed), flushed(FLUSH_BYTES / 16), differences(1) {
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK(cudaEventCreate(&begin));
        CHECK(cudaEventCreate(&end));
        fill_random<<<BLOCKS, THREADS, 0, stream>>>(reinterpret_cast<uint64_t *>(source.data), span / 8, 1);
        fill_random<<<BLOCKS, THREADS, 0, stream>>>(reinterpret_cast<uint64_t *>(packed_source.data), packed / 8, 2);
        CHECK(cudaStreamSynchronize(stream));
    }

    void run(const cases::Case &which) {
        int64_t runs = which.is_list ? which.number : 0;
        Device<int64_t> offsets(std::max<int64_t>(runs, 1)), starts(std::max<int64_t>(runs, 1));
        Device<unsigned> lengths(std::max<int64_t>(runs, 1));
        if (which.is_list) {
            std::vector<int64_t> host_offsets, host_starts;
            std::vector<unsigned> host_lengths;
            int64_t start = 0;
            for (const cases::Run &run : cases::draw_list(which)) {
                host_offsets.push_back(run.offset);
                host_starts.push_back(start);
                host_lengths.push_back(static_cast<unsigned>(run.length));
                start += run.length;
            }
            if (start != which.packed_bytes) throw Failure{"the list has not the packed bytes that the index says"};
            offsets.set(host_offsets);
            starts.set(host_starts);
            lengths.set(host_lengths);
        }
        reference(which, offsets.data, starts.data, lengths.data);
        for (bool pack : {true, false}) {
            std::vector<Peer> peers;
            char *from = pack ? source.data : packed_source.data;
            char *to = pack ? packed_target.data : target.data;
            peers.push_back({"memcpy", [=] {
                CHECK(cudaMemcpyAsync(packed_target.data, packed_source.data, size_t(which.packed_bytes),
                                      cudaMemcpyDeviceToDevice, stream));
            }});
            if (!which.is_list) add_copies(peers, which, pack, from, to);
            std::vector<std::unique_ptr<Device<void *>>> tables;
            std::unique_ptr<Device<char>> scratch;
            if (which.is_list) {
                tables.push_back(std::make_unique<Device<void *>>(runs));
                tables.push_back(std::make_unique<Device<void *>>(runs));
                pointers<<<BLOCKS, THREADS, 0, stream>>>(tables[0]->data, from, (pack ? offsets : starts).data, runs);
                pointers<<<BLOCKS, THREADS, 0, stream>>>(tables[1]->data, to, (pack ? starts : offsets).data, runs);
                void **sources = tables[0]->data, **targets = tables[1]->data;
                unsigned *sizes = lengths.data;
                size_t bytes = 0;
                CHECK(cub::DeviceMemcpy::Batched(nullptr, bytes, sources, targets, sizes, runs, stream));
                scratch = std::make_unique<Device<char>>(int64_t(std::max<size_t>(bytes, 1)));
                void *room = scratch->data;
                peers.push_back({"CUB DeviceMemcpy::Batched", [=] {
                    size_t room_bytes = bytes;
                    CHECK(cub::DeviceMemcpy::Batched(room, room_bytes, sources, targets, sizes, runs, stream));
                }});
            }
            CHECK(cudaStreamSynchronize(stream));
            measure(which, pack, peers);
        }
    }

    // What any call costs on this machine, whatever it moves; by the host's clock but for the events.
    void launches() {
        auto host = [&](const std::string &name, const std::string &of, int64_t bytes, int rounds,
                        const std::function<void()> &call) {
            Times times;
            for (int round = -rounds; round < rounds; round++) {
                bool cold = round < 0;
                if (cold) flush_cache();
                CHECK(cudaStreamSynchronize(stream));
                auto before = std::chrono::steady_clock::now();
                call();
                double time = seconds_since(before) * 1e6;
                (cold ? times.cold : times.warm).push_back(time);
            }
            CHECK(cudaStreamSynchronize(stream));
            line(name, of, true, bytes, times_text(median(times.cold), median(times.warm), times.warm.size()) +
                                            ", \"clock\": \"host\"");
        };
        auto launch = [&] { empty<<<1, 32, 0, stream>>>(); };
        host("empty kernel synchronised", "launch", 0, 301, [&] { launch(); CHECK(cudaStreamSynchronize(stream)); });
        host("empty kernel launched", "launch", 0, 301, launch);
        host("1000 empty kernels synchronised", "launch", 0, ROUNDS, [&] {
            for (int i = 0; i < 1000; i++) launch();
            CHECK(cudaStreamSynchronize(stream));
        });
        for (int64_t bytes : {int64_t(4) << 10, int64_t(64) << 10}) {
            host("memcpy synchronised", bytes == 4096 ? "4 KiB" : "64 KiB", bytes, 301, [&] {
                CHECK(cudaMemcpyAsync(packed_target.data, packed_source.data, size_t(bytes), cudaMemcpyDeviceToDevice,
                                      stream));
                CHECK(cudaStreamSynchronize(stream));
            });
        }
        std::vector<Peer> peers = {{"nothing between events", [] {}}, {"empty kernel between events", launch}};
        for (const Peer &peer : peers) {
            Times times;
            for (int round = 0; round < ROUNDS; round++) time_once(peer, times);
            line(peer.name, "launch", true, 0, times_text(median(times.cold), median(times.warm), ROUNDS));
        }
    }

private:
    int64_t span, packed;
    Device<char> source, target, wanted_memory, packed_source, packed_target, wanted_packed;
    Device<uint4> flushed;
    Device<unsigned long long> differences;
    cudaStream_t stream = nullptr;
    cudaEvent_t begin = nullptr, end = nullptr;
    unsigned flushes = 0;

    static int64_t largest(const std::vector<cases::Case> &all, int64_t cases::Case::*field) {
        int64_t most = 65536;
        for (const cases::Case &which : all) most = std::max(most, which.*field);
        return rounded(most);
    }

    void flush_cache() {
        flush<<<BLOCKS, THREADS, 0, stream>>>(flushed.data, FLUSH_BYTES / 16, ++flushes);
    }

    // What the results have to be, by kernels that are as plain as they can be.
    void reference(const cases::Case &which, int64_t *offsets, int64_t *starts, unsigned *lengths) {
        CHECK(cudaMemsetAsync(wanted_packed.data, POISON, size_t(rounded(which.packed_bytes)), stream));
        CHECK(cudaMemsetAsync(wanted_memory.data, POISON, size_t(rounded(which.buffer_bytes)), stream));
        if (which.is_list) {
            reference_list<true><<<BLOCKS, THREADS, 0, stream>>>(offsets, starts, lengths, which.number, source.data,
                                                                 wanted_packed.data);
            reference_list<false><<<BLOCKS, THREADS, 0, stream>>>(offsets, starts, lengths, which.number,
                                                                  wanted_memory.data, packed_source.data);
        } else {
            Nest nest = {};
            if (which.sizes.size() > MAX_LOOPS) throw Failure{"the nest has too many loops"};
            nest.loops = static_cast<int>(which.sizes.size());
            nest.offset = which.offset;
            nest.element = which.element;
            std::copy(which.sizes.begin(), which.sizes.end(), nest.sizes);
            std::copy(which.strides.begin(), which.strides.end(), nest.strides);
            reference_nest<true>
                <<<BLOCKS, THREADS, 0, stream>>>(nest, source.data, wanted_packed.data, which.packed_bytes);
            reference_nest<false>
                <<<BLOCKS, THREADS, 0, stream>>>(nest, wanted_memory.data, packed_source.data, which.packed_bytes);
        }
        CHECK(cudaGetLastError());
        CHECK(cudaStreamSynchronize(stream));
    }

    // Copies of two and three dimensions, where the strides are those of an array of rows.
    void add_copies(std::vector<Peer> &peers, const cases::Case &which, bool pack, char *from, char *to) {
        size_t loops = which.sizes.size();
        char *memory = (pack ? from : to) + which.offset;
        char *stream_bytes = pack ? to : from;
        int64_t element = which.element;
        if (loops == 1) {
            int64_t height = which.sizes[0], pitch = which.strides[0];
            peers.push_back({"cudaMemcpy2DAsync", [=] {
                char *target_bytes = pack ? stream_bytes : memory;
                char *source_bytes = pack ? memory : stream_bytes;
                CHECK(cudaMemcpy2DAsync(target_bytes, size_t(pack ? element : pitch), source_bytes,
                                        size_t(pack ? pitch : element), size_t(element), size_t(height),
                                        cudaMemcpyDeviceToDevice, stream));
            }});
            return;
        }
        if (loops < 2) return;
        int64_t depth = which.sizes[loops - 2], height = which.sizes[loops - 1];
        int64_t plane = which.strides[loops - 2], pitch = which.strides[loops - 1];
        // A plane must be a whole number of rows that do not meet the next plane.
        if (pitch < element || plane % pitch != 0 || plane / pitch < height) return;
        // Loops further out are calls of their own.
        std::vector<int64_t> places = {0};
        for (size_t loop = 0; loop + 2 < loops; loop++) {
            std::vector<int64_t> more;
            if (int64_t(places.size()) * which.sizes[loop] > MAX_COPIES) return;
            for (int64_t place : places)
                for (int64_t i = 0; i < which.sizes[loop]; i++) more.push_back(place + i * which.strides[loop]);
            places = more;
        }
        std::vector<cudaMemcpy3DParms> copies;
        for (size_t i = 0; i < places.size(); i++) {
            char *packed_part = stream_bytes + int64_t(i) * depth * height * element;
            auto strided = make_cudaPitchedPtr(memory + places[i], size_t(pitch), size_t(element), size_t(plane / pitch));
            auto dense = make_cudaPitchedPtr(packed_part, size_t(element), size_t(element), size_t(height));
            cudaMemcpy3DParms copy = {};
            copy.srcPtr = pack ? strided : dense;
            copy.dstPtr = pack ? dense : strided;
            copy.extent = make_cudaExtent(size_t(element), size_t(height), size_t(depth));
            copy.kind = cudaMemcpyDeviceToDevice;
            copies.push_back(copy);
        }
        std::string name = "cudaMemcpy3DAsync";
        if (copies.size() > 1) name += " x" + std::to_string(copies.size());
        peers.push_back({name, [=] {
            for (const cudaMemcpy3DParms &copy : copies) CHECK(cudaMemcpy3DAsync(&copy, stream));
        }});
    }

    // Waits for the stream; says whether it took longer than a peer may.
    bool cut_off() {
        auto before = std::chrono::steady_clock::now();
        for (;;) {
            cudaError_t state = cudaStreamQuery(stream);
            if (state != cudaErrorNotReady) {
                CHECK(state);
                return seconds_since(before) > CUT_OFF_SECONDS;
            }
            if (seconds_since(before) > CUT_OFF_SECONDS) return true;
            usleep(100);
        }
    }

    // One call with the cache flushed, and one right after another.
    void time_once(const Peer &peer, Times &times) {
        for (bool cold : {true, false}) {
            if (cold) flush_cache();
            else peer.call();
            hold<<<1, 1, 0, stream>>>(HOLD_NANOSECONDS);
            CHECK(cudaEventRecord(begin, stream));
            peer.call();
            CHECK(cudaEventRecord(end, stream));
            CHECK(cudaEventSynchronize(end));
            float milliseconds = 0;
            CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
            (cold ? times.cold : times.warm).push_back(milliseconds * 1e3);
        }
    }

    int64_t differ(const char *a, const char *b, int64_t bytes) {
        unsigned long long found = 0;
        CHECK(cudaMemsetAsync(differences.data, 0, sizeof found, stream));
        count_differences<<<BLOCKS, THREADS, 0, stream>>>(reinterpret_cast<const uint64_t *>(a),
                                                          reinterpret_cast<const uint64_t *>(b), bytes / 8,
                                                          differences.data);
        CHECK(cudaMemcpyAsync(&found, differences.data, sizeof found, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
        return static_cast<int64_t>(found);
    }

    void measure(const cases::Case &which, bool pack, const std::vector<Peer> &peers) {
        std::vector<const Peer *> sound;
        double slowest = 0;
        for (const Peer &peer : peers) {
            bool yardstick = peer.name == "memcpy";
            try {
                // The yardstick moves packed bytes to packed bytes in both directions.
                bool to_packed = pack || yardstick;
                char *result = to_packed ? packed_target.data : target.data;
                int64_t bytes = rounded(to_packed ? which.packed_bytes : which.buffer_bytes);
                CHECK(cudaMemsetAsync(result, POISON, size_t(bytes), stream));
                CHECK(cudaStreamSynchronize(stream));
                auto before = std::chrono::steady_clock::now();
                peer.call();
                if (cut_off()) {
                    line(peer.name, which.name, pack, which.packed_bytes,
                         "\"cold_us\": null, \"warm_us\": null, \"cut_off\": true");
                    // It cannot be stopped; the alarm ends what takes too long.
                    CHECK(cudaStreamSynchronize(stream));
                    continue;
                }
                slowest = std::max(slowest, seconds_since(before));
                int64_t wrong = 0;
                if (yardstick) {
                    wrong = differ(result, packed_source.data, which.packed_bytes / 8 * 8);
                } else {
                    wrong = differ(result, pack ? wanted_packed.data : wanted_memory.data, bytes);
                }
                if (wrong != 0) {
                    wrong_bytes = true;
                    throw Failure{"wrong bytes in " + std::to_string(wrong) + " words"};
                }
                sound.push_back(&peer);
            } catch (const Failure &failure) {
                line(peer.name, which.name, pack, which.packed_bytes, error_text(failure.text));
            }
        }
        // Slow peers get fewer rounds, so that all cases fit the time.
        int rounds = slowest > 0.5 ? 3 : ROUNDS;
        std::vector<Times> times(sound.size());
        for (int round = 0; round < rounds; round++)
            for (size_t i = 0; i < sound.size(); i++) time_once(*sound[i], times[i]);
        for (size_t i = 0; i < sound.size(); i++)
            line(sound[i]->name, which.name, pack, which.packed_bytes,
                 times_text(median(times[i].cold), median(times[i].warm), times[i].cold.size()));
    }
};

void too_late(int) {
    // Every line is flushed when it is written.
    const char text[] = "peers: expected to end within 148 s, found more to do\n";
    ssize_t ignored = write(2, text, sizeof text - 1);
    (void)ignored;
    _exit(4);
}

}  // namespace

int main(int count, char **arguments) {
    if (count < 2 || count > 4) {
        std::fprintf(stderr, "usage: peers OUT.jsonl [bench/gpu/cases.json [PART-OF-A-NAME]]\n");
        return 2;
    }
    started = std::chrono::steady_clock::now();
    std::signal(SIGALRM, too_late);
    alarm(ALARM_SECONDS);
    out = std::fopen(arguments[1], "w");
    if (out == nullptr) {
        std::fprintf(stderr, "peers: %s: expected a file to write, found %s\n", arguments[1], std::strerror(errno));
        return 2;
    }
    try {
        std::vector<cases::Case> chosen;
        for (const cases::Case &which : cases::read(count > 2 ? arguments[2] : "bench/gpu/cases.json"))
            if (count < 4 || which.name.find(arguments[3]) != std::string::npos) chosen.push_back(which);
        Bench bench(chosen);
        bench.launches();
        for (const cases::Case &which : chosen) {
            if (seconds_since(started) > LAST_START_SECONDS) {
                for (bool pack : {true, false})
                    line("all", which.name, pack, which.packed_bytes, error_text("no time left"));
                continue;
            }
            try {
                bench.run(which);
            } catch (const Failure &failure) {
                for (bool pack : {true, false})
                    line("all", which.name, pack, which.packed_bytes, error_text(failure.text));
            }
        }
    } catch (const Failure &failure) {
        std::fprintf(stderr, "peers: %s\n", failure.text.c_str());
        return 4;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "peers: %s\n", error.what());
        return 2;
    }
    std::fclose(out);
    std::fprintf(stderr, "peers: %.1f s\n", seconds_since(started));
    return wrong_bytes ? 3 : 0;
}
