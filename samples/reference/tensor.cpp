// Examples of tensors and their files.
#include <vkformer/tensor.h>

#include <cstdio>

#include "examples.h"

using vkformer::Tensor;

vkformer::Status show_tensor(const Setting& setting) {
  //! [Tensor::from_floats Tensor::to_floats Tensor::count Tensor::zeros]
  // Makes tensors of two rows and three columns, row by row.
  const Tensor values = Tensor::from_floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor half = Tensor::zeros(vkformer::DType::kF16, {2, 3});
  const auto floats = values.to_floats();
  if (!floats) return floats.error();
  std::printf("%zu values of %zu bytes\n", floats->size(), half.bytes.size() / 6);
  //! [end]
  const auto held = expect(values.count() == 6 && (*floats)[4] == 5, "six values");
  if (!held) return held;

  //! [Tensor::from_ints Tensor::to_ints]
  // Token ids as a model's input, and back.
  const Tensor ids = Tensor::from_ints({1, 4}, {2, 15, 9, 3});
  const auto back = ids.to_ints();
  if (!back) return back.error();
  //! [end]

  //! [dtype_name dtype_size shape_text element_count]
  // Describes a tensor.
  std::printf("%s of shape %s: %lld elements of %zu bytes\n", vkformer::dtype_name(ids.dtype),
              vkformer::shape_text(ids.shape).c_str(),
              static_cast<long long>(vkformer::element_count(ids.shape)),
              vkformer::dtype_size(ids.dtype));
  //! [end]

  const std::string path = setting.scratch + "/tensors.safetensors";
  //! [write_tensor_file read_tensor_file]
  // Writes named tensors as a safetensors file, and reads them again.
  const auto written = vkformer::write_tensor_file(path, {{"input_ids", ids}, {"values", values}});
  if (!written) return written.error();
  const auto tensors = vkformer::read_tensor_file(path);
  if (!tensors) return tensors.error();
  for (const auto& [name, tensor] : *tensors) {
    std::printf("%s %s\n", name.c_str(), vkformer::shape_text(tensor.shape).c_str());
  }
  //! [end]
  return expect(tensors->at("input_ids").bytes == ids.bytes, "the ids as they were written");
}
