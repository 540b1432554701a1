#include "kernelmill/svmlight.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "svmlight_number.hpp"

namespace kernelmill {
namespace {

using svmlight::convert;
using svmlight::Decimal;
using svmlight::is_digit;
using svmlight::scan_decimal;

constexpr size_t lanes = 32;

// Counts in bytes, side by side, which the compiler turns into vectors.
struct LaneCounts {
    uint8_t ends[lanes] = {}, colons[lanes] = {};

    void add(const char* text) {
        for (size_t i = 0; i < lanes; ++i) ends[i] += text[i] == '\n';
        for (size_t i = 0; i < lanes; ++i) colons[i] += text[i] == ':';
    }
    void add_to(SvmlightBounds& bounds) const {
        for (size_t i = 0; i < lanes; ++i) {
            bounds.rows += ends[i];
            bounds.entries += colons[i];
        }
    }
};

bool is_blank(char c) { return c == ' ' || c == '\t'; }

const char* skip_blanks(const char* p) {
    while (is_blank(*p)) ++p;
    return p;
}

// A line ends with \n or \r\n; a comment is passed over as part of the end. There is a \n behind a
// \r, since the text ends with one.
bool at_line_end(const char* p) { return *p == '\n' || *p == '#' || (*p == '\r' && p[1] == '\n'); }

template <class T>
class Parser {
  public:
    Parser(const char* text, size_t size, int32_t largest_index, const SvmlightArrays<T>& out)
        : text_(text), end_(text + size), largest_index_(largest_index), out_(out) {}

    SvmlightOutcome run() {
        const char* p = text_;
        out_.starts[0] = 0;
        while (p != end_) {
            line_ = p;
            p = skip_blanks(p);
            if (!at_line_end(p)) {
                p = row(p);
                if (!p) return outcome_;
            }
            p = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(end_ - p))) + 1;
            ++outcome_.lines;
        }
        return outcome_;
    }

  private:
    // A line from its label on; returns its end, or null after a problem.
    const char* row(const char* p) {
        if (outcome_.rows == out_.rows) throw std::length_error("too few rows for the text");
        double label;
        p = read_label(p, label);
        if (!p) return nullptr;
        size_t entry = outcome_.entries;
        int64_t before = -1, first = INT64_MAX;
        while (true) {
            if (*p == '\n') break;
            if (is_blank(*p)) {
                p = skip_blanks(p);
                if (at_line_end(p)) break;
            } else if (at_line_end(p)) {
                break;
            } else {
                return fail(SvmlightProblem::separator, p);
            }
            int64_t index;
            p = read_index(p, before, index);
            if (!p) return nullptr;
            if (before < 0) first = index;
            if (entry == out_.entries) throw std::length_error("too few entries for the text");
            p = read_value(p, out_.values[entry]);
            if (!p) return nullptr;
            out_.indices[entry++] = static_cast<int32_t>(index);
            before = index;
        }
        outcome_.smallest = std::min(outcome_.smallest, first);
        outcome_.largest = std::max(outcome_.largest, before);
        outcome_.entries = entry;
        out_.labels[outcome_.rows++] = label;
        out_.starts[outcome_.rows] = static_cast<int32_t>(entry);
        return p;
    }

    // The label, and the group of a ranking behind it, which is passed over.
    const char* read_label(const char* p, double& label) {
        const Decimal number = scan_decimal(p);
        if (!number.valid) return fail(SvmlightProblem::label, p);
        if (*number.end == ':') return fail(SvmlightProblem::no_label, p);
        if (*number.end == ',') return fail(SvmlightProblem::several_labels, number.end);
        if (!convert(p, number, label)) return fail(SvmlightProblem::label, p);
        p = number.end;
        if (!is_blank(*p)) return p;
        p = skip_blanks(p);
        if (*p == 'q' && p[1] == 'i' && p[2] == 'd' && p[3] == ':') {
            while (!is_blank(*p) && !at_line_end(p)) ++p;
            return p;
        }
        return p - 1;  // on a blank: what follows a label is separated from it
    }

