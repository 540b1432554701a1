// The little a native test needs: a list of tests, CHECK, and a loop over the instruction sets.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "kernelmill/isa.hpp"

namespace kernelmill::tests {

struct Test {
    const char* name;
    std::function<void()> body;
};

inline std::vector<Test>& all_tests() {
    static std::vector<Test> tests;
    return tests;
}
inline int& failures() {
    static int count = 0;
    return count;
}

struct Register {
    Register(const char* name, std::function<void()> body) { all_tests().push_back({name, body}); }
};

inline void check(bool holds, const char* what, const char* file, int line) {
    if (holds) return;
    ++failures();
    std::printf("%s:%d: on %s: %s does not hold\n", file, line, get_isa().c_str(), what);
}

template <class Body>
void on_every_isa(Body&& body) {
    const std::string before = get_isa();
    for (const std::string& isa : available_isas()) {
        set_isa(isa);
        body();
    }
    set_isa(before);
}

}  // namespace kernelmill::tests

#define CHECK(condition) ::kernelmill::tests::check(condition, #condition, __FILE__, __LINE__)
#define TEST(name)                                                           \
    static void name();                                                      \
    static const ::kernelmill::tests::Register register_##name{#name, name}; \
    static void name()
