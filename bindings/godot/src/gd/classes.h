// Classes that the engine gets from us: properties, methods, signals.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gd/engine.h"

namespace gd {

// What an object of such a class is on our side. The engine owns it.
class Instance {
 public:
  virtual ~Instance() = default;
  Object owner() const { return owner_; }
  uint64_t id() const { return id_; }
  void emit(const char* signal, const std::vector<Variant>& arguments = {}) const;
  // Ours of an object of the engine; null if it is of another class.
  static Instance* of(const Variant& object);

 private:
  friend class Class;
  Object owner_ = nullptr;
  uint64_t id_ = 0;
};

struct Argument {
  const char* name;
  Type type = GDEXTENSION_VARIANT_TYPE_STRING;
  const char* class_name = "";  // of objects
};

struct Hint {
  uint32_t hint = 0;  // PropertyHint
  std::string text;
};
Hint range(const char* text);           // "0,2,0.01"
Hint choices(const char* text);         // "Model's own,Off,On"
Hint folder();                          // a folder of the project
Hint resource(const char* class_name);  // a resource of a class
Hint multiline();
Hint text_list();

using Arguments = std::vector<Variant>;

// Registers one class. It is alive until the extension goes.
class Class {
 public:
  using Make = std::function<std::unique_ptr<Instance>()>;
  // Null `make`: objects of it cannot be made by scripts.
  Class(const char* name, const char* parent, Make make);
  ~Class();
  Class(const Class&) = delete;
  Class& operator=(const Class&) = delete;

  // The last `defaults` arguments may be omitted.
  template <class T>
  void method(const char* name, Type result, const std::vector<Argument>& arguments,
              Variant (T::*run)(const Arguments&), const Arguments& defaults = {}) {
    add(name, result, arguments, defaults, [run](Instance* self, const Arguments& given) {
      return (static_cast<T*>(self)->*run)(given);
    });
  }
  template <class T>
  void property(const char* name, Type type, const Hint& hint, std::function<Variant(T&)> get,
                std::function<void(T&, const Variant&)> set) {
    add_property(
        name, type, hint, [get](Instance* self) { return get(*static_cast<T*>(self)); },
        [set](Instance* self, const Variant& value) { set(*static_cast<T*>(self), value); });
  }
  void group(const char* title);
  void signal(const char* name, const std::vector<Argument>& arguments);
  // A new object, by ourselves.
  Object make() const;

 private:
  struct Method;
  using Run = std::function<Variant(Instance*, const Arguments&)>;
  void add(const char* name, Type result, const std::vector<Argument>& arguments,
           const Arguments& defaults, Run run);
  void add_property(const char* name, Type type, const Hint& hint,
                    std::function<Variant(Instance*)> get,
                    std::function<void(Instance*, const Variant&)> set);
  static Object create(void* self, GDExtensionBool notify);

  const char* name_;
  const char* parent_;
  Make make_;
  std::vector<std::unique_ptr<Method>> methods_;
  std::vector<std::unique_ptr<std::string>> texts_;
};

}  // namespace gd
