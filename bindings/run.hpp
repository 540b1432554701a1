// One core call with the GIL released, which Ctrl-C may interrupt.
#pragma once

#include <nanobind/nanobind.h>

#include "kernelmill/threads.hpp"

namespace kernelmill::bindings {

namespace nb = nanobind;

// Runs call(execution), a core function that returns false when interrupted. The interpreter's
// signal handlers run on the way; if one raises (Ctrl-C), the work stops and the exception goes on.
template <class Call>
void run(int n_threads, Call&& call) {
    Execution execution;
    execution.n_threads = n_threads;
    execution.interrupted = [](void*) {
        nb::gil_scoped_acquire acquire;
        return PyErr_CheckSignals() != 0;
    };
    bool done;
    {
        nb::gil_scoped_release release;
        done = call(execution);
    }
    if (!done) throw nb::python_error();
}

}  // namespace kernelmill::bindings
