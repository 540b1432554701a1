// The random streams give the same bits on every machine: fingerprints of each distribution, to be
// met by every compiler and architecture that runs these tests. What the distributions are is
// tested from Python.
#include "kernelmill/random.hpp"

#include <cstring>

#include "check.hpp"

namespace kernelmill::tests {
namespace {

constexpr random::Key key{0x0123456789abcdef, 0xfedcba9876543210};
constexpr uint64_t start = 12345;
constexpr size_t count = 20000;

// FNV-1a over the bytes of the elements, all little-endian.
template <class T>
uint64_t fingerprint(const std::vector<T>& x) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < x.size() * sizeof(T); ++i) {
        unsigned char byte;
        std::memcpy(&byte, reinterpret_cast<const char*>(x.data()) + i, 1);
        hash = (hash ^ byte) * 1099511628211u;
    }
    return hash;
}

// The fingerprint of one fill, the same for one thread and for three.
template <class T, class Fill>
uint64_t fingerprint_of(Fill fill) {
    std::vector<T> one(count), three(count);
    CHECK(fill(one.data(), Execution{.n_threads = 1}));
    CHECK(fill(three.data(), Execution{.n_threads = 3}));
    CHECK(one == three);
    return fingerprint(one);
}

void meets(const char* name, uint64_t actual, uint64_t expected) {
    if (actual != expected)
        std::printf("%s: fingerprint 0x%016llx\n", name, (unsigned long long)actual);
    CHECK(actual == expected);
}

#define FILL(T, call) \
    fingerprint_of<T>([](T* out, const Execution& execution) { return random::call; })

TEST(random_fills_have_the_same_bits_everywhere) {
    meets("signs", FILL(double, fill_signs(key, start, out, count, execution)), 0xc8b4052139d46925);
    meets("small signs", FILL(int8_t, fill_signs(key, start, out, count, execution)),
          0x1e4d8045712745a9);
    meets("uniforms", FILL(double, fill_uniforms(key, start, out, count, execution)),
          0xf8ab3e0bf5b47196);
    meets("float uniforms", FILL(float, fill_uniforms(key, start, out, count, execution)),
          0x0b67e85f19fd3ea5);
    meets("normals", FILL(double, fill_normals(key, start, out, count, execution)),
          0xccdcd1cb4e18a74c);
    meets("float normals", FILL(float, fill_normals(key, start, out, count, execution)),
          0x7ff17d20b6a451c1);
    meets("cauchys", FILL(double, fill_cauchys(key, start, out, count, execution)),
          0x51e4ff6bd6cbeac0);
    meets("gammas 0.1", FILL(double, fill_gammas(key, start, 0.1, out, count, execution)),
          0x9a890d78586c9b3f);
    meets("gammas 7.5", FILL(double, fill_gammas(key, start, 7.5, out, count, execution)),
          0x85e814b4e1461b6f);
    meets("gammas 1e9", FILL(double, fill_gammas(key, start, 1e9, out, count, execution)),
          0x5ad45310ea5a87b3);
    meets("chis 1", FILL(double, fill_chis(key, start, 1, out, count, execution)),
          0x70778d0a99df5b3b);
    meets("chis 784", FILL(double, fill_chis(key, start, 784, out, count, execution)),
          0x939a15e1230a767b);
    meets("students", FILL(double, fill_students(key, start, 3, out, count, execution)),
          0x28df075d3adbd41b);
    meets("sphere", FILL(double, fill_sphere(key, start, out, count / 10, 10, execution)),
          0x36d6b68f5332b1c0);
    meets("ball", FILL(double, fill_ball(key, start, out, count / 10, 10, execution)),
          0x6f5588bb2ea5f369);
    meets("integers", FILL(int64_t, fill_integers(key, start, 1000003, out, count, execution)),
          0x2aec26575e1b97bb);
    meets("permutation", FILL(int32_t, fill_permutation(key, 7, out, count, execution)),
          0x0c64d77c952b032d);
    meets("orthogonal", FILL(double, fill_orthogonal(key, 7, out, 141, execution)),
          0xf44b0253549f4928);
}

TEST(random_hashes_have_the_same_values_everywhere) {
    std::vector<uint64_t> coefficients(4), x(count);
    random::draw_hash_coefficients(key, 0, 7, coefficients.data(), coefficients.size());
    meets("coefficients", fingerprint(coefficients), 0xd201fc36b47d79b0);
    for (size_t i = 0; i < count; ++i) x[i] = i * i * i;
    std::vector<int64_t> buckets(count);
    std::vector<float> signs(count);
    const random::HashPolynomial h{coefficients.data(), coefficients.size()};
    size_t bad = count;
    CHECK(random::hash_to_buckets(h, 4096, x.data(), buckets.data(), count, &bad, {}));
    CHECK(random::hash_to_signs(h, x.data(), signs.data(), count, &bad, {}));
    CHECK(bad == count);
    meets("buckets", fingerprint(buckets), 0x520d7a72ea212014);
    meets("hashed signs", fingerprint(signs), 0x92de96bf6a9c7e25);
    x[17] = random::hash_prime;
    CHECK(random::hash_to_buckets(h, 4096, x.data(), buckets.data(), count, &bad, {}));
    CHECK(bad == 17);
}

TEST(random_access_at_the_far_end) {
    constexpr uint64_t far = uint64_t(1) << 63;
    std::vector<double> whole(300), part(100);
    CHECK(random::fill_normals(key, far - 300, whole.data(), 300, {}));
    CHECK(random::fill_normals(key, far - 150, part.data(), 100, {}));
    CHECK(std::memcmp(whole.data() + 150, part.data(), 100 * sizeof(double)) == 0);
}

}  // namespace
}  // namespace kernelmill::tests
