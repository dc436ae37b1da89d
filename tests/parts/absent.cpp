// A program against a build whose parts are OFF: it links to every function of theirs, and each
// says how to build with it. What stays works: the word of a model. tests/parts/run.sh builds both.
#include <vkformer/attention.h>
#include <vkformer/attention_view.h>
#include <vkformer/audio.h>
#include <vkformer/benchmark.h>
#include <vkformer/chat.h>
#include <vkformer/depth.h>
#include <vkformer/embed.h>
#include <vkformer/grammar.h>
#include <vkformer/heat_map.h>
#include <vkformer/image_prompt_reader.h>
#include <vkformer/model_pack.h>
#include <vkformer/operators.h>
#include <vkformer/picture.h>
#include <vkformer/quantize.h>
#include <vkformer/segment.h>
#include <vkformer/session.h>
#include <vkformer/tasks.h>
#include <vkformer/tokenizer.h>
#include <vkformer/tuning.h>
#include <vkformer/vkformer.h>

#include <cstdio>
#include <string>

using namespace vkformer;

namespace {

int faults = 0;

void fault(const char* call, const std::string& what) {
  std::fprintf(stderr, "parts: %s: %s\n", call, what.c_str());
  ++faults;
}

void check_message(const char* call, const char* part, const std::string& message) {
  const std::string option = std::string("VKFORMER_WITH_") + part + "=ON";
  if (message.find(option) == std::string::npos || message.back() != '.') {
    fault(call, "[" + message + "] does not name " + option);
  }
}

template <class Outcome>
void check_absent(const char* call, const char* part, const Outcome& outcome) {
  if (outcome.ok()) return fault(call, "it has no error");
  if (outcome.error().code != ErrorCode::kUnsupported) fault(call, "its error is another");
  check_message(call, part, outcome.error().message);
}

// The same of a C function, which also nulls what it was to make.
template <class Handle, class Call>
void check_absent_c(const char* name, const char* part, const Call& call) {
  vkf_error* error = vkf_error_create();
  auto* made = reinterpret_cast<Handle*>(&faults);
  if (call(&made, error) != VKF_UNSUPPORTED) fault(name, "its status is another");
  if (made != nullptr) fault(name, "it left the place for the result as it was");
  check_message(name, part, vkf_error_message(error));
  vkf_error_free(error);
}

void check_cpp(const Device& device, const ModelSource& source) {
  check_absent("Embedder::load", "TASKS", Embedder::load(device, source));
  check_absent("TextGenerator::load", "TASKS", TextGenerator::load(device, source));
  const auto model = Model::load_from(device, source);
  if (!model) {
    fault("Model::load_from", model.error().message.c_str());
  } else {
    check_absent("ImagePromptReader::load", "TASKS", ImagePromptReader::load(*model, source));
  }
  check_absent("Segmenter::load", "TASKS", Segmenter::load(device, source));
  check_absent("DepthEstimator::load", "TASKS", DepthEstimator::load(device, source));
  check_absent("render_depth_png", "TASKS", render_depth_png(DepthMap{}));
  check_absent("Grammar::from_gbnf", "GRAMMAR", Grammar::from_gbnf("root ::= \"a\""));
  check_absent("Grammar::any_json", "GRAMMAR", Grammar::any_json());
  check_absent("ChatTemplate::load", "CHAT", ChatTemplate::load(source));
  check_absent("ChatTemplate::parse", "CHAT", ChatTemplate::parse("{{ 1 }}"));
  check_absent("Picture::load", "IMAGE", Picture::load("picture.png"));
  check_absent("write_heat_map_png", "IMAGE", write_heat_map_png("map.png", HeatMap{}));
  check_absent("attention_rollout", "IMAGE", attention_rollout(AttentionMaps{}));
  check_absent("load_wav", "AUDIO", load_wav("sound.wav"));
  check_absent("LogMelExtractor::load", "AUDIO", LogMelExtractor::load("model"));
  check_absent("run_operator", "OPERATORS", run_operator(device, OperatorCall{}));
  check_absent("MultiHeadAttention::create", "OPERATORS",
               MultiHeadAttention::create(device, {}, {}));
  check_absent("measure_roofline", "PROFILE", measure_roofline(device));
  check_absent("tune_device", "PROFILE", tune_device(device));
  check_absent("quantize_model", "WRITING", quantize_model("model", "copy", {}));
  check_absent("write_gguf", "WRITING", write_gguf("model", "copy.gguf", {}));
  check_absent("pack_model", "WRITING", pack_model("model", "copy.pack", {}));
  if (!operator_names().empty()) fault("operator_names", "it names operators");
}

void check_c() {
  check_absent_c<vkf_task>("vkf_task_load", "TASKS", [](auto** made, vkf_error* error) {
    return vkf_task_load(nullptr, nullptr, "embed", nullptr, made, error);
  });
  check_absent_c<vkf_grammar>("vkf_grammar_from_gbnf", "GRAMMAR", [](auto** made, auto* error) {
    return vkf_grammar_from_gbnf("root ::= \"a\"", nullptr, made, error);
  });
  check_absent_c<vkf_chat_template>(
      "vkf_chat_template_parse", "CHAT", [](auto** made, auto* error) {
        return vkf_chat_template_parse("{{ 1 }}", nullptr, made, error);
      });
  check_absent_c<vkf_picture>("vkf_picture_load", "IMAGE", [](auto** made, auto* error) {
    return vkf_picture_load("picture.png", made, error);
  });
  check_absent_c<vkf_sound>("vkf_sound_load", "AUDIO", [](auto** made, auto* error) {
    return vkf_sound_load("sound.wav", 16000, made, error);
  });
  check_absent_c<vkf_strings>("vkf_operator_names", "OPERATORS", [](auto** made, auto* error) {
    return vkf_operator_names(made, error);
  });
  check_absent_c<vkf_tune_report>("vkf_device_tune", "PROFILE", [](auto** made, auto* error) {
    return vkf_device_tune(nullptr, nullptr, made, error);
  });
}

}  // namespace

// absent MODEL: its directory, of a family that the build has.
int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto device = Device::create();
  if (!device) {
    std::fprintf(stderr, "parts: %s\n", device.error().message.c_str());
    return 1;
  }
  check_cpp(*device, ModelSource::directory(argv[1]));
  check_c();
  if (faults == 0) std::printf("parts: every absent part says so\n");
  return faults == 0 ? 0 : 1;
}
