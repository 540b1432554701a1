// The svmlight text format: a text is read into given arrays.
#include "kernelmill/svmlight.hpp"

#include <nanobind/nanobind.h>

#include "buffer.hpp"
#include "run.hpp"

namespace kernelmill::bindings {
namespace {

class Text {
  public:
    explicit Text(nb::handle object) : buffer_(object, Buffer::Access::read) {
        require(buffer_.kind() == 'B' && buffer_.as<const char>().contiguous(),
                "text must be bytes");
    }
    const char* data() const { return buffer_.as<const char>().data; }
    size_t size() const { return buffer_.size(); }

  private:
    Buffer buffer_;
};

template <class T>
T* elements(const Buffer& buffer, char kind, const char* what) {
    const auto view = buffer.as<T>();
    require(buffer.kind() == kind && view.contiguous(), what);
    return view.data;
}

nb::tuple bounds(nb::handle text) {
    const Text from(text);
    const SvmlightBounds bounds =
        without_gil([&] { return svmlight_bounds(from.data(), from.size()); });
    return nb::make_tuple(bounds.rows, bounds.entries);
}

nb::tuple parse(nb::handle text, int32_t largest_index, nb::handle labels, nb::handle starts,
                nb::handle indices, nb::handle values) {
    const Text from(text);
    const Buffer to_labels(labels, Buffer::Access::write), to_starts(starts, Buffer::Access::write),
        to_indices(indices, Buffer::Access::write), to_values(values, Buffer::Access::write);
    require(to_starts.size() >= 1 && to_starts.size() - 1 >= to_labels.size() &&
                to_indices.size() == to_values.size(),
            "starts must have one element more than labels, and indices as many as values");
    const SvmlightOutcome outcome = with_real_type(to_values, [&](auto real) {
        using T = decltype(real);
        const SvmlightArrays<T> arrays{
            elements<double>(to_labels, 'd', "labels must be float64 and contiguous"),
            elements<int32_t>(to_starts, 'i', "starts must be int32 and contiguous"),
            elements<int32_t>(to_indices, 'i', "indices must be int32 and contiguous"),
            elements<T>(to_values, to_values.kind(), "values must be contiguous"),
            to_labels.size(),
            to_indices.size()};
        return without_gil(
            [&] { return parse_svmlight(from.data(), from.size(), largest_index, arrays); });
    });
    return nb::make_tuple(outcome.rows, outcome.entries, outcome.lines, outcome.smallest,
                          outcome.largest, name_of(outcome.problem), outcome.position,
                          outcome.column);
}

}  // namespace

void register_svmlight(nb::module_& m) {
    m.def("svmlight_bounds", &bounds, nb::arg("text"));
    m.def("svmlight_parse", &parse, nb::arg("text"), nb::arg("largest_index"), nb::arg("labels"),
          nb::arg("starts"), nb::arg("indices"), nb::arg("values"));
}

}  // namespace kernelmill::bindings
