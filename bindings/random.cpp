// Random streams: each function fills a contiguous array in place.
#include "kernelmill/random.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "buffer.hpp"
#include "run.hpp"

namespace kernelmill::bindings {
namespace {

using random::Key;

// The elements of a contiguous array of T.
template <class T>
T* elements(const Buffer& buffer) {
    const auto view = buffer.as<T>();
    require(view.contiguous(), "expected a contiguous array");
    return view.data;
}

// The buffer codes of T; a 64-bit integer has two.
template <class T>
constexpr std::string_view kinds_of = "lq";
template <>
constexpr std::string_view kinds_of<double> = "d";
template <>
constexpr std::string_view kinds_of<float> = "f";
template <>
constexpr std::string_view kinds_of<int32_t> = "i";
template <>
constexpr std::string_view kinds_of<int8_t> = "b";

// Calls fill(pointer, size, execution) with the pointer type that `out` has, if it is one of Ts.
template <class T, class... Ts, class Fill>
void fill_as(const Buffer& out, int n_threads, Fill fill) {
    if (kinds_of<T>.find(out.kind()) != std::string_view::npos) {
        T* to = elements<T>(out);
        run(n_threads, out.size(),
            [&](const Execution& execution) { return fill(to, out.size(), execution); });
    } else if constexpr (sizeof...(Ts) > 0) {
        fill_as<Ts...>(out, n_threads, fill);
    } else {
        throw nb::type_error("the dtype of out is not one that this function fills");
    }
}

template <class... Ts, class Fill>
void fill_as(nb::handle out, int n_threads, Fill fill) {
    fill_as<Ts...>(Buffer(out, Buffer::Access::write), n_threads, fill);
}

using Words128 = std::array<uint64_t, 2>;  // low half first

Key key_of(const Words128& words) { return {words[0], words[1]}; }

void signs(Words128 key, uint64_t start, nb::handle out, int n_threads) {
    fill_as<double, float, int8_t>(
        out, n_threads, [&](auto... to) { return random::fill_signs(key_of(key), start, to...); });
}

void uniforms(Words128 key, uint64_t start, nb::handle out, int n_threads) {
    fill_as<double, float>(out, n_threads, [&](auto... to) {
        return random::fill_uniforms(key_of(key), start, to...);
    });
}

void normals(Words128 key, uint64_t start, nb::handle out, int n_threads) {
    fill_as<double, float>(out, n_threads, [&](auto... to) {
        return random::fill_normals(key_of(key), start, to...);
    });
}

void cauchys(Words128 key, uint64_t start, nb::handle out, int n_threads) {
    fill_as<double, float>(out, n_threads, [&](auto... to) {
        return random::fill_cauchys(key_of(key), start, to...);
    });
}

void gammas(Words128 key, uint64_t start, double shape, nb::handle out, int n_threads) {
    fill_as<double, float>(out, n_threads, [&](auto... to) {
        return random::fill_gammas(key_of(key), start, shape, to...);
    });
}

void chis(Words128 key, uint64_t start, double df, nb::handle out, int n_threads) {
    fill_as<double, float>(out, n_threads, [&](auto... to) {
        return random::fill_chis(key_of(key), start, df, to...);
    });
}

void students(Words128 key, uint64_t start, double df, nb::handle out, int n_threads) {
    fill_as<double, float>(out, n_threads, [&](auto... to) {
        return random::fill_students(key_of(key), start, df, to...);
    });
}

void sphere(Words128 key, uint64_t start, size_t dim, nb::handle out, int n_threads) {
    require(dim > 0, "dim must be positive");
    fill_as<double, float>(out, n_threads, [&](auto* to, size_t n, const Execution& execution) {
        return random::fill_sphere(key_of(key), start, to, n / dim, dim, execution);
    });
}

void ball(Words128 key, uint64_t start, size_t dim, nb::handle out, int n_threads) {
    require(dim > 0, "dim must be positive");
    fill_as<double, float>(out, n_threads, [&](auto* to, size_t n, const Execution& execution) {
        return random::fill_ball(key_of(key), start, to, n / dim, dim, execution);
    });
}

void integers(Words128 key, uint64_t start, uint64_t high, nb::handle out, int n_threads) {
    fill_as<int64_t, int32_t>(out, n_threads, [&](auto... to) {
        return random::fill_integers(key_of(key), start, high, to...);
    });
}

void permutation(Words128 key, uint64_t index, nb::handle out) {
    fill_as<int64_t, int32_t>(
        out, 1, [&](auto... to) { return random::fill_permutation(key_of(key), index, to...); });
}

// out: (dim, dim).
void orthogonal(Words128 key, uint64_t index, nb::handle out, int n_threads) {
    const Buffer to(out, Buffer::Access::write);
    require(to.ndim() == 2 && to.extent(0) == to.extent(1), "out must be a square matrix");
    require(to.extent(0) > 0, "out must not be empty");
    const auto dim = static_cast<size_t>(to.extent(0));
    fill_as<double>(to, n_threads, [&](double* p, size_t, const Execution& execution) {
        return random::fill_orthogonal(key_of(key), index, p, dim, execution);
    });
}

std::vector<uint64_t> hash_coefficients(Words128 key, uint64_t use, uint64_t index, size_t count) {
    std::vector<uint64_t> out(count);
    random::draw_hash_coefficients(key_of(key), use, index, out.data(), count);
    return out;
}

bool is_64_bit_integer(const Buffer& x) {
    return std::string_view("lLqQ").find(x.kind()) != std::string_view::npos;
}

// Both hashes return the place of an index outside [0, 2^61 - 1), or -1 if there is none.
ptrdiff_t hash_buckets(const std::vector<uint64_t>& coefficients, uint64_t n_buckets, nb::handle x,
                       nb::handle out, int n_threads) {
    const Buffer from(x, Buffer::Access::read), to(out, Buffer::Access::write);
    require(!coefficients.empty(), "coefficients must not be empty");
    require(is_64_bit_integer(from), "x must hold 64-bit integers");
    require(from.size() == to.size(), "out must have the size of x");
    const auto* indices = elements<const uint64_t>(from);
    size_t bad = from.size();
    fill_as<int64_t>(to, n_threads, [&](int64_t* p, size_t n, const Execution& execution) {
        return random::hash_to_buckets({coefficients.data(), coefficients.size()}, n_buckets,
                                       indices, p, n, &bad, execution);
    });
    return bad < from.size() ? static_cast<ptrdiff_t>(bad) : -1;
}

ptrdiff_t hash_signs(const std::vector<uint64_t>& coefficients, nb::handle x, nb::handle out,
                     int n_threads) {
    const Buffer from(x, Buffer::Access::read), to(out, Buffer::Access::write);
    require(!coefficients.empty(), "coefficients must not be empty");
    require(is_64_bit_integer(from), "x must hold 64-bit integers");
    require(from.size() == to.size(), "out must have the size of x");
    const auto* indices = elements<const uint64_t>(from);
    size_t bad = from.size();
    fill_as<int64_t, int8_t, float, double>(
        to, n_threads, [&](auto* p, size_t n, const Execution& execution) {
            return random::hash_to_signs({coefficients.data(), coefficients.size()}, indices, p, n,
                                         &bad, execution);
        });
    return bad < from.size() ? static_cast<ptrdiff_t>(bad) : -1;
}

// out = f(x), elementwise.
void elementary(const std::string& name, nb::handle x, nb::handle out, int n_threads) {
    using Function = double (*)(double);
    const Function f = name == "log"               ? random::portable_log
                       : name == "exp"             ? random::portable_exp
                       : name == "tan_pi"          ? random::portable_tan_pi
                       : name == "normal_quantile" ? random::normal_quantile
                                                   : Function(nullptr);
    if (!f) throw nb::value_error("expected log, exp, tan_pi or normal_quantile");
    const Buffer from(x, Buffer::Access::read), to(out, Buffer::Access::write);
    require(from.kind() == 'd', "expected float64");
    require(from.size() == to.size(), "out must have the size of x");
    const auto* given = elements<const double>(from);
    fill_as<double>(to, n_threads, [&](double* p, size_t n, const Execution& execution) {
        return parallel_for(n, size_t(1) << 11, execution, [&](size_t begin, size_t end) {
            for (size_t i = begin; i < end; ++i) p[i] = f(given[i]);
        });
    });
}

std::array<uint64_t, 4> philox(Words128 key, std::array<uint64_t, 4> counter) {
    std::array<uint64_t, 4> out;
    random::philox_block(key_of(key), counter.data(), out.data());
    return out;
}

}  // namespace

void register_random(nb::module_& m) {
    using nb::arg;
    m.def("random_signs", &signs, arg("key"), arg("start"), arg("out"), arg("n_threads"));
    m.def("random_uniforms", &uniforms, arg("key"), arg("start"), arg("out"), arg("n_threads"));
    m.def("random_normals", &normals, arg("key"), arg("start"), arg("out"), arg("n_threads"));
    m.def("random_cauchys", &cauchys, arg("key"), arg("start"), arg("out"), arg("n_threads"));
    m.def("random_gammas", &gammas, arg("key"), arg("start"), arg("shape"), arg("out"),
          arg("n_threads"));
    m.def("random_chis", &chis, arg("key"), arg("start"), arg("df"), arg("out"), arg("n_threads"));
    m.def("random_students", &students, arg("key"), arg("start"), arg("df"), arg("out"),
          arg("n_threads"));
    m.def("random_sphere", &sphere, arg("key"), arg("start"), arg("dim"), arg("out"),
          arg("n_threads"));
    m.def("random_ball", &ball, arg("key"), arg("start"), arg("dim"), arg("out"), arg("n_threads"));
    m.def("random_integers", &integers, arg("key"), arg("start"), arg("high"), arg("out"),
          arg("n_threads"));
    m.def("random_permutation", &permutation, arg("key"), arg("index"), arg("out"));
    m.def("random_orthogonal", &orthogonal, arg("key"), arg("index"), arg("out"), arg("n_threads"));
    m.attr("hash_prime") = random::hash_prime;
    m.def("hash_coefficients", &hash_coefficients, arg("key"), arg("use"), arg("index"),
          arg("count"));
    m.def("hash_buckets", &hash_buckets, arg("coefficients"), arg("n_buckets"), arg("x"),
          arg("out"), arg("n_threads"));
    m.def("hash_signs", &hash_signs, arg("coefficients"), arg("x"), arg("out"), arg("n_threads"));
    m.def("elementary", &elementary, arg("name"), arg("x"), arg("out"), arg("n_threads"));
    m.def("philox", &philox, arg("key"), arg("counter"));
}

}  // namespace kernelmill::bindings
