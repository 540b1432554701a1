// Compiled once per instruction set: one table of the kernels, built with that set's flags.
#include "../core/kernel_table.hpp"
#include "convolution.hpp"
#include "dense.hpp"
#include "exponentials.hpp"
#include "fastfood.hpp"
#include "few_outputs.hpp"
#include "finite.hpp"
#include "fwht.hpp"
#include "mixed_rings.hpp"
#include "moments.hpp"
#include "sincos.hpp"
#include "sketch.hpp"
#include "zonal.hpp"

#define KM_STRING(name) KM_STRING_OF(name)
#define KM_STRING_OF(name) #name

namespace kernelmill::KM_TARGET {

template <class T>
constexpr KernelTable<T> table_of() {
    return {
        .width = width<T>,
        .fwht_rows = fwht_rows<T>,
        .fwht_shared_pass = fwht_shared_pass<T>,
        .fwht_lanes = fwht_lanes<T>,
        .sincos = sincos_array<T>,
        .exponentials_row = exponentials_row<T>,
        .zonal_row = zonal_row<T>,
        .row = {convolution_row_forward<T>, convolution_row_multiply<T>,
                convolution_row_inverse<T>},
        .lanes = {convolution_lanes_forward<T>, convolution_lanes_multiply<T>,
                  convolution_lanes_inverse<T>},
        .interleave_rows = interleave_rows<T>,
        .separate_rows = separate_rows<T>,
        .rings_forward = rings_forward<T>,
        .rings_multiply = rings_multiply<T>,
        .rings_inverse = rings_inverse<T>,
        .sketch_lanes = sketch_lanes<T>,
        .all_finite = all_finite<T>,
        .features_row = features_row<T>,
        .fastfood_tile_layout = fastfood_tile_layout,
        .fastfood_tile = fastfood_tile<T>,
        .fastfood_row = fastfood_row<T>,
        .dense_tile = dense_tile<T>,
        .sparse_tile_32 = sparse_tile<T, int32_t>,
        .sparse_tile_64 = sparse_tile<T, int64_t>,
        .score_rows = score_rows<T>,
        .add_weighted_rows = add_weighted_rows<T>,
        .scale_row = scale_row<T>,
        .step_row = step_row<T>,
        .moments_panel = moments_panel<T>,
        .pack_floats = pack_panel<T, float>,
        .pack_doubles = pack_panel<T, double>,
        .moments_tile = moments_tile<T>,
        .sum_columns = sum_columns<T>,
    };
}

extern const Target target;
const Target target{KM_STRING(KM_TARGET), table_of<float>(), table_of<double>()};

}  // namespace kernelmill::KM_TARGET
