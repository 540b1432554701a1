// The svmlight parser: what it reads, what it rejects and where, and that it keeps to its text.
// Texts are copied into memory of exactly their size, so that the sanitizers see a byte read beyond
// it.
#include "kernelmill/svmlight.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "check.hpp"

namespace kernelmill::tests {
namespace {

template <class T>
struct Read {
    SvmlightOutcome outcome;
    std::vector<double> labels;
    std::vector<int32_t> starts, indices;
    std::vector<T> values;
};

template <class T = double>
Read<T> read(const std::string& text, int32_t largest_index = INT32_MAX) {
    const std::unique_ptr<char[]> exact(new char[text.size()]);
    std::memcpy(exact.get(), text.data(), text.size());
    const auto bounds = svmlight_bounds(exact.get(), text.size());
    Read<T> r;
    r.labels.resize(bounds.rows);
    r.starts.resize(bounds.rows + 1);
    r.indices.resize(bounds.entries);
    r.values.resize(bounds.entries);
    r.outcome = parse_svmlight<T>(exact.get(), text.size(), largest_index,
                                  {r.labels.data(), r.starts.data(), r.indices.data(),
                                   r.values.data(), bounds.rows, bounds.entries});
    r.labels.resize(r.outcome.rows);
    r.starts.resize(r.outcome.rows + 1);
    r.indices.resize(r.outcome.entries);
    r.values.resize(r.outcome.entries);
    return r;
}

template <class T>
bool fails(const std::string& text, SvmlightProblem problem, size_t lines, size_t column,
           int32_t largest_index = INT32_MAX) {
    const auto outcome = read<T>(text, largest_index).outcome;
    const bool as_expected =
        outcome.problem == problem && outcome.lines == lines && outcome.column == column;
    if (!as_expected) {
        std::printf("%s: %s in line %zu, column %zu\n", text.c_str(), name_of(outcome.problem),
                    outcome.lines, outcome.column);
    }
    return as_expected;
}

template <class T>
T value_of(const std::string& number) {
    const auto r = read<T>("1 7:" + number + "\n");
    return r.values.size() == 1 ? r.values[0] : std::numeric_limits<T>::quiet_NaN();
}

template <class T>
bool same_bits(T a, T b) {
    return std::memcmp(&a, &b, sizeof(T)) == 0;
}

TEST(svmlight_reads_rows) {
    const auto r = read(
        "+1 1:0.5 3:2\n"
        "# a comment 9:9\n"
        "\n"
        " \t\r\n"
        "-1\t qid:3 2:1e-3\t10:-4.25 # 11:1\r\n"
        "2.5\n"
        "0 0:1#2:2\n"
        "3 qid:7\n"
        "1 2147483647:1 \n");
    CHECK(r.outcome.problem == SvmlightProblem::none);
    CHECK(r.outcome.lines == 9);
    CHECK(r.outcome.smallest == 0);
    CHECK(r.outcome.largest == 2147483647);
    CHECK((r.labels == std::vector<double>{1, -1, 2.5, 0, 3, 1}));
    CHECK((r.starts == std::vector<int32_t>{0, 2, 4, 4, 5, 5, 6}));
    CHECK((r.indices == std::vector<int32_t>{1, 3, 2, 10, 0, 2147483647}));
    CHECK((r.values == std::vector<double>{0.5, 2, 1e-3, -4.25, 1, 1}));
}

TEST(svmlight_reads_nothing) {
    for (const char* text : {"", "\n", "\r\n", " \n", "#\n", "# 1 1:1\n\n"}) {
        const auto r = read(text);
        CHECK(r.outcome.problem == SvmlightProblem::none && r.outcome.rows == 0);
        CHECK(r.starts == std::vector<int32_t>{0} && r.outcome.largest == -1);
    }
}

TEST(svmlight_names_the_place_of_a_problem) {
    using P = SvmlightProblem;
    const std::string before = "1 1:1\n\n";
    CHECK(fails<double>(before + "x 1:1\n", P::label, 2, 0));
    CHECK(fails<double>(before + " nan 1:1\n", P::label, 2, 1));
    CHECK(fails<double>(before + "1e400 1:1\n", P::label, 2, 0));
    CHECK(fails<double>(before + "1,2 1:1\n", P::several_labels, 2, 1));
    CHECK(fails<double>(before + "1:2 2:1\n", P::no_label, 2, 0));
    CHECK(fails<double>(before + "1x 2:1\n", P::separator, 2, 1));
    CHECK(fails<double>(before + "1 a:1\n", P::index, 2, 2));
    CHECK(fails<double>(before + "1 +1:1\n", P::index, 2, 2));
    CHECK(fails<double>(before + "1 2:1 qid:1\n", P::index, 2, 6));
    CHECK(fails<double>(before + "1 -1:1\n", P::negative_index, 2, 2));
    CHECK(fails<double>(before + "1 2147483648:1\n", P::large_index, 2, 2));
    CHECK(fails<double>(before + "1 99999999999999999999999:1\n", P::large_index, 2, 2));
    CHECK(fails<double>(before + "1 3:1 4:1\n", P::large_index, 2, 6, 3));
    CHECK(fails<double>(before + "1 2:1 2:1\n", P::order, 2, 6));
    CHECK(fails<double>(before + "1 2:1 1:1\n", P::order, 2, 6));
    CHECK(fails<double>(before + "1 2\n", P::colon, 2, 3));
    CHECK(fails<double>(before + "1 2 :1\n", P::colon, 2, 3));
    CHECK(fails<double>(before + "1 2:\n", P::value, 2, 4));
    CHECK(fails<double>(before + "1 2: 1\n", P::value, 2, 4));
    CHECK(fails<double>(before + "1 2:.\n", P::value, 2, 4));
    CHECK(fails<double>(before + "1 2:1e\n", P::value, 2, 4));
    CHECK(fails<double>(before + "1 2:inf\n", P::value, 2, 4));
    CHECK(fails<double>(before + "1 2:-nan\n", P::value, 2, 4));
    CHECK(fails<double>(before + "1 2:-1e309\n", P::large_value, 2, 4));
    CHECK(fails<float>(before + "1 2:1e39\n", P::large_value, 2, 4));
    CHECK(fails<double>(before + "1 2:0x1\n", P::separator, 2, 5));
    CHECK(fails<double>(before + "1 2:1:3\n", P::separator, 2, 5));
    CHECK(fails<double>(before + "1 2:1\r3:4\n", P::separator, 2, 5));
    CHECK(fails<double>(before + std::string("1 2:1\0\n", 7), P::separator, 2, 5));
}

TEST(svmlight_keeps_what_comes_before_a_problem) {
    const auto r = read("1 1:1\n2 2:2 1:1\n");
    CHECK(r.outcome.rows == 1 && r.outcome.entries == 1 && r.outcome.largest == 1);
}

TEST(svmlight_needs_a_line_end_and_room) {
    const SvmlightArrays<double> none{nullptr, nullptr, nullptr, nullptr, 0, 0};
    bool rejected = false;
    try {
        parse_svmlight("1 1:1", 5, INT32_MAX, none);
    } catch (const std::invalid_argument&) {
        rejected = true;
    }
    CHECK(rejected);
    double label, value;
    int32_t starts[2], index;
    for (const SvmlightArrays<double>& small :
         {SvmlightArrays<double>{&label, starts, &index, &value, 0, 1},
          SvmlightArrays<double>{&label, starts, &index, &value, 1, 0}}) {
        rejected = false;
        try {
            parse_svmlight("1 1:1\n", 6, INT32_MAX, small);
        } catch (const std::length_error&) {
            rejected = true;
        }
        CHECK(rejected);
    }
}

// strtod and strtof of the C library round once, in the C locale that a test starts with.
TEST(svmlight_rounds_numbers_once) {
    std::vector<std::string> texts = {
        "0",
        "-0",
        "0.0",
        "1.",
        ".5",
        "+.5",
        "-1E5",
        "1e+22",
        "1e23",
        "9007199254740993",
        "123456789012345678901234567890",
        "1e308",
        "2.2250738585072011e-308",
        "5e-324",
        "2e-324",
        "-1e-400",
        "0.000000000000000000000000000000000001e36",
        "16777217",
        "16777217.0000001",
        "16777219",
        "3.4028235e38",
        "3.4028235677973366e38",
        "1e-45",
        "7e-46",
        "-7.006492321624085e-46",
        "1.1754942e-38",
        "0e999999999999999999999",
        "0.1e-9999999999",
        "1.00000005960464477539062500000000000000001",
        "1.000000059604644775390625",
    };
    Numbers next(5);
    for (int i = 0; i < 20000; ++i) {
        char text[64];
        const int precision = static_cast<int>((next() + 1) * 10);
        const double scale = std::pow(10, std::floor(next() * (i % 2 ? 50 : 5)));
        std::snprintf(text, sizeof text, i % 3 ? "%.*g" : "%.*f", precision, next() * scale);
        texts.emplace_back(text);
    }
    for (const std::string& text : texts) {
        const double wide = std::strtod(text.c_str(), nullptr);
        const float narrow = std::strtof(text.c_str(), nullptr);
        const bool right = same_bits(value_of<double>(text), wide) &&
                           (std::isinf(narrow) ? std::isnan(value_of<float>(text))
                                               : same_bits(value_of<float>(text), narrow));
        if (!right) std::printf("%s is read as %a\n", text.c_str(), value_of<double>(text));
        CHECK(right);
    }
}

TEST(svmlight_counts_bounds) {
    std::string text;
    Numbers next(1);
    for (size_t length = 0; length < 20000; length += 1 + length / 8) {
        while (text.size() < length) text += "\n:x"[static_cast<int>((next() + 1) * 1.5)];
        size_t rows = 0, entries = 0;
        for (const char c : text) rows += c == '\n', entries += c == ':';
        const auto bounds = svmlight_bounds(text.data(), text.size());
        CHECK(bounds.rows == rows && bounds.entries == entries);
    }
}

// What the parser says must fit together, whatever the text.
template <class T>
void holds_together(const std::string& text) {
    const auto r = read<T>(text);
    CHECK(r.starts[0] == 0 && r.starts.back() == static_cast<int32_t>(r.outcome.entries));
    for (size_t i = 0; i < r.outcome.rows; ++i) {
        CHECK(std::isfinite(r.labels[i]) && r.starts[i] <= r.starts[i + 1]);
        for (auto e = static_cast<size_t>(r.starts[i]); e < static_cast<size_t>(r.starts[i + 1]);
             ++e) {
            CHECK(std::isfinite(r.values[e]) && r.indices[e] >= 0);
            CHECK(e == static_cast<size_t>(r.starts[i]) || r.indices[e - 1] < r.indices[e]);
        }
    }
    if (r.outcome.problem == SvmlightProblem::none) return;
    CHECK(r.outcome.position < text.size() && r.outcome.column <= r.outcome.position);
    const auto line_start = r.outcome.position - r.outcome.column;
    CHECK(line_start == 0 || text[line_start - 1] == '\n');
}

TEST(svmlight_survives_any_bytes) {
    Numbers next(2);
    const auto below = [&](size_t n) { return static_cast<size_t>((next() + 1) * 0.5 * n); };
    const std::string telling = "0123456789+-.eE:,# \t\r\nqidnax";
    for (int i = 0; i < 30000; ++i) {
        std::string text;
        const size_t length = below(40);
        for (size_t k = 0; k < length; ++k)
            text += i % 2 ? telling[below(telling.size())] : static_cast<char>(below(256));
        holds_together<float>(text + "\n");
    }
}

TEST(svmlight_survives_mutations) {
    Numbers next(3);
    const auto below = [&](size_t n) { return static_cast<size_t>((next() + 1) * 0.5 * n); };
    const std::string valid =
        "+1 qid:4 1:0.5 3:2 17:-1.25e-3 # note\r\n-1 2:1\t2147483647:12345678901234567890.5\n3\n";
    const std::string telling = "0123456789+-.eE:,# \t\r\nqid";
    for (int i = 0; i < 30000; ++i) {
        std::string text = valid;
        for (size_t changes = 1 + below(4); changes > 0; --changes) {
            const size_t at = below(text.size());
            switch (below(4)) {
                case 0: text[at] = telling[below(telling.size())]; break;
                case 1: text.insert(at, 1, telling[below(telling.size())]); break;
                case 2: text.erase(at, 1 + below(5)); break;
                default: text.insert(below(text.size()), text.substr(at, below(12)));
            }
            if (text.empty()) break;
        }
        holds_together<double>(text + "\n");
    }
}

}  // namespace
}  // namespace kernelmill::tests
