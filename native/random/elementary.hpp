// log, exp and tan(pi x) from basic IEEE operations. Unlike those of C libraries, they are
// bit-identical on all platforms. Errors measured in tests are below 1 ulp for log and exp and
// below 3 ulp for tan(pi x). tools/derive_random_constants.py prints the constants.
//
// Requires rounding to nearest and no contraction of a * b + c (-ffp-contract=off).
#pragma once

#include <bit>
#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <limits>

#if defined(__FAST_MATH__)
#error "the bits of the random streams depend on exact IEEE arithmetic: compile without -ffast-math"
#endif
static_assert(FLT_EVAL_METHOD == 0, "doubles must be rounded to double after every operation");

// Call them as elementary::log, never as log: an unqualified name could silently call the C
// library.
namespace kernelmill::random::elementary {

constexpr double ln2_high = 0x1.62e42fefa4p-1;  // 40 bits: times a binary exponent it is exact
constexpr double ln2_low = -0x1.8432a1b0e2634p-43;
constexpr double inverse_ln2 = 0x1.71547652b82fep0;
constexpr double pi_high = 0x1.921fb54442d18p1;
constexpr double pi_low = 0x1.1a62633145c07p-53;
constexpr double sqrt2 = 0x1.6a09e667f3bcdp0;

constexpr double log_r[] = {
    0x1.5555555555558p-1, 0x1.99999999952d7p-2, 0x1.2492492df281ap-2, 0x1.c71c62e3f11e6p-3,
    0x1.7462b51cb66b1p-3, 0x1.39fe51a7c18f9p-3, 0x1.2b5900de53b32p-3,
};
constexpr double exp_q[] = {
    0x1p-1,
    0x1.5555555555557p-3,
    0x1.5555555555556p-5,
    0x1.11111111100dcp-7,
    0x1.6c16c16c162d4p-10,
    0x1.a01a01abe7fe1p-13,
    0x1.a01a01a6d889cp-16,
    0x1.71de0231960ebp-19,
    0x1.27e4db646b17ep-22,
    0x1.af4de97ca4194p-26,
    0x1.1f730349868cep-29,
};
constexpr double sin_s[] = {
    -0x1.4abbce625be53p2,  0x1.466bc6775aae1p1,   -0x1.32d2cce62b872p-1,  0x1.50783486facaap-4,
    -0x1.e3074d2614b2dp-8, 0x1.e8f036bcd3237p-12, -0x1.6cc577dadd922p-16,
};
constexpr double cos_c[] = {
    -0x1.3bd3cc9be45dep2,  0x1.03c1f081b5acp2,    -0x1.55d3c7e3cb241p0,   0x1.e1f5068688d5bp-3,
    -0x1.a6d1eef479be1p-6, 0x1.f9ce245cada0bp-10, -0x1.b2f3eb054afcdp-14,
};

// c[0] + c[1] x + ..., by Horner's rule.
template <size_t N>
constexpr double horner(const double (&c)[N], double x) {
    double sum = c[N - 1];
    for (size_t i = N - 1; i-- > 0;) sum = sum * x + c[i];
    return sum;
}

// 2^k for -1022 <= k <= 1023.
inline double power_of_two(int64_t k) {
    return std::bit_cast<double>(static_cast<uint64_t>(k + 1023) << 52);
}

// 0 < x < inf.
inline double log(double x) {
    int64_t shift = 0;
    if (x < std::numeric_limits<double>::min()) {
        x *= 0x1p54;
        shift = -54;
    }
    // x = 2^k m with sqrt(1/2) <= m < sqrt(2), up to the last bits of the bound.
    const uint64_t bits = std::bit_cast<uint64_t>(x);
    constexpr uint64_t bits_of_sqrt_half = std::bit_cast<uint64_t>(sqrt2 / 2);
    const int64_t k = static_cast<int64_t>(bits - bits_of_sqrt_half) >> 52;
    const double m = std::bit_cast<double>(bits - (static_cast<uint64_t>(k) << 52));
    // log m = f - f^2/2 + s (f^2/2 + z R(z)) for s = f / (2 + f) and z = s^2: the large terms f and
    // k log 2 are added last, so that only their rounding matters.
    const double f = m - 1, s = f / (2 + f), z = s * s, half_square = 0.5 * f * f;
    const double scale = static_cast<double>(k + shift);
    const double small = s * (half_square + z * horner(log_r, z)) + scale * ln2_low;
    return scale * ln2_high - ((half_square - small) - f);
}

// Any x except NaN; 0 and inf if the result is outside of the range of doubles.
inline double exp(double x) {
    if (x < -746) return 0;
    if (x > 710) return std::numeric_limits<double>::infinity();
    const double k = (x * inverse_ln2 + 0x1.8p52) - 0x1.8p52;  // rounds to an integer
    const double r = (x - k * ln2_high) - k * ln2_low;
    const double value = 1 + (r + r * r * horner(exp_q, r));
    // In two steps: 2^k itself may lie outside the range that its product with `value` is in.
    const int64_t whole = static_cast<int64_t>(k), half = whole / 2;
    return value * power_of_two(half) * power_of_two(whole - half);
}

// tan(pi x) for x in (0, 1/2), given x and its distance to 1/2, since near 1/2 only the second can
// be precise.
inline double tan_pi(double x, double to_half) {
    const bool low = x <= to_half;
    const double y = low ? x : to_half, z = y * y;
    const double sine = y * (pi_high + (pi_low + z * horner(sin_s, z)));
    const double cosine = 1 + z * horner(cos_c, z);
    return (low ? sine : cosine) / (low ? cosine : sine);
}

}  // namespace kernelmill::random::elementary
