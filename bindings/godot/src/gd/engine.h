// The engine as C++ sees it: values, names, files and calls, over the GDExtension C interface.
//
// Engine methods are called by name, so that no table of hashes is needed and one binary works with
// later engines. Threading: values belong to one thread at a time; the functions may be called from
// any thread unless the engine's own method says otherwise.
#pragma once

#include <gdextension_interface.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace gd {

using Type = GDExtensionVariantType;
using Object = GDExtensionObjectPtr;

// Finds the engine's functions; false if this engine lacks one, which `missing` then names.
bool connect(GDExtensionInterfaceGetProcAddress get, GDExtensionClassLibraryPtr library,
             const char** missing);
// Drops the cached names.
void disconnect();
GDExtensionClassLibraryPtr library();

// The engine's name for a text that is a constant of the program.
GDExtensionConstStringNamePtr name(const char* text);

// A value of any type of the engine.
class Variant {
 public:
  Variant();
  Variant(bool value);
  Variant(int value) : Variant(static_cast<int64_t>(value)) {}
  Variant(int64_t value);
  Variant(uint64_t value) : Variant(static_cast<int64_t>(value)) {}
  Variant(double value);
  Variant(const char* text) : Variant(std::string(text)) {}
  Variant(const std::string& text);
  Variant(Object object);
  Variant(const Variant& other);
  Variant(Variant&& other) noexcept;
  Variant& operator=(Variant other) noexcept;
  ~Variant();

  // A copy of what the engine owns.
  static Variant copy_of(GDExtensionConstVariantPtr value);
  // A value from the memory of its type, as ptrcalls pass it.
  static Variant from_type(Type type, GDExtensionConstTypePtr value);
  // Stores it as that type over an initialized value of that type.
  void store(Type type, GDExtensionTypePtr to) const;
  static Variant make(Type type, std::initializer_list<Variant> arguments = {});
  static Variant floats(const float* values, size_t count);
  static Variant strings(const std::vector<std::string>& values);
  static Variant string_name(const char* text);

  Type type() const;
  bool is_null() const;
  // Converted as the engine converts.
  bool as_bool() const;
  int64_t as_int() const;
  double as_double() const;
  std::string as_string() const;
  Object as_object() const;  // null if it is none
  std::vector<std::string> as_strings() const;
  std::vector<float> as_floats() const;
  std::vector<uint8_t> as_bytes() const;

  // Calls a method of the value; null after a failed call, which the engine reports.
  Variant call(const char* method, std::initializer_list<Variant> arguments = {}) const;
  Variant call(const char* method, const std::vector<Variant>& arguments) const;

  GDExtensionVariantPtr data() { return data_; }
  GDExtensionConstVariantPtr data() const { return data_; }

 private:
  alignas(8) unsigned char data_[24];
};

// A singleton such as "RenderingServer".
Variant singleton(const char* name);
// A new object of an engine class, such as "RDTextureView".
Variant instantiate(const char* class_name);
// A static method of an engine class.
Variant call_static(const char* class_name, const char* method,
                    std::initializer_list<Variant> arguments);
// The object of that number, or null if it is gone.
Object object_from_id(uint64_t id);
uint64_t id_of(Object object);

void print_error(const std::string& message);
void print_warning(const std::string& message);

// A file of the project (res://), of the pack it was exported to, of the user, or of the system.
class File {
 public:
  explicit File(const std::string& path);
  bool is_open() const { return !file_.is_null(); }
  uint64_t size() const;
  bool read(uint64_t offset, void* out, size_t bytes);

 private:
  Variant file_;
};
bool file_exists(const std::string& path);
// The whole of it; empty if it cannot be read.
std::vector<uint8_t> read_file(const std::string& path);
// The path in the system's files of res:// and user://; empty where it is inside a pack.
std::string system_path(const std::string& path);
// Directories are made; false if that failed.
bool write_file(const std::string& path, const std::vector<uint8_t>& bytes);

}  // namespace gd
