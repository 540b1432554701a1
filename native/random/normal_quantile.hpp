// The inverse of the normal distribution function: algorithm AS 241 (PPND16) of M. J. Wichura,
// "The percentage points of the normal distribution", Applied Statistics 37 (1988), 477-484.
// The coefficients are his; the relative error is about 1e-15 from the median to p = 1e-320.
#pragma once

#include <cmath>
#include <cstdint>

#include "elementary.hpp"

namespace kernelmill::random {

constexpr double central_bound = 0.425;

constexpr double central_top[] = {
    3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
    1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
    3.3430575583588128105e4, 2.5090809287301226727e3,
};
constexpr double central_bottom[] = {
    1.0,
    4.2313330701600911252e1,
    6.8718700749205790830e2,
    5.3941960214247511077e3,
    2.1213794301586595867e4,
    3.9307895800092710610e4,
    2.8729085735721942674e4,
    5.2264952788528545610e3,
};
constexpr double tail_top[] = {
    1.42343711074968357734e0,  4.63033784615654529590e0,  5.76949722146069140550e0,
    3.64784832476320460504e0,  1.27045825245236838258e0,  2.41780725177450611770e-1,
    2.27238449892691845833e-2, 7.74545014278341407640e-4,
};
constexpr double tail_bottom[] = {
    1.0,
    2.05319162663775882187e0,
    1.67638483018380384940e0,
    6.89767334985100004550e-1,
    1.48103976427480074590e-1,
    1.51986665636164571966e-2,
    5.47593808499534494600e-4,
    1.05075007164441684324e-9,
};
constexpr double far_top[] = {
    6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
    2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
    2.71155556874348757815e-5, 2.01033439929228813265e-7,
};
constexpr double far_bottom[] = {
    1.0,
    5.99832206555887937690e-1,
    1.36929880922735805310e-1,
    1.48753612908506148525e-2,
    7.86869131145613259100e-4,
    1.84631831751005468180e-5,
    1.42151175831644588870e-7,
    2.04426310338993978564e-15,
};

// The quantile at p = 1/2 + q, |q| <= central_bound.
inline double central_quantile(double q) {
    const double r = 0.180625 - q * q;
    return q * (elementary::horner(central_top, r) / elementary::horner(central_bottom, r));
}

// The tail is a function of the root of -log p, in two pieces.
constexpr double near_tail_bound = 5;

inline double tail_root(double p) { return std::sqrt(-elementary::log(p)); }

inline double near_tail_quantile(double root) {
    const double r = root - 1.6;
    return elementary::horner(tail_top, r) / elementary::horner(tail_bottom, r);
}

inline double far_tail_quantile(double root) {
    const double r = root - near_tail_bound;
    return elementary::horner(far_top, r) / elementary::horner(far_bottom, r);
}

// The positive quantile whose upper tail has the probability p < 1/2 - central_bound.
inline double tail_quantile(double p) {
    const double root = tail_root(p);
    return root <= near_tail_bound ? near_tail_quantile(root) : far_tail_quantile(root);
}

}  // namespace kernelmill::random
