// One core call with the GIL released, which Ctrl-C may interrupt.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <exception>
#include <optional>

#include "kernelmill/threads.hpp"

namespace kernelmill::bindings {

namespace nb = nanobind;

// Work that takes less time than handing over the GIL keeps it.
constexpr size_t elements_worth_releasing = 2048;

// Calls take(), which acquires the GIL. If the interpreter is being finalized, CPython up to 3.13
// instead ends the thread with an exception that would abort the process in C++ functions. The
// thread then waits for the end of the process, as in CPython 3.14. This only happens in daemon
// threads.
template <class Take>
auto take_gil(Take&& take) {
    try {
        return take();
    } catch (...) {
        while (true) pause();
    }
}

// Returns the result of call(), executed without the GIL.
template <class Call>
auto without_gil(Call&& call) {
    std::optional<decltype(call())> result;
    std::exception_ptr failed;
    PyThreadState* const thread = PyEval_SaveThread();
    try {
        result = call();
    } catch (const std::exception&) {
        failed = std::current_exception();
    }
    take_gil([thread] { PyEval_RestoreThread(thread); });
    if (failed) std::rethrow_exception(failed);
    return *result;
}

// Runs call(execution), a core function that processes `elements` elements and returns false if it
// is interrupted. The interpreter's signal handlers run in between; if one raises (Ctrl-C), the
// work stops and the exception propagates.
template <class Call>
void run(int n_threads, size_t elements, Call&& call) {
    Execution execution;
    execution.n_threads = n_threads;
    if (elements <= elements_worth_releasing) {
        call(execution);
        return;
    }
    execution.interrupted = [](void*) {
        const PyGILState_STATE state = take_gil([] { return PyGILState_Ensure(); });
        const bool raised = PyErr_CheckSignals() != 0;
        PyGILState_Release(state);
        return raised;
    };
    if (!without_gil([&] { return call(execution); })) throw nb::python_error();
}

}  // namespace kernelmill::bindings
