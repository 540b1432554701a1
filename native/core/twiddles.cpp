#include "twiddles.hpp"

#include <atomic>
#include <bit>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "kernelmill/threads.hpp"

namespace kernelmill {

// Reduced, exactly, to an eighth of a turn first: the angle is then below pi/4.
template <class T>
void put_root(double turns, T* re, T* im) {
    constexpr double two_pi = 6.283185307179586;
    const double quarters = std::floor(4 * turns + 0.5);
    const double angle = two_pi * (turns - quarters / 4);
    double c = std::cos(angle), s = std::sin(angle);
    switch (static_cast<int>(quarters) % 4) {
        case 1: std::swap(c, s), c = -c; break;
        case 2: c = -c, s = -s; break;
        case 3: std::swap(c, s), s = -s; break;
        default: break;
    }
    *re = static_cast<T>(c);
    *im = static_cast<T>(s);
}

template void put_root(double, float*, float*);
template void put_root(double, double*, double*);

namespace {

// The angle of a node of the tree, in turns; exact.
double turns_of_node(size_t node) {
    if (node == 0) return 0;
    double turns = 0.25;
    for (int bit = std::bit_width(node) - 2; bit >= 0; --bit) {
        turns = turns / 2 + (node >> bit & 1 ? 0.5 : 0);
    }
    return turns;
}

template <class T>
struct Tables {
    size_t units;
    std::vector<T> nodes, tiles;
    std::unique_ptr<Tables> smaller;  // what it replaced: other threads may still be reading it
};

size_t twiddles_of_tile(size_t width) {
    size_t count = 0;
    for (size_t block = width; block > 1; block /= 4) {
        count += width / block * (block >= 4 ? 6 : 2) * width;
    }
    return count;
}

// Twiddles of one tile: lane l is at node tile * width + l. See split_tile.
template <class T>
void put_tile(T* out, size_t tile, size_t width) {
    for (size_t block = width; block > 1; block /= 4) {
        const size_t factors = width / block, count = block >= 4 ? 3 : 1;
        for (size_t s = 0; s < factors; ++s, out += 2 * count * width) {
            for (size_t l = 0; l < width; ++l) {
                const double turns = turns_of_node((tile * width + l) * factors + s);
                for (size_t k = 0; k < count; ++k) {
                    const double power = count == 3 ? 0.25 * static_cast<double>(k + 1) : 0.5;
                    T* at = out + 2 * k * width + l;
                    put_root(turns * power, at, at + width);
                }
            }
        }
    }
}

template <class T>
std::unique_ptr<Tables<T>> build(size_t units, size_t width) {
    auto tables = std::make_unique<Tables<T>>();
    tables->units = units;
    const size_t nodes = units / 4 + 1, tiles = units / 2 / width, each = twiddles_of_tile(width);
    tables->nodes.resize(6 * nodes);
    tables->tiles.resize(tiles * each);
    parallel_for(nodes, 512, {}, [&](size_t begin, size_t end) {
        for (size_t j = begin; j < end; ++j) {
            for (size_t k = 0; k < 3; ++k) {
                T* at = tables->nodes.data() + 6 * j + 2 * k;
                put_root(turns_of_node(j) * 0.25 * static_cast<double>(k + 1), at, at + 1);
            }
        }
    });
    parallel_for(tiles, 32, {}, [&](size_t begin, size_t end) {
        for (size_t t = begin; t < end; ++t) put_tile(tables->tiles.data() + t * each, t, width);
    });
    return tables;
}

}  // namespace

// One table per element type and vector width, replaced by a larger one when a longer transform
// comes. Published without locks, so that a fork can happen at any moment.
template <class T>
Twiddles<T> twiddles_for(size_t units, size_t width) {
    static std::atomic<Tables<T>*> published[8];
    auto& slot = published[std::bit_width(width)];
    Tables<T>* current = slot.load(std::memory_order_acquire);
    while (!current || current->units < units) {
        auto larger = build<T>(units, width);
        larger->smaller.reset(current);
        if (slot.compare_exchange_strong(current, larger.get(), std::memory_order_acq_rel)) {
            current = larger.release();
        } else {
            larger->smaller.release();  // another thread published first and owns it now
        }
    }
    return {current->units, current->nodes.data(), current->tiles.data()};
}

template Twiddles<float> twiddles_for(size_t, size_t);
template Twiddles<double> twiddles_for(size_t, size_t);

}  // namespace kernelmill
