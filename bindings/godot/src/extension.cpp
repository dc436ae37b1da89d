// Where the engine begins and ends with us.
#include <memory>
#include <vector>

#include "gd/classes.h"
#include "gd/interface.h"
#include "generator.h"
#include "host.h"
#include "model.h"
#include "passes.h"
#include "server.h"

// Pages of doc_classes, of the generated help.cpp.
extern const char* const vkformer_help[];

namespace vkf_godot {
namespace {

std::vector<std::unique_ptr<gd::Class>> classes;
gd::Object server = nullptr;

// A setting of the project that the editor shows, and its value.
gd::Variant project_setting(const char* name, const gd::Variant& initial, const gd::Hint& hint) {
  const gd::Variant settings = gd::singleton("ProjectSettings");
  if (!settings.call("has_setting", {name}).as_bool()) {
    settings.call("set_setting", {name, initial});
  }
  settings.call("set_initial_value", {name, initial});
  settings.call("set_as_basic", {name, true});
  const gd::Variant info = gd::Variant::make(GDEXTENSION_VARIANT_TYPE_DICTIONARY);
  info.call("set", {"name", name});
  info.call("set", {"type", static_cast<int64_t>(initial.type())});
  info.call("set", {"hint", static_cast<int64_t>(hint.hint)});
  info.call("set", {"hint_string", hint.text});
  settings.call("add_property_info", {info});
  return settings.call("get_setting", {name, initial});
}

void initialize(void*, GDExtensionInitializationLevel level) {
  if (level == GDEXTENSION_INITIALIZATION_EDITOR) {
    for (const char* const* page = vkformer_help; *page != nullptr; ++page) {
      gd::interface.editor_help_load(*page);
    }
  }
  if (level != GDEXTENSION_INITIALIZATION_SCENE) return;
  classes.push_back(Server::register_class());
  server = classes.back()->make();
  classes.push_back(ModelResource::register_class());
  classes.push_back(GeneratorNode::register_class());
  classes.push_back(ChatNode::register_class());
  classes.push_back(EmbeddingNode::register_class());
  classes.push_back(ClassifierNode::register_class());
  classes.push_back(SpeechNode::register_class());
  gd::singleton("Engine").call("register_singleton",
                               {gd::Variant::string_name("VkfServer"), gd::Variant(server)});
  Host& host = Host::get();
  host.budget_milliseconds =
      project_setting("vkformer/frame_budget_ms", 2.0, gd::range("0.1,16,0.1,or_greater"))
          .as_double();
  host.prefer_own_device =
      project_setting("vkformer/device", 0, gd::choices("The engine's:0,Its own:1")).as_int() == 1;
}

void deinitialize(void*, GDExtensionInitializationLevel level) {
  if (level != GDEXTENSION_INITIALIZATION_SCENE) return;
  Host::get().stop();
  gd::singleton("Engine").call("unregister_singleton", {gd::Variant::string_name("VkfServer")});
  gd::interface.object_destroy(server);
  while (!classes.empty()) classes.pop_back();
  gd::disconnect();
}

void on_frame() {
  Host::get().frame();
}
void on_shutdown() {
  Host::get().stop();
}

}  // namespace
}  // namespace vkf_godot

extern "C" {

#ifdef _WIN32
__declspec(dllexport)
#else
__attribute__((visibility("default")))
#endif
    GDExtensionBool
    vkformer_godot_init(GDExtensionInterfaceGetProcAddress get, GDExtensionClassLibraryPtr library,
                        GDExtensionInitialization* initialization) {
  const char* missing = nullptr;
  if (!gd::connect(get, library, &missing)) {
    if (auto print = reinterpret_cast<GDExtensionInterfacePrintError>(get("print_error"))) {
      const std::string message =
          std::string("[vkformer] this engine has no ") + missing + "; use Godot 4.5 or later.";
      print(message.c_str(), "vkformer", "vkformer", 0, 1);
    }
    return 0;
  }
  initialization->minimum_initialization_level = GDEXTENSION_INITIALIZATION_SCENE;
  initialization->initialize = vkf_godot::initialize;
  initialization->deinitialize = vkf_godot::deinitialize;
  const GDExtensionMainLoopCallbacks callbacks = {nullptr, vkf_godot::on_shutdown,
                                                  vkf_godot::on_frame};
  gd::interface.register_main_loop_callbacks(library, &callbacks);
  return 1;
}
}
