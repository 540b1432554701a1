#include "kernelmill/threads.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace kernelmill {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto poll_interval = std::chrono::milliseconds(50);

// How long an idle thread looks for work, or a caller for the end of it, before it sleeps. Waking a
// sleeper costs some ten microseconds, as much as transforming a small batch.
constexpr auto spin_time = std::chrono::microseconds(200);

thread_local bool inside_a_piece = false;
thread_local int participant_number = 0;

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

template <class Condition>
bool spin_until(Condition condition) {
    const auto start = Clock::now();
    for (auto now = start; now - start < spin_time; now = Clock::now()) {
        for (int i = 0; i < 32; ++i) {
            if (condition()) return true;
            relax();
        }
    }
    return condition();
}

// Asks now and then, between pieces, whether the calling thread should stop.
class Poll {
  public:
    explicit Poll(const Execution* caller)
        : caller_(caller && caller->interrupted ? caller : nullptr) {
        if (caller_) next_ = Clock::now() + poll_interval;
    }
    bool wants_to_stop() {
        if (!caller_ || Clock::now() < next_) return false;
        next_ = Clock::now() + poll_interval;
        return caller_->interrupted(caller_->context);
    }

  private:
    const Execution* caller_;
    Clock::time_point next_;
};

// Moves the calling thread to the `number`-th CPU after `origin` among those it may use, and leaves
// it free to go elsewhere. The kernel may start or wake a worker on its caller's CPU, and leave
// both there for a tenth of a second although others are idle; so two threads are no faster than
// one, or slower.
void move_away_from(int origin, int number) {
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    const int count = CPU_COUNT(&allowed);
    if (origin < 0 || count < 2) return;
    int cpu = origin;
    for (int steps = 1 + (number - 1) % (count - 1); steps > 0; --steps) {
        do cpu = (cpu + 1) % CPU_SETSIZE;
        while (!CPU_ISSET(cpu, &allowed));
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0) sched_setaffinity(0, sizeof allowed, &allowed);
#else
    (void)origin, (void)number;
#endif
}

int current_cpu() {
#if defined(__linux__)
    return sched_getcpu();
#else
    return -1;
#endif
}

// One call of parallel_for. Each participant has a share of its own, always the same part of the
// range, so that what it left in its cache the last time is still there; done with that, it helps
// with the others' shares.
struct Job {
    Job(RangeFunction function, void* context, size_t count, size_t grain, int threads)
        : function(function), context(context), count(count), grain(grain) {
        const size_t pieces = (count - 1) / grain + 1;
        used = std::min(static_cast<size_t>(threads), most_shares);
        for (size_t i = 0; i < used; ++i) {
            shares[i].next = pieces * i / used;
            shares[i].end = pieces * (i + 1) / used;
        }
    }

    // The next piece for a thread that started with share `own`; false if nothing is left.
    bool take(size_t own, size_t& begin, size_t& end) {
        for (size_t i = 0; i < used; ++i) {
            Share& share = shares[(own + i) % used];
            if (share.next.load(std::memory_order_relaxed) >= share.end) continue;
            const size_t piece = share.next.fetch_add(1, std::memory_order_relaxed);
            if (piece >= share.end) continue;
            begin = piece * grain;
            end = std::min(count, begin + grain);
            return true;
        }
        return false;
    }

    struct alignas(64) Share {
        std::atomic<size_t> next;
        size_t end;
    };
    static constexpr size_t most_shares = 16;

    RangeFunction function;
    void* context;
    size_t count, grain;
    size_t used;
    Share shares[most_shares];
    int caller_cpu = current_cpu();
    std::atomic<int> joined{1};  // participants so far; the caller has share 0
    std::atomic<bool> stop{false};
    std::atomic<int> active_helpers{0};  // changed with the pool's lock held
    int free_places = 0;                 // guarded by the pool's lock
    std::exception_ptr error = nullptr;  // guarded by the pool's lock
};

class Pool {
  public:
    // Runs `job` on the calling thread and up to `helpers` others; returns when no thread uses it.
    void run(Job& job, int helpers, const Execution& execution);

    std::mutex lock;

  private:
    // Is this the child of a fork that happened during a call, in a handler of `interrupted`? Its
    // lock is then taken for ever, and its workers do not exist.
    bool forked_away() const;
    void start_workers(int wanted);
    void worker(int number);
    void work(Job& job, size_t own_share, const Execution* caller);

    std::condition_variable work_available, job_left;
    std::deque<Job*> open_jobs;           // those with free places
    std::atomic<size_t> jobs_waiting{0};  // open_jobs.size(), readable without the lock
    int workers = 0;
};

void Pool::work(Job& job, size_t own_share, const Execution* caller) {
    const bool outer = std::exchange(inside_a_piece, true);
    participant_number = static_cast<int>(own_share);
    Poll poll(caller);
    try {
        size_t begin, end;
        while (!forked_away() && !job.stop.load(std::memory_order_relaxed) &&
               job.take(own_share, begin, end)) {
            job.function(job.context, begin, end);
            if (poll.wants_to_stop()) job.stop = true;
        }
    } catch (...) {
        std::lock_guard guard(lock);
        if (!job.error) job.error = std::current_exception();
        job.stop = true;
    }
    inside_a_piece = outer;
}

