#include "gd/classes.h"

#include "gd/interface.h"

namespace gd {
namespace {

// A String of the engine for the length of a call.
class Text {
 public:
  explicit Text(const std::string& text) {
    interface.string_new_with_utf8_chars_and_len(&value_, text.data(),
                                                 static_cast<GDExtensionInt>(text.size()));
  }
  ~Text() { interface.variant_get_ptr_destructor(GDEXTENSION_VARIANT_TYPE_STRING)(&value_); }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  GDExtensionStringPtr get() { return &value_; }

 private:
  void* value_ = nullptr;
};

constexpr uint32_t kUsageDefault = 6;  // stored, and shown in the editor
constexpr uint32_t kUsageNilIsVariant = 1 << 17;

GDExtensionStringNamePtr mutable_name(const char* text) {
  return const_cast<GDExtensionStringNamePtr>(name(text));
}

GDExtensionPropertyInfo info_of(Type type, const char* called, const char* class_name,
                                uint32_t hint, GDExtensionStringPtr hint_text, uint32_t usage) {
  return {type, mutable_name(called), mutable_name(class_name), hint, hint_text, usage};
}

void* binding_token() {
  return library();
}

const GDExtensionInstanceBindingCallbacks kNoCallbacks = {nullptr, nullptr, nullptr};

}  // namespace

void Instance::emit(const char* signal, const std::vector<Variant>& arguments) const {
  std::vector<Variant> all = {Variant::string_name(signal)};
  all.insert(all.end(), arguments.begin(), arguments.end());
  Variant(owner_).call("emit_signal", all);
}

Instance* Instance::of(const Variant& object) {
  const Object found = object.as_object();
  if (found == nullptr) return nullptr;
  return static_cast<Instance*>(
      interface.object_get_instance_binding(found, binding_token(), nullptr));
}

Hint range(const char* text) {
  return {1, text};
}
Hint choices(const char* text) {
  return {2, text};
}
Hint folder() {
  return {14, ""};
}
Hint resource(const char* class_name) {
  return {17, class_name};
}
Hint multiline() {
  return {18, ""};
}
Hint text_list() {
  return {23, "4/18:"};
}

struct Class::Method {
  std::string name;
  Type result;
  std::vector<Type> types;
  Arguments defaults;
  Run run;

  static void call(void* self, GDExtensionClassInstancePtr instance,
                   const GDExtensionConstVariantPtr* given, GDExtensionInt count,
                   GDExtensionVariantPtr result, GDExtensionCallError* error) {
    const auto& method = *static_cast<Method*>(self);
    const size_t most = method.types.size();
    const auto passed = static_cast<size_t>(count);
    if (passed > most || passed + method.defaults.size() < most) {
      error->error = passed > most ? GDEXTENSION_CALL_ERROR_TOO_MANY_ARGUMENTS
                                   : GDEXTENSION_CALL_ERROR_TOO_FEW_ARGUMENTS;
      error->expected = static_cast<int32_t>(most);
      return;
    }
    Arguments arguments;
    for (size_t i = 0; i < passed; ++i) arguments.push_back(Variant::copy_of(given[i]));
    for (size_t i = passed; i < most; ++i) {
      arguments.push_back(method.defaults[method.defaults.size() - (most - i)]);
    }
    const Variant made = method.run(static_cast<Instance*>(instance), arguments);
    interface.variant_destroy(result);
    interface.variant_new_copy(result, made.data());
    error->error = GDEXTENSION_CALL_OK;
  }

