// Runs every test, or those whose name contains the first argument.
#include <cstring>

#include "check.hpp"

int main(int argc, char** argv) {
    using namespace kernelmill::tests;
    int failed = 0, run = 0;
    for (const Test& test : all_tests()) {
        if (argc > 1 && !std::strstr(test.name, argv[1])) continue;
        const int before = failures();
        test.body();
        const bool passed = failures() == before;
        std::printf("%s %s\n", passed ? "ok    " : "FAILED", test.name);
        ++run;
        failed += !passed;
    }
    std::printf("%d passed, %d failed\n", run - failed, failed);
    return failed != 0 || run == 0;
}
