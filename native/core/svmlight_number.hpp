// Decimal numbers at the beginning of a text that contains a line end. Every loop stops there, so
// that no other bound is needed.
#pragma once

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <system_error>

namespace kernelmill::svmlight {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// A number as it is written: digits * 10^exponent, with a sign.
struct Decimal {
    const char* end = nullptr;  // one past the number, or the place of a missing digit
    bool valid = false;
    bool negative = false;
    bool all_digits = false;  // whether `digits` has all of them, at most 19
    uint64_t digits = 0;
    int64_t exponent = 0;
};

inline Decimal scan_decimal(const char* p) {
    Decimal number;
    number.negative = *p == '-';
    p += *p == '-' || *p == '+';
    uint64_t digits = 0;  // wraps around unless `all_digits`
    const char* const whole = p;
    for (; is_digit(*p); ++p) digits = digits * 10 + static_cast<uint64_t>(*p - '0');
    auto count = p - whole;
    int64_t exponent = 0;
    if (*p == '.') {
        const char* const fraction = ++p;
        for (; is_digit(*p); ++p) digits = digits * 10 + static_cast<uint64_t>(*p - '0');
        exponent = fraction - p;
        count += p - fraction;
    }
    number.end = p;
    if (count == 0) return number;
    if (*p == 'e' || *p == 'E') {
        ++p;
        const bool negative = *p == '-';
        p += *p == '-' || *p == '+';
        number.end = p;
        if (!is_digit(*p)) return number;
        int64_t power = 0;
        for (; is_digit(*p); ++p) {
            if (power < int64_t(1) << 56) power = power * 10 + (*p - '0');
        }
        exponent += negative ? -power : power;
        number.end = p;
    }
    number.valid = true;
    number.all_digits = count <= 19;
    number.digits = digits;
    number.exponent = exponent;
    return number;
}

// Up to 10^22 powers of ten are exact in double precision, and so are integers up to 2^53: one
// operation on the two is rounded once. W. D. Clinger, "How to read floating point numbers
// accurately" (1990).
constexpr int64_t largest_exact_power = 22;
inline constexpr double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                           1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                           1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

inline bool convert_in_one_operation(const Decimal& number, double& value) {
    if (!number.all_digits || number.digits > uint64_t(1) << 53) return false;
    if (number.exponent < -largest_exact_power || number.exponent > largest_exact_power)
        return false;
    const auto digits = static_cast<double>(number.digits);
    const double magnitude = number.exponent < 0 ? digits / powers_of_ten[-number.exponent]
                                                 : digits * powers_of_ten[number.exponent];
    value = number.negative ? -magnitude : magnitude;
    return true;
}

// Rounding to double and then to float is wrong only if the double is half-way between two floats;
// otherwise it is on the same side of that point as the number. Subnormal floats have other such
// points.
inline bool convert_in_one_operation(const Decimal& number, float& value) {
    double wide;
    if (!convert_in_one_operation(number, wide)) return false;
    constexpr uint64_t dropped_bits = (uint64_t(1) << 29) - 1, half_way = uint64_t(1) << 28;
    if ((std::bit_cast<uint64_t>(wide) & dropped_bits) == half_way) return false;
    const double magnitude = std::abs(wide);
    if (magnitude > std::numeric_limits<float>::max()) return false;
    if (magnitude < std::numeric_limits<float>::min() && magnitude != 0) return false;
    value = static_cast<float>(wide);
    return true;
}

// Whether the number, which is not zero, is at least 1.
inline bool is_large(const char* p, const Decimal& number) {
    int64_t significant = 0;  // number of digits from the first one that is not 0
    for (; p != number.end && *p != 'e' && *p != 'E'; ++p) {
        significant += is_digit(*p) && (significant > 0 || *p != '0');
    }
    return significant + number.exponent > 0;
}

// The value of the decimal that scan_decimal found at `p`, rounded once. False if it is too large
// for T; values that are too small become zeros with their sign.
template <class T>
bool convert(const char* p, const Decimal& number, T& value) {
    if (convert_in_one_operation(number, value)) return true;
    const char* const unsigned_front = p + (*p == '+');
    const auto result = std::from_chars(unsigned_front, number.end, value);
    if (result.ec == std::errc::result_out_of_range) {
        if (is_large(p, number)) return false;
        value = number.negative ? -T(0) : T(0);
    }
    return std::isfinite(value);
}

}  // namespace kernelmill::svmlight
