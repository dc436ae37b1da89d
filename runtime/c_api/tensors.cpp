#include "base/message.h"
#include "c_api/enums.h"
#include "vkformer/tensor.h"

namespace vkformer {
namespace {

const Tensor* find(const vkf_tensors* tensors, const char* name) {
  need_all({{tensors, "tensors"}, {name, "name"}});
  const auto found = tensors->map.find(name);
  if (found != tensors->map.end()) return &found->second;
  refuse(not_found(message({"[", name, "] is none of these ", tensors->map.size(),
                            " tensors; vkf_tensors_name lists their names."})));
}

Tensor copy_tensor(const vkf_tensor& given, const char* name) {
  Tensor tensor;
  tensor.dtype = dtype_from(given.dtype);
  if (given.rank != 0) need(given.shape, "shape");
  if (given.rank > 16) {
    refuse(invalid_argument(
        message({"[", name, "] has ", given.rank, " dimensions; give at most 16."})));
  }
  if (given.rank != 0) tensor.shape.assign(given.shape, given.shape + given.rank);
  const int64_t count = element_count(tensor.shape);
  const size_t size = dtype_size(tensor.dtype);
  if (count < 0 || given.bytes % size != 0 || given.bytes / size != static_cast<uint64_t>(count)) {
    refuse(
        invalid_argument(message({"[", name, "] of dtype ", dtype_name(tensor.dtype), " and shape ",
                                  shape_text(tensor.shape), " is given ", given.bytes,
                                  " bytes, which do not fit; give one value for each element."})));
  }
  if (given.bytes == 0) return tensor;
  need(given.data, "data");
  const auto* data = static_cast<const std::byte*>(given.data);
  tensor.bytes.assign(data, data + given.bytes);
  return tensor;
}

template <class T>
void copy_values(const Result<std::vector<T>>& values, T* out, size_t count, const char* name) {
  if (!values) refuse(values.error().with_context(message({"[", name, "]"})));
  if (values->size() != count) {
    refuse(invalid_argument(
        message({"[", name, "] has ", values->size(), " elements, but there is room for ", count,
                 "; give room for exactly as many."})));
  }
  if (count == 0) return;
  need(out, "values");
  std::memcpy(out, values->data(), count * sizeof(T));
}

}  // namespace

DType dtype_from(vkf_dtype dtype) {
  return value_of<DType>(dtype, "dtype");
}

vkf_dtype dtype_to(DType dtype) {
  return number_of(dtype);
}

void write_tensor(vkf_tensor* out, const Tensor& tensor) {
  vkf_tensor view{};
  view.dtype = dtype_to(tensor.dtype);
  view.shape = tensor.shape.data();
  view.rank = tensor.shape.size();
  view.data = tensor.bytes.data();
  view.bytes = tensor.bytes.size();
  return write_struct(out, view, "tensor");
}

}  // namespace vkformer

using namespace vkformer;

vkf_status vkf_tensors_create(vkf_tensors** tensors, vkf_error* error) {
  return make_handle(tensors, error, [] { return handle(vkf_tensors{}); });
}

vkf_status vkf_tensors_read(const char* path, vkf_tensors** tensors, vkf_error* error) {
  return make_handle(tensors, error, [&] {
    need(path, "path");
    TensorMap map = take(read_tensor_file(path));
    return tensors_of(std::move(map));
  });
}

vkf_status vkf_tensors_write(const vkf_tensors* tensors, const char* path, vkf_error* error) {
  return guard(error, [&] {
    need_all({{tensors, "tensors"}, {path, "path"}});
    take(write_tensor_file(path, tensors->map));
  });
}

void vkf_tensors_free(vkf_tensors* tensors) {
  delete tensors;
}

vkf_status vkf_tensors_set(vkf_tensors* tensors, const char* name, const vkf_tensor* tensor,
                           vkf_error* error) {
  return guard(error, [&] {
    need_all({{tensors, "tensors"}, {name, "name"}});
    const vkf_tensor given = read_needed(tensor, "tensor");
    Tensor copy = copy_tensor(given, name);
    tensors->map.insert_or_assign(name, std::move(copy));
  });
}

size_t vkf_tensors_count(const vkf_tensors* tensors) {
  return tensors != nullptr ? tensors->map.size() : 0;
}

const char* vkf_tensors_name(const vkf_tensors* tensors, size_t index) {
  if (tensors == nullptr || index >= tensors->map.size()) return nullptr;
  return std::next(tensors->map.begin(), static_cast<std::ptrdiff_t>(index))->first.c_str();
}

vkf_status vkf_tensors_get(const vkf_tensors* tensors, const char* name, vkf_tensor* tensor,
                           vkf_error* error) {
  return guard(error, [&] {
    const Tensor* found = find(tensors, name);
    return write_tensor(tensor, *found);
  });
}

vkf_status vkf_tensors_get_floats(const vkf_tensors* tensors, const char* name, float* values,
                                  size_t count, vkf_error* error) {
  return guard(error, [&] {
    const Tensor* found = find(tensors, name);
    return copy_values(found->to_floats(), values, count, name);
  });
}

vkf_status vkf_tensors_get_ints(const vkf_tensors* tensors, const char* name, int64_t* values,
                                size_t count, vkf_error* error) {
  return guard(error, [&] {
    const Tensor* found = find(tensors, name);
    return copy_values(found->to_ints(), values, count, name);
  });
}