    // An index and its colon.
    const char* read_index(const char* p, int64_t before, int64_t& index) {
        if (!is_digit(*p)) {
            return fail(*p == '-' && is_digit(p[1]) ? SvmlightProblem::negative_index
                                                    : SvmlightProblem::index,
                        p);
        }
        const char* const front = p;
        index = *p++ - '0';
        for (; is_digit(*p); ++p) {
            index = index * 10 + (*p - '0');
            if (index > largest_index_) return fail(SvmlightProblem::large_index, front);
        }
        if (*p != ':') return fail(SvmlightProblem::colon, p);
        if (index > largest_index_) return fail(SvmlightProblem::large_index, front);
        if (index <= before) return fail(SvmlightProblem::order, front);
        return p + 1;
    }

    const char* read_value(const char* p, T& value) {
        if (is_digit(*p) && (is_blank(p[1]) || p[1] == '\n')) {  // most are 1 in many files
            value = static_cast<T>(*p - '0');
            return p + 1;
        }
        const Decimal number = scan_decimal(p);
        if (!number.valid) return fail(SvmlightProblem::value, p);
        if (!convert(p, number, value)) return fail(SvmlightProblem::large_value, p);
        return number.end;
    }

    const char* fail(SvmlightProblem problem, const char* p) {
        outcome_.problem = problem;
        outcome_.position = static_cast<size_t>(p - text_);
        outcome_.column = static_cast<size_t>(p - line_);
        return nullptr;
    }

    const char* const text_;
    const char* const end_;
    const int64_t largest_index_;
    const SvmlightArrays<T> out_;
    const char* line_ = nullptr;
    SvmlightOutcome outcome_;
};

}  // namespace

SvmlightBounds svmlight_bounds(const char* text, size_t size) {
    SvmlightBounds bounds;
    const char* const end = text + size;
    while (static_cast<size_t>(end - text) >= lanes) {
        LaneCounts counts;
        const size_t groups = std::min<size_t>(255, static_cast<size_t>(end - text) / lanes);
        for (size_t i = 0; i < groups; ++i, text += lanes) counts.add(text);
        counts.add_to(bounds);
    }
    for (; text != end; ++text) {
        bounds.rows += *text == '\n';
        bounds.entries += *text == ':';
    }
    return bounds;
}

template <class T>
SvmlightOutcome parse_svmlight(const char* text, size_t size, int32_t largest_index,
                               const SvmlightArrays<T>& out) {
    if (size == 0) {
        out.starts[0] = 0;
        return {};
    }
    if (text[size - 1] != '\n') throw std::invalid_argument("the text must end with a line end");
    if (size > INT32_MAX) throw std::invalid_argument("the text must be shorter than 2**31 bytes");
    return Parser<T>(text, size, largest_index, out).run();
}

template SvmlightOutcome parse_svmlight(const char*, size_t, int32_t, const SvmlightArrays<float>&);
template SvmlightOutcome parse_svmlight(const char*, size_t, int32_t,
                                        const SvmlightArrays<double>&);

const char* name_of(SvmlightProblem problem) {
    switch (problem) {
        case SvmlightProblem::none: return "none";
        case SvmlightProblem::label: return "label";
        case SvmlightProblem::several_labels: return "several_labels";
        case SvmlightProblem::no_label: return "no_label";
        case SvmlightProblem::index: return "index";
        case SvmlightProblem::negative_index: return "negative_index";
        case SvmlightProblem::large_index: return "large_index";
        case SvmlightProblem::order: return "order";
        case SvmlightProblem::colon: return "colon";
        case SvmlightProblem::value: return "value";
        case SvmlightProblem::large_value: return "large_value";
        case SvmlightProblem::separator: return "separator";
    }
    return "none";
}

}  // namespace kernelmill
