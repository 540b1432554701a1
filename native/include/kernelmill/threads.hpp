// A lazily started pool of threads, shared by all callers in the process.
//
// Any number of threads may call parallel_for at once; each also works on its own range, so a call
// finishes even when every worker is busy elsewhere. A forked child starts with an empty pool.
#pragma once

#include <cstddef>
#include <type_traits>

namespace kernelmill {

// The number of CPUs that this process may use, or OMP_NUM_THREADS if that is smaller.
int default_num_threads();

int get_num_threads();
void set_num_threads(int count);  // count >= 1

// The number of threads of a call, and a check whether it should stop.
struct Execution {
    int n_threads = 0;  // 0: get_num_threads()
    // Called by the calling thread between pieces of work, several times a second; true stops.
    bool (*interrupted)(void* context) = nullptr;
    void* context = nullptr;
};

using RangeFunction = void (*)(void* context, size_t begin, size_t end);

// Calls function(context, begin, end) over consecutive pieces of [0, count) of `grain` each (the
// last may be shorter), in any order and on any thread. Returns false if it was interrupted, in
// which case some pieces were not done. Rethrows the first exception of a piece. Called from inside
// a piece, it runs serially.
bool parallel_for(size_t count, size_t grain, const Execution& execution, RangeFunction function,
                  void* context);

// Inside a piece: the number of the calling thread among those that share the job, from 0 to
// most_participants(execution) - 1, so that each can have scratch memory of its own.
int participant();
int most_participants(const Execution& execution);

template <class Function>
bool parallel_for(size_t count, size_t grain, const Execution& execution, Function&& function) {
    auto call = [](void* context, size_t begin, size_t end) {
        (*static_cast<std::remove_reference_t<Function>*>(context))(begin, end);
    };
    return parallel_for(count, grain, execution, call, &function);
}

}  // namespace kernelmill