void Pool::worker(int number) {
    std::unique_lock guard(lock);
    for (;;) {
        if (open_jobs.empty()) {
            guard.unlock();
            spin_until([&] { return jobs_waiting.load(std::memory_order_relaxed) > 0; });
            guard.lock();
            work_available.wait(guard, [&] { return !open_jobs.empty(); });
        }
        Job& job = *open_jobs.front();
        ++job.active_helpers;
        if (--job.free_places == 0) {
            open_jobs.pop_front();
            jobs_waiting = open_jobs.size();
        }
        guard.unlock();
        if (current_cpu() == job.caller_cpu) move_away_from(job.caller_cpu, number);
        work(job, static_cast<size_t>(job.joined.fetch_add(1)), nullptr);
        guard.lock();
        // The caller may return, and the job vanish, as soon as it sees 0.
        if (--job.active_helpers == 0) job_left.notify_all();
    }
}

void Pool::start_workers(int wanted) {
    if (workers >= wanted) return;
    // Signals belong to the threads of the user, above all Ctrl-C to the main one.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        for (; workers < wanted; ++workers) {
            std::thread([this, number = workers + 1] { worker(number); }).detach();
        }
    } catch (const std::exception&) {
        // No more threads, or no memory for them: the call runs on those there are.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Pool::run(Job& job, int helpers, const Execution& execution) {
    {
        std::lock_guard guard(lock);
        start_workers(helpers);
        job.free_places = std::min(helpers, workers);
        if (job.free_places > 0) {
            open_jobs.push_back(&job);
            jobs_waiting = open_jobs.size();
        }
    }
    if (helpers == 1) {
        work_available.notify_one();
    } else {
        work_available.notify_all();
    }
    work(job, 0, &execution);
    if (forked_away()) {
        throw std::runtime_error(
            "this process was forked, from a signal handler, in the middle of a parallel "
            "computation: the threads that shared in it are gone, and with them the result");
    }
    std::unique_lock guard(lock);
    const auto place = std::find(open_jobs.begin(), open_jobs.end(), &job);
    if (place != open_jobs.end()) {  // no further helper may come
        open_jobs.erase(place);
        jobs_waiting = open_jobs.size();
    }
    if (job.active_helpers.load() != 0) {
        guard.unlock();
        spin_until([&] { return job.active_helpers.load() == 0; });
        guard.lock();
        job_left.wait(guard, [&] { return job.active_helpers.load() == 0; });
    }
}

// Number 0 for a thread that works alone; the number in an outer job is restored at the end.
class OnlyParticipant {
  public:
    OnlyParticipant() : outer_(std::exchange(participant_number, 0)) {}
    ~OnlyParticipant() { participant_number = outer_; }
    OnlyParticipant(const OnlyParticipant&) = delete;
    OnlyParticipant& operator=(const OnlyParticipant&) = delete;

  private:
    int outer_;
};

// Without helpers no lock is needed, and a call of one piece costs next to nothing.
bool run_alone(RangeFunction function, void* context, size_t count, size_t grain,
               const Execution& execution) {
    const OnlyParticipant alone;
    if (count <= grain) {
        function(context, 0, count);
        return true;
    }
    Poll poll(&execution);
    for (size_t begin = 0; begin < count; begin += grain) {
        function(context, begin, begin + std::min(grain, count - begin));
        if (poll.wants_to_stop()) return false;
    }
    return true;
}

Pool* pool = nullptr;
std::once_flag pool_started;

// fork() copies memory but not threads. The lock is held across it, so that the child sees the pool
// between two states; the child then leaves the old pool, whose workers do not exist there, alone.
void before_fork() { pool->lock.lock(); }
void after_fork_in_parent() { pool->lock.unlock(); }
void after_fork_in_child() {
    pool = new Pool;
    inside_a_piece = false;
}

bool Pool::forked_away() const { return pool != this; }

Pool& the_pool() {
    std::call_once(pool_started, [] {
        pool = new Pool;  // never deleted: workers may outlive static destructors
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    });
    return *pool;
}

std::atomic<int>& thread_count() {
    static std::atomic<int> count{default_num_threads()};
    return count;
}

int allowed_cpus() {
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// More threads than this never help; a typing error should not start a million.
int most_threads() {
    static const int most = std::max(16, 4 * allowed_cpus());
    return most;
}

}  // namespace

int default_num_threads() {
    int count = allowed_cpus();
    if (const char* text = std::getenv("OMP_NUM_THREADS")) {
        // A list gives one number per nesting level; the first is ours. Nonsense is ignored.
        char* end = nullptr;
        const long wanted = std::strtol(text, &end, 10);
        if (end != text && wanted >= 1) count = static_cast<int>(std::min<long>(count, wanted));
    }
    return count;
}

int get_num_threads() { return thread_count(); }

int participant() { return participant_number; }

int most_participants(const Execution& execution) {
    const int wanted = execution.n_threads > 0 ? execution.n_threads : get_num_threads();
    return std::min(wanted, most_threads());
}

void set_num_threads(int count) { thread_count() = std::clamp(count, 1, most_threads()); }

bool parallel_for(size_t count, size_t grain, const Execution& execution, RangeFunction function,
                  void* context) {
    if (count == 0) return true;
    grain = std::max<size_t>(grain, 1);
    const size_t pieces = (count - 1) / grain + 1;
    const int threads = static_cast<int>(
        std::min<size_t>(static_cast<size_t>(most_participants(execution)), pieces));
    if (threads <= 1 || inside_a_piece) {
        return run_alone(function, context, count, grain, execution);
    }
    Job job(function, context, count, grain, threads);
    the_pool().run(job, threads - 1, execution);
    if (job.error) std::rethrow_exception(job.error);
    return !job.stop;
}

}  // namespace kernelmill
