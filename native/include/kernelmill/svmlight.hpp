// The svmlight / LIBSVM text format: a line is `label [qid:n] index:value index:value ... #
// comment`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernelmill {

// Upper bounds of the numbers of rows and entries of a text: its line ends and its colons. Comments
// and blank lines reduce the actual numbers.
struct SvmlightBounds {
    size_t rows = 0, entries = 0;
};

SvmlightBounds svmlight_bounds(const char* text, size_t size);

// The arrays of a matrix in compressed rows, to which a text is written; `starts` has one element
// more than rows.
template <class T>
struct SvmlightArrays {
    double* labels;
    int32_t* starts;
    int32_t* indices;
    T* values;
    size_t rows, entries;  // available space
};

enum class SvmlightProblem {
    none,
    label,           // not a finite number
    several_labels,  // 1,2
    no_label,        // the line starts with index:value
    index,           // not an integer
    negative_index,
    large_index,  // above the largest allowed
    order,        // not above the index before it
    colon,        // no colon after an index
    value,        // not a finite number
    large_value,  // beyond the largest number of the type
    separator,    // something else than a blank after a label or a value
};

// The name of a problem.
const char* name_of(SvmlightProblem problem);

// The part of the text that was read: all of it, or the lines before the one with a problem.
struct SvmlightOutcome {
    size_t rows = 0, entries = 0;
    size_t lines = 0;              // line ends passed
    int64_t smallest = INT64_MAX;  // of the indices, as they are in the text
    int64_t largest = -1;
    SvmlightProblem problem = SvmlightProblem::none;
    size_t position = 0;  // of the offending byte in the text
    size_t column = 0;    // of the offending byte in its line, from 0
};

// Reads `text`, whose last byte is a line end, as is checked; nothing beyond it is read. Indices
// stay as they are in the text, may not exceed `largest_index`, and increase strictly in a row.
// Values are rounded to T once, whatever the locale. Throws std::invalid_argument for a text
// without a line end and std::length_error if the arrays are too small for it.
template <class T>
SvmlightOutcome parse_svmlight(const char* text, size_t size, int32_t largest_index,
                               const SvmlightArrays<T>& out);

}  // namespace kernelmill
