// Any text: the parser stays inside its arrays, gives ascending indices below the limit, and the
// same rows whether the values are float or double. Run by `make fuzz-native` under ASan and UBSan.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "kernelmill/svmlight.hpp"

namespace {

using namespace kernelmill;

void require(bool holds) {
    if (!holds) std::abort();
}

template <class T>
SvmlightOutcome parse(const std::vector<char>& text, int32_t largest_index) {
    const SvmlightBounds bounds = svmlight_bounds(text.data(), text.size());
    // Exactly the space that the bounds promise to be enough, so that ASan sees every byte beyond.
    std::vector<double> labels(bounds.rows);
    std::vector<int32_t> starts(bounds.rows + 1), indices(bounds.entries);
    std::vector<T> values(bounds.entries);
    const SvmlightArrays<T> out{labels.data(), starts.data(), indices.data(),
                                values.data(), bounds.rows,   bounds.entries};
    const SvmlightOutcome found = parse_svmlight(text.data(), text.size(), largest_index, out);
    require(found.rows <= bounds.rows && found.entries <= bounds.entries);
    if (found.problem != SvmlightProblem::none) {
        require(found.position <= text.size());
        return found;
    }
    for (size_t row = 0; row < found.rows; ++row) {
        require(std::isfinite(labels[row]));
        require(0 <= starts[row] && starts[row] <= starts[row + 1]);
        for (int32_t k = starts[row]; k < starts[row + 1]; ++k) {
            require(0 <= indices[k] && indices[k] <= largest_index);
            require(k == starts[row] || indices[k - 1] < indices[k]);
            require(std::isfinite(values[k]));
        }
    }
    return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::vector<char> text(data, data + size);
    if (text.empty() || text.back() != '\n') text.push_back('\n');  // as the reader does
    for (const int32_t largest : {INT32_MAX - 1, 7}) {
        const SvmlightOutcome wide = parse<double>(text, largest);
        const SvmlightOutcome narrow = parse<float>(text, largest);
        if (wide.problem == SvmlightProblem::none && narrow.problem == SvmlightProblem::none)
            require(wide.rows == narrow.rows && wide.entries == narrow.entries);
    }
    return 0;
}
