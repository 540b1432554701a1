// One core call with the GIL released, which Ctrl-C may interrupt.
#pragma once

#include <nanobind/nanobind.h>

#include "kernelmill/threads.hpp"

namespace kernelmill::bindings {

namespace nb = nanobind;

// Work that is done sooner than the GIL can be handed over keeps it.
constexpr size_t elements_worth_releasing = 2048;

// Runs call(execution), a core function that works through `elements` elements and returns false
// when interrupted. The interpreter's signal handlers run on the way; if one raises (Ctrl-C), the
// work stops and the exception goes on.
template <class Call>
void run(int n_threads, size_t elements, Call&& call) {
    Execution execution;
    execution.n_threads = n_threads;
    if (elements <= elements_worth_releasing) {
        call(execution);
        return;
    }
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
