#include "kernelmill/isa.hpp"

#include <atomic>
#include <stdexcept>

#include "kernel_table.hpp"

namespace kernelmill {

namespace baseline {
extern const Target target;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Target target;
}
namespace avx512 {
extern const Target target;
}
#endif

#if defined(KERNELMILL_EMULATED_512)
namespace emulated512 {
extern const Target target;
}
#endif

namespace {

struct Candidate {
    const Target* target;
    bool runs_here;
};

std::vector<Candidate> candidates() {
    std::vector<Candidate> list{{&baseline::target, true}};
#if defined(__x86_64__)
    __builtin_cpu_init();
    list.push_back(
        {&avx2::target, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")});
    list.push_back({&avx512::target,
                    __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")});
#endif
#if defined(KERNELMILL_EMULATED_512)
    list.push_back({&emulated512::target, true});
#endif
    return list;
}

const Target* strongest() {
    const Target* best = nullptr;
    for (const Candidate& c : candidates()) {
        if (c.runs_here) best = c.target;
    }
    return best;
}

std::atomic<const Target*>& active() {
    static std::atomic<const Target*> target{strongest()};
    return target;
}

}  // namespace

const Target& active_target() { return *active().load(std::memory_order_relaxed); }

std::vector<std::string> built_isas() {
    std::vector<std::string> names;
    for (const Candidate& c : candidates()) names.push_back(c.target->name);
    return names;
}

std::vector<std::string> available_isas() {
    std::vector<std::string> names;
    for (const Candidate& c : candidates()) {
        if (c.runs_here) names.push_back(c.target->name);
    }
    return names;
}

std::string get_isa() { return active_target().name; }

void set_isa(const std::string& name) {
    for (const Candidate& c : candidates()) {
        if (c.runs_here && name == c.target->name) {
            active() = c.target;
            return;
        }
    }
    throw std::invalid_argument("instruction set '" + name + "' is not available here");
}

}  // namespace kernelmill
