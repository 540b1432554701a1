#include "kernelmill/threads.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "check.hpp"

namespace kernelmill::tests {
namespace {

// Every index exactly once, whatever the numbers of items, of threads and of items a piece.
bool covers(size_t count, size_t grain, int threads) {
    std::vector<std::atomic<int>> seen(count);
    parallel_for(count, grain, {.n_threads = threads}, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) ++seen[i];
    });
    for (auto& s : seen) {
        if (s != 1) return false;
    }
    return true;
}

TEST(threads_cover_every_index_once) {
    for (size_t count : {0, 1, 2, 7, 100, 1001}) {
        for (size_t grain : {0, 1, 3, 1000, 5000}) {
            for (int threads : {1, 2, 3, 8}) CHECK(covers(count, grain, threads));
        }
    }
}

TEST(threads_serve_many_callers_at_once) {
    std::atomic<int> good{0};
    std::vector<std::thread> callers;
    for (int t = 0; t < 8; ++t) {
        callers.emplace_back([&] {
            for (int i = 0; i < 50; ++i) good += covers(200, 7, 1 + i % 4);
        });
    }
    for (auto& caller : callers) caller.join();
    CHECK(good == 8 * 50);
}

TEST(threads_run_nested_calls_serially) {
    std::atomic<size_t> total{0};
    parallel_for(16, 1, {.n_threads = 4}, [&](size_t, size_t) {
        const auto outer = std::this_thread::get_id();
        parallel_for(100, 3, {.n_threads = 4}, [&](size_t begin, size_t end) {
            CHECK(std::this_thread::get_id() == outer);
            total += end - begin;
        });
    });
    CHECK(total == 1600);
}

TEST(threads_pass_on_the_first_exception) {
    for (int threads : {1, 4}) {
        bool caught = false;
        try {
            parallel_for(100, 1, {.n_threads = threads}, [&](size_t begin, size_t) {
                if (begin == 17) throw std::runtime_error("seventeen");
            });
        } catch (const std::runtime_error& error) {
            caught = std::string(error.what()) == "seventeen";
        }
        CHECK(caught);
        CHECK(covers(1000, 10, threads));  // and the pool is as good as before
    }
}

TEST(threads_stop_when_interrupted) {
    for (int threads : {1, 3}) {
        std::atomic<int> pieces{0};
        Execution execution{.n_threads = threads};
        execution.interrupted = [](void*) { return true; };
        const bool done = parallel_for(100000, 1, execution, [&](size_t, size_t) {
            ++pieces;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        });
        CHECK(!done);
        CHECK(pieces < 100000);
    }
}

// In the child of a fork the workers are gone; it must start its own, whatever the others did.
TEST(threads_survive_a_fork_while_others_compute) {
#if defined(__SANITIZE_THREAD__)
    return;  // the sanitizer itself does not support threads in a child of a threaded process
#endif
    std::atomic<bool> stop{false};
    std::thread busy([&] {
        while (!stop) covers(500, 5, 3);
    });
    for (int i = 0; i < 20; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);  // a hang ends the child with a signal
            _exit(covers(1000, 10, 3) ? 0 : 1);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    stop = true;
    busy.join();
}

// A signal handler that forks in the middle of a call: the child gets an error, not a hang.
TEST(threads_refuse_to_go_on_in_a_child_forked_halfway) {
#if defined(__SANITIZE_THREAD__)
    return;
#endif
    static pid_t child;
    child = -1;
    Execution execution{.n_threads = 2};
    execution.interrupted = [](void*) {
        if (child < 0) {
            child = fork();
            if (child == 0) alarm(20);
        }
        return false;
    };
    bool rejected = false;
    try {
        parallel_for(200, 1, execution, [](size_t, size_t) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        });
    } catch (const std::runtime_error&) {
        rejected = true;
    }
    if (child == 0) _exit(rejected ? 0 : 1);
    CHECK(!rejected);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(threads_count_can_be_set) {
    const int before = get_num_threads();
    set_num_threads(3);
    CHECK(get_num_threads() == 3);
    set_num_threads(before);
    CHECK(default_num_threads() >= 1);
}

}  // namespace
}  // namespace kernelmill::tests