  static void call_typed(void* self, GDExtensionClassInstancePtr instance,
                         const GDExtensionConstTypePtr* given, GDExtensionTypePtr result) {
    const auto& method = *static_cast<Method*>(self);
    Arguments arguments;
    for (size_t i = 0; i < method.types.size(); ++i) {
      arguments.push_back(Variant::from_type(method.types[i], given[i]));
    }
    const Variant made = method.run(static_cast<Instance*>(instance), arguments);
    if (result != nullptr) made.store(method.result, result);
  }
};

Class::Class(const char* class_name, const char* parent, Make make)
    : name_(class_name), parent_(parent), make_(std::move(make)) {
  GDExtensionClassCreationInfo5 info = {};
  info.is_exposed = 1;
  info.create_instance_func = create;
  info.free_instance_func = [](void*, GDExtensionClassInstancePtr instance) {
    delete static_cast<Instance*>(instance);
  };
  info.class_userdata = this;
  interface.classdb_register_extension_class5(library(), name(name_), name(parent_), &info);
}

Class::~Class() {
  interface.classdb_unregister_extension_class(library(), name(name_));
}

Object Class::create(void* self, GDExtensionBool notify) {
  const auto& made_of = *static_cast<Class*>(self);
  const Object owner = interface.classdb_construct_object2(name(made_of.parent_));
  Instance* instance = made_of.make_().release();
  instance->owner_ = owner;
  instance->id_ = id_of(owner);
  interface.object_set_instance(owner, name(made_of.name_), instance);
  interface.object_set_instance_binding(owner, binding_token(), instance, &kNoCallbacks);
  // A value would count a reference of what counts none yet, so only nodes are told.
  if (notify != 0 && std::string(made_of.parent_) == "Node")
    Variant(owner).call("notification", {0});
  return owner;
}

Object Class::make() const {
  return create(const_cast<Class*>(this), 1);
}

void Class::add(const char* method_name, Type result, const std::vector<Argument>& arguments,
                const Arguments& defaults, Run run) {
  auto method = std::make_unique<Method>();
  method->name = method_name;
  method->result = result;
  method->defaults = defaults;
  method->run = std::move(run);
  Text empty("");
  std::vector<GDExtensionPropertyInfo> infos;
  std::vector<GDExtensionClassMethodArgumentMetadata> metadata(
      arguments.size(), GDEXTENSION_METHOD_ARGUMENT_METADATA_NONE);
  for (const Argument& argument : arguments) {
    method->types.push_back(argument.type);
    infos.push_back(info_of(argument.type, argument.name, argument.class_name, 0, empty.get(),
                            argument.type == GDEXTENSION_VARIANT_TYPE_NIL
                                ? kUsageDefault | kUsageNilIsVariant
                                : kUsageDefault));
  }
  GDExtensionPropertyInfo returned = info_of(result, "", "", 0, empty.get(), kUsageDefault);
  std::vector<GDExtensionVariantPtr> default_pointers;
  for (Variant& value : method->defaults) default_pointers.push_back(value.data());
  GDExtensionClassMethodInfo info = {};
  info.name = mutable_name(method_name);
  info.method_userdata = method.get();
  info.call_func = Method::call;
  info.ptrcall_func = Method::call_typed;
  info.method_flags = GDEXTENSION_METHOD_FLAGS_DEFAULT;
  info.has_return_value = result != GDEXTENSION_VARIANT_TYPE_NIL;
  info.return_value_info = &returned;
  info.argument_count = static_cast<uint32_t>(arguments.size());
  info.arguments_info = infos.data();
  info.arguments_metadata = metadata.data();
  info.default_argument_count = static_cast<uint32_t>(default_pointers.size());
  info.default_arguments = default_pointers.data();
  interface.classdb_register_extension_class_method(library(), name(name_), &info);
  methods_.push_back(std::move(method));
}

void Class::add_property(const char* property, Type type, const Hint& hint,
                         std::function<Variant(Instance*)> get,
                         std::function<void(Instance*, const Variant&)> set) {
  const auto keep = [&](const std::string& text) {
    texts_.push_back(std::make_unique<std::string>(text));
    return texts_.back()->c_str();
  };
  const char* getter = keep(std::string("get_") + property);
  const char* setter = keep(std::string("set_") + property);
  add(getter, type, {}, {}, [get](Instance* self, const Arguments&) { return get(self); });
  if (set) {
    add(setter, GDEXTENSION_VARIANT_TYPE_NIL, {{"value", type, ""}}, {},
        [set](Instance* self, const Arguments& given) {
          set(self, given[0]);
          return Variant();
        });
  }
  Text hint_text(hint.text);
  const char* class_name = type == GDEXTENSION_VARIANT_TYPE_OBJECT ? keep(hint.text) : "";
  const GDExtensionPropertyInfo info =
      info_of(type, property, class_name, hint.hint, hint_text.get(), kUsageDefault);
  interface.classdb_register_extension_class_property(library(), name(name_), &info, name(setter),
                                                      name(getter));
}

void Class::group(const char* title) {
  Text text(title);
  Text prefix("");
  interface.classdb_register_extension_class_property_group(library(), name(name_), text.get(),
                                                            prefix.get());
}

void Class::signal(const char* signal_name, const std::vector<Argument>& arguments) {
  Text empty("");
  std::vector<GDExtensionPropertyInfo> infos;
  for (const Argument& argument : arguments) {
    infos.push_back(
        info_of(argument.type, argument.name, argument.class_name, 0, empty.get(), kUsageDefault));
  }
  interface.classdb_register_extension_class_signal(library(), name(name_), name(signal_name),
                                                    infos.data(),
                                                    static_cast<GDExtensionInt>(infos.size()));
}

}  // namespace gd
