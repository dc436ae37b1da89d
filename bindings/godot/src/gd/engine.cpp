#include "gd/engine.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "gd/interface.h"

namespace gd {

Interface interface;

namespace {

GDExtensionClassLibraryPtr own_library = nullptr;
GDExtensionVariantFromTypeConstructorFunc from_types[GDEXTENSION_VARIANT_TYPE_VARIANT_MAX];
GDExtensionTypeFromVariantConstructorFunc to_types[GDEXTENSION_VARIANT_TYPE_VARIANT_MAX];
GDExtensionPtrDestructor destructors[GDEXTENSION_VARIANT_TYPE_VARIANT_MAX];

// StringName and String are a pointer each.
struct Name {
  void* value = nullptr;
};
std::mutex names_mutex;
std::map<std::string, std::unique_ptr<Name>> names;

constexpr size_t kVariantBytes = sizeof(Variant);
static_assert(kVariantBytes == 24, "the engine is expected to count in 32-bit real_t");

template <class T>
T converted(const Variant& value, Type type) {
  T out = {};
  to_types[type](&out, const_cast<void*>(static_cast<const void*>(value.data())));
  return out;
}

// What is in a variant of a packed array.
GDExtensionTypePtr inside(const Variant& value, Type type) {
  return interface.variant_get_ptr_internal_getter(type)(
      const_cast<void*>(static_cast<const void*>(value.data())));
}

}  // namespace

bool connect(GDExtensionInterfaceGetProcAddress get, GDExtensionClassLibraryPtr library,
             const char** missing) {
  own_library = library;
#define VKF_FIND(type, field)                            \
  interface.field = reinterpret_cast<type>(get(#field)); \
  if (interface.field == nullptr) return *missing = #field, false;
#define VKF_FIND_AS(type, field, called)                 \
  interface.field = reinterpret_cast<type>(get(called)); \
  if (interface.field == nullptr) return *missing = called, false;
  VKF_GODOT_FUNCTIONS(VKF_FIND, VKF_FIND_AS)
#undef VKF_FIND
#undef VKF_FIND_AS
  for (int i = 1; i < GDEXTENSION_VARIANT_TYPE_VARIANT_MAX; ++i) {
    const auto type = static_cast<Type>(i);
    from_types[i] = interface.get_variant_from_type_constructor(type);
    to_types[i] = interface.get_variant_to_type_constructor(type);
    destructors[i] = interface.variant_get_ptr_destructor(type);  // null for plain types
  }
  return true;
}

void disconnect() {
  const std::lock_guard lock(names_mutex);
  for (auto& [text, name] : names) {
    destructors[GDEXTENSION_VARIANT_TYPE_STRING_NAME](&name->value);
  }
  names.clear();
}

GDExtensionClassLibraryPtr library() {
  return own_library;
}

GDExtensionConstStringNamePtr name(const char* text) {
  const std::lock_guard lock(names_mutex);
  std::unique_ptr<Name>& found = names[text];
  if (!found) {
    found = std::make_unique<Name>();
    interface.string_name_new_with_utf8_chars(&found->value, text);
  }
  return &found->value;
}

Variant::Variant() {
  interface.variant_new_nil(data_);
}
Variant::Variant(bool value) {
  GDExtensionBool plain = value ? 1 : 0;
  from_types[GDEXTENSION_VARIANT_TYPE_BOOL](data_, &plain);
}
Variant::Variant(int64_t value) {
  from_types[GDEXTENSION_VARIANT_TYPE_INT](data_, &value);
}
Variant::Variant(double value) {
  from_types[GDEXTENSION_VARIANT_TYPE_FLOAT](data_, &value);
}
Variant::Variant(const std::string& text) {
  void* string = nullptr;
  interface.string_new_with_utf8_chars_and_len(&string, text.data(),
                                               static_cast<GDExtensionInt>(text.size()));
  from_types[GDEXTENSION_VARIANT_TYPE_STRING](data_, &string);
  destructors[GDEXTENSION_VARIANT_TYPE_STRING](&string);
}
Variant::Variant(Object object) {
  from_types[GDEXTENSION_VARIANT_TYPE_OBJECT](data_, &object);
}
Variant::Variant(const Variant& other) {
  interface.variant_new_copy(data_, other.data_);
}
Variant::Variant(Variant&& other) noexcept {
  std::memcpy(data_, other.data_, kVariantBytes);
  interface.variant_new_nil(other.data_);
}
Variant& Variant::operator=(Variant other) noexcept {
  unsigned char mine[kVariantBytes];
  std::memcpy(mine, data_, kVariantBytes);
  std::memcpy(data_, other.data_, kVariantBytes);
  std::memcpy(other.data_, mine, kVariantBytes);
  return *this;
}
Variant::~Variant() {
  interface.variant_destroy(data_);
}

Variant Variant::copy_of(GDExtensionConstVariantPtr value) {
  Variant made;
  interface.variant_new_copy(made.data_, value);
  return made;
}

Variant Variant::from_type(Type type, GDExtensionConstTypePtr value) {
  if (type == GDEXTENSION_VARIANT_TYPE_NIL) return copy_of(value);
  Variant made;
  from_types[type](made.data_, const_cast<GDExtensionTypePtr>(value));
  return made;
}

void Variant::store(Type type, GDExtensionTypePtr to) const {
  void* const self = const_cast<unsigned char*>(data_);
  if (type == GDEXTENSION_VARIANT_TYPE_NIL) {
    interface.variant_destroy(to);
    interface.variant_new_copy(to, data_);
  } else if (type == GDEXTENSION_VARIANT_TYPE_OBJECT) {
    interface.ref_set_object(to, as_object());  // what we hand out is reference-counted
  } else {
    if (destructors[type] != nullptr) destructors[type](to);
    to_types[type](to, self);
  }
}

Variant Variant::make(Type type, std::initializer_list<Variant> arguments) {
  std::vector<GDExtensionConstVariantPtr> pointers;
  for (const Variant& argument : arguments) pointers.push_back(argument.data());
  Variant made;
  GDExtensionCallError error = {};
  interface.variant_construct(type, made.data_, pointers.data(),
                              static_cast<int32_t>(pointers.size()), &error);
  return made;
}

Variant Variant::floats(const float* values, size_t count) {
  Variant made = make(GDEXTENSION_VARIANT_TYPE_PACKED_FLOAT32_ARRAY);
  if (count == 0) return made;
  made.call("resize", {static_cast<int64_t>(count)});
  GDExtensionTypePtr array = inside(made, GDEXTENSION_VARIANT_TYPE_PACKED_FLOAT32_ARRAY);
  std::memcpy(interface.packed_float32_array_operator_index(array, 0), values,
              count * sizeof(float));
  return made;
}

Variant Variant::strings(const std::vector<std::string>& values) {
  Variant made = make(GDEXTENSION_VARIANT_TYPE_PACKED_STRING_ARRAY);
  for (const std::string& value : values) made.call("push_back", {value});
  return made;
}

Variant Variant::string_name(const char* text) {
  return from_type(GDEXTENSION_VARIANT_TYPE_STRING_NAME, name(text));
}

Type Variant::type() const {
  return interface.variant_get_type(data_);
}
bool Variant::is_null() const {
  return type() == GDEXTENSION_VARIANT_TYPE_NIL ||
         (type() == GDEXTENSION_VARIANT_TYPE_OBJECT && as_object() == nullptr);
}
bool Variant::as_bool() const {
  return interface.variant_booleanize(data_) != 0;
}
int64_t Variant::as_int() const {
  return converted<int64_t>(*this, GDEXTENSION_VARIANT_TYPE_INT);
}
double Variant::as_double() const {
  return converted<double>(*this, GDEXTENSION_VARIANT_TYPE_FLOAT);
}
Object Variant::as_object() const {
  if (type() != GDEXTENSION_VARIANT_TYPE_OBJECT) return nullptr;
  return converted<Object>(*this, GDEXTENSION_VARIANT_TYPE_OBJECT);
}

std::string Variant::as_string() const {
  void* string = nullptr;
  interface.variant_stringify(data_, &string);
  const GDExtensionInt size = interface.string_to_utf8_chars(&string, nullptr, 0);
  std::string text(static_cast<size_t>(size), '\0');
  interface.string_to_utf8_chars(&string, text.data(), size);
  destructors[GDEXTENSION_VARIANT_TYPE_STRING](&string);
  return text;
}

std::vector<std::string> Variant::as_strings() const {
  std::vector<std::string> texts;
  const int64_t count = call("size").as_int();
  for (int64_t i = 0; i < count; ++i) texts.push_back(call("get", {i}).as_string());
  return texts;
}

std::vector<float> Variant::as_floats() const {
  const bool packed = type() == GDEXTENSION_VARIANT_TYPE_PACKED_FLOAT32_ARRAY;
  // Scripts write [0.5], which is an Array of doubles.
  const bool counted = packed || type() == GDEXTENSION_VARIANT_TYPE_ARRAY ||
                       type() == GDEXTENSION_VARIANT_TYPE_PACKED_FLOAT64_ARRAY;
  if (!counted) return {};
  std::vector<float> values(static_cast<size_t>(call("size").as_int()));
  if (values.empty()) return values;
  if (!packed) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(call("get", {static_cast<int64_t>(i)}).as_double());
    }
    return values;
  }
  GDExtensionTypePtr array = inside(*this, type());
  std::memcpy(values.data(), interface.packed_float32_array_operator_index_const(array, 0),
              values.size() * sizeof(float));
  return values;
}

std::vector<uint8_t> Variant::as_bytes() const {
  if (type() != GDEXTENSION_VARIANT_TYPE_PACKED_BYTE_ARRAY) return {};
  std::vector<uint8_t> values(static_cast<size_t>(call("size").as_int()));
  if (values.empty()) return values;
  GDExtensionTypePtr array = inside(*this, type());
  std::memcpy(values.data(), interface.packed_byte_array_operator_index_const(array, 0),
              values.size());
  return values;
}

Variant Variant::call(const char* method, const std::vector<Variant>& arguments) const {
  std::vector<GDExtensionConstVariantPtr> pointers;
  for (const Variant& argument : arguments) pointers.push_back(argument.data());
  GDExtensionCallError error = {};
  alignas(8) unsigned char result[kVariantBytes];
  interface.variant_new_nil(result);
  interface.variant_call(const_cast<unsigned char*>(data_), name(method), pointers.data(),
                         static_cast<GDExtensionInt>(pointers.size()), result, &error);
  Variant made = copy_of(result);
  interface.variant_destroy(result);
  if (error.error != GDEXTENSION_CALL_OK) {
    print_error(std::string(method) + ": the engine refused the call with error " +
                std::to_string(error.error) + ". Please report it.");
  }
  return made;
}

Variant Variant::call(const char* method, std::initializer_list<Variant> arguments) const {
  return call(method, std::vector<Variant>(arguments));
}

Variant singleton(const char* text) {
  return {interface.global_get_singleton(name(text))};
}

Variant instantiate(const char* class_name) {
  return singleton("ClassDB").call("instantiate", {Variant::string_name(class_name)});
}

Variant call_static(const char* class_name, const char* method,
                    std::initializer_list<Variant> arguments) {
  std::vector<Variant> all = {Variant::string_name(class_name), Variant::string_name(method)};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return singleton("ClassDB").call("class_call_static", all);
}

Object object_from_id(uint64_t id) {
  return interface.object_get_instance_from_id(id);
}
uint64_t id_of(Object object) {
  return interface.object_get_instance_id(object);
}

void print_error(const std::string& message) {
  interface.print_error(message.c_str(), "vkformer", "vkformer", 0, 0);
}
void print_warning(const std::string& message) {
  interface.print_warning(message.c_str(), "vkformer", "vkformer", 0, 0);
}

File::File(const std::string& path)
    : file_(file_exists(path) ? call_static("FileAccess", "open", {path, 1}) : Variant()) {}

uint64_t File::size() const {
  return static_cast<uint64_t>(file_.call("get_length").as_int());
}

bool File::read(uint64_t offset, void* out, size_t bytes) {
  file_.call("seek", {offset});
  return interface.file_access_get_buffer(file_.as_object(), static_cast<uint8_t*>(out), bytes) ==
         bytes;
}

bool file_exists(const std::string& path) {
  return call_static("FileAccess", "file_exists", {path}).as_bool();
}

std::vector<uint8_t> read_file(const std::string& path) {
  File file(path);
  if (!file.is_open()) return {};
  std::vector<uint8_t> bytes(file.size());
  if (!file.read(0, bytes.data(), bytes.size())) return {};
  return bytes;
}

std::string system_path(const std::string& path) {
  const std::string found = singleton("ProjectSettings").call("globalize_path", {path}).as_string();
  // Of a project in a pack, res:// has no place among the system's files.
  if (found.empty() || found.starts_with("res://")) return "";
  if (!call_static("DirAccess", "dir_exists_absolute", {found}).as_bool()) return "";
  return found;
}

bool write_file(const std::string& path, const std::vector<uint8_t>& bytes) {
  const std::string folder = path.substr(0, path.rfind('/'));
  call_static("DirAccess", "make_dir_recursive_absolute", {folder});
  const Variant file = call_static("FileAccess", "open", {path, 2});
  if (file.is_null()) return false;
  interface.file_access_store_buffer(file.as_object(), bytes.data(), bytes.size());
  file.call("close");
  return true;
}

}  // namespace gd
