// `vkformer classify`: texts, pairs of texts or pictures in, labels or entities out.
#include "attend_output.h"
#include "readable.h"
#include "task_command.h"

namespace vkformer::cli {

namespace {

struct ClassifyCommandOptions {
  TaskCommandOptions task;
  int top = 5;
  std::vector<std::string> labels;  // of zero-shot classification; none: the model's classes
  ZeroShotOptions zero_shot;
  EntityOptions entities;
  std::string overlay;  // file to write; empty: none
};

Json answer_json(const std::vector<LabelScore>& labels) {
  Json answer = Json::object();
  if (labels.empty()) return answer;
  answer["label"] = labels[0].label;
  answer["score"] = labels[0].score;
  answer["labels"] = labels_json(labels);
  return answer;
}

Result<std::vector<Json>> label_texts(TextClassifier& classifier, const std::vector<Json>& inputs,
                                      int top) {
  std::vector<ClassifyInput> texts;
  for (const Json& input : inputs) {
    Result<std::string> text = text_field(input, "text");
    if (!text) return text.error();
    Result<std::optional<std::string>> pair = optional_text_field(input, "text_pair");
    if (!pair) return pair.error();
    texts.push_back({std::move(*text), std::move(*pair)});
  }
  const auto labels = classifier.classify(texts, top);
  if (!labels) return labels.error();
  std::vector<Json> answers;
  for (const auto& one : *labels) answers.push_back(answer_json(one));
  return answers;
}

// Entities of the model's classes, or of labels that the caller has named.
Result<std::vector<Json>> find_entities(TextClassifier& classifier, const std::vector<Json>& inputs,
                                        const ClassifyCommandOptions& options) {
  const Result<std::vector<std::string>> texts = text_fields(inputs, "text");
  if (!texts) return texts.error();
  const auto found = classifier.finds_entities()
                         ? classifier.entities(*texts)
                         : classifier.zero_shot_entities(*texts, options.labels, options.entities);
  if (!found) return found.error();
  std::vector<Json> answers;
  for (const std::vector<Entity>& entities : *found) {
    Json list = Json::array();
    for (const Entity& entity : entities) {
      Json entry;
      entry["label"] = entity.label;
      entry["score"] = entity.score;
      entry["text"] = entity.text;
      entry["begin"] = entity.range.begin;
      entry["end"] = entity.range.end;
      list.push_back(std::move(entry));
    }
    answers.push_back(Json::object());
    answers.back()["entities"] = std::move(list);
  }
  return answers;
}

// The likeliest of labels that the caller has named.
Result<std::vector<Json>> named_answers(Result<std::vector<std::vector<LabelScore>>> labels,
                                        int top) {
  if (!labels) return labels.error();
  std::vector<Json> answers;
  for (std::vector<LabelScore>& one : *labels) {
    if (top > 0) one.resize(std::min(one.size(), static_cast<size_t>(top)));
    answers.push_back(answer_json(one));
  }
  return answers;
}

Result<std::vector<Json>> label_pictures(PictureClassifier& classifier,
                                         const std::vector<Json>& inputs,
                                         const ClassifyCommandOptions& options) {
  const Result<std::vector<Picture>> pictures = picture_fields(inputs);
  if (!pictures) return pictures.error();
  if (!options.labels.empty()) {
    return named_answers(classifier.zero_shot(*pictures, options.labels, options.zero_shot),
                         options.top);
  }
  const auto labels = classifier.classify(*pictures, options.top);
  if (!labels) return labels.error();
  std::vector<Json> answers;
  for (const auto& one : *labels) answers.push_back(answer_json(one));
  return answers;
}

Result<std::vector<Json>> name_texts(TextClassifier& classifier, const std::vector<Json>& inputs,
                                     const ClassifyCommandOptions& options) {
  const Result<std::vector<std::string>> texts = text_fields(inputs, "text");
  if (!texts) return texts.error();
  return named_answers(classifier.zero_shot(*texts, options.labels, options.zero_shot),
                       options.top);
}

Result<AnswerInputs> open_texts(const Device& device, const ModelSource& source,
                                const TaskOptions& task, const ClassifyCommandOptions& options) {
  Result<TextClassifier> loaded = TextClassifier::load(device, source, task);
  if (!loaded) return loaded.error();
  const auto classifier = std::make_shared<TextClassifier>(std::move(*loaded));
  return AnswerInputs([classifier, &options](const std::vector<Json>& inputs) {
    const bool named = classifier->info().head == HeadKind::kEntities;
    if (named || (options.labels.empty() && classifier->finds_entities())) {
      return find_entities(*classifier, inputs, options);
    }
    return options.labels.empty() ? label_texts(*classifier, inputs, options.top)
                                  : name_texts(*classifier, inputs, options);
  });
}

// Writes the picture with what the model looked at in red over it. That is how attention flows from
// the patches through all layers to the class token.
Status write_seen(const Device& device, const ClassifyCommandOptions& options,
                  const std::string& picture) {
  AttendOptions attend;
  attend.model = options.task.model;
  attend.input.input = picture;
  attend.overlay = options.overlay;
  attend.rollout = true;
  // A second copy of the weights, for this one picture: a classifier does not hand out its own.
  const Result<Model> loaded = Model::load(device, attend.model, options.task.load);
  if (!loaded) return loaded.error();
  Result<AttendModel> model = AttendModel::create(*loaded, attend.model);
  if (!model) return model.error();
  if (const Status has = check_has_maps(model->info()); !has) return has;
  const Result<AttendPass> pass = model->prepare(attend.input);
  if (!pass) return pass.error();
  const Result<std::vector<AttentionMaps>> maps = model->maps(*pass, {.kinds = {MapKind::kSelf}});
  if (!maps) return maps.error();
  const Result<AttentionMaps> flow = attention_rollout(maps->front());
  return flow ? write_overlay(*pass, attend, *flow) : flow.error();
}

Result<AnswerInputs> open_pictures(const Device& device, const ModelSource& source,
                                   const TaskOptions& task, const ClassifyCommandOptions& options) {
  Result<PictureClassifier> loaded = PictureClassifier::load(device, source, task);
  if (!loaded) return loaded.error();
  const auto classifier = std::make_shared<PictureClassifier>(std::move(*loaded));
  return AnswerInputs([classifier, &device,
                       &options](const std::vector<Json>& inputs) -> Result<std::vector<Json>> {
    auto answers = label_pictures(*classifier, inputs, options);
    if (!answers || options.overlay.empty()) return answers;
    const Status seen = write_seen(device, options, options.task.arguments.front());
    if (!seen) return seen.error();
    return answers;
  });
}

// What the options say that cannot be done; empty: nothing.
std::string usage_error(const ClassifyCommandOptions& options, const ModelInfo& info,
                        bool pictures) {
  const bool compares = info.head == HeadKind::kSimilarity;
  if (!options.labels.empty() && pictures && !compares) {
    return "[--label] names classes, but [" + options.task.model + "] has its own.";
  }
  const bool entities = info.head == HeadKind::kEntities;
  if (options.labels.empty() && (compares || entities)) {
    return "[" + options.task.model + "] has no classes; name some with [--label].";
  }
  if (entities && !options.zero_shot.hypothesis.empty()) {
    return "[--hypothesis] is a sentence, but [" + options.task.model +
           "] reads labels as they are.";
  }
  const EntityOptions usual;
  if (!entities && (options.entities.threshold != usual.threshold || options.entities.nested)) {
    return "[--threshold] and [--nested] are for entities of labels that you name, which [" +
           options.task.model + "] does not find; take a GLiNER.";
  }
  if (options.overlay.empty()) return "";
  if (compares) {
    return "[--overlay] draws maps, of which [" + options.task.model + "] hands out none.";
  }
  if (!pictures) {
    return "[--overlay] draws on a picture, but [" + options.task.model + "] reads no pictures.";
  }
  if (options.task.arguments.size() == 1 && options.task.input.empty()) return "";
  return "[--overlay] is one file, so it takes one picture as an argument, and got " +
         (options.task.input.empty() ? std::to_string(options.task.arguments.size()) + "."
                                     : "[--input].");
}

int run_classify(const CommonOptions& common, const ClassifyCommandOptions& options) {
  // What plain lines are depends on the model; a directory that cannot be read is reported by load.
  const Result<ModelInfo> info = inspect_model(options.task.model);
  const bool pictures =
      info && (info->source == SourceKind::kPictures || info->head == HeadKind::kSimilarity);
  if (const std::string wrong = info ? usage_error(options, *info, pictures) : ""; !wrong.empty()) {
    return report_usage(wrong);
  }
  const TaskFormat format{.command = "classify",
                          .plain_key = pictures ? "picture" : "text",
                          .readable = readable_labels};
  return run_task_command(
      common, options.task, format,
      [&](const Device& device, const ModelSource& source, const TaskOptions& task) {
        return pictures ? open_pictures(device, source, task, options)
                        : open_texts(device, source, task, options);
      });
}

}  // namespace

void add_classify_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "classify", "Label texts or pictures, or find entities in texts; JSON lines, in order.");
  const auto options = std::make_shared<ClassifyCommandOptions>();
  add_task_options(*command, options->task, line, "INPUT");
  add_truncate_option(*command, options->task);
  command->add_option("--top", options->top, "labels per input; 0: all")
      ->check(CLI::Range(0, 1 << 20));
  CLI::Option* label =
      command
          ->add_option("--label", options->labels,
                       "a class to choose from instead of the model's, which then must be one of "
                       "natural language inference, a CLIP or a SigLIP, or a kind of entity to "
                       "find with a GLiNER; may be repeated")
          ->allow_extra_args(false);
  command
      ->add_option("--hypothesis", options->zero_shot.hypothesis,
                   "what may be true of an input, {} is the label; default: This example is {}. or "
                   "This is a photo of {}.")
      ->needs(label);
  command
      ->add_flag(
          "--multi-label", options->zero_shot.multi_label,
          "each --label has a separate probability; with a GLiNER an entity may have several")
      ->needs(label);
  command
      ->add_option("--threshold", options->entities.threshold,
                   "with a GLiNER, an entity's probability is above it; default: 0.5")
      ->check(CLI::Range(0.0, 1.0))
      ->needs(label);
  command
      ->add_flag("--nested", options->entities.nested,
                 "with a GLiNER, entities may lie inside others")
      ->needs(label);
  add_file_option(*command, "--overlay", options->overlay,
                  "write the picture, one argument, with what the model looked at in red");
  add_examples(*command,
               "  vkformer classify DIR \"what a day\"\n"
               "  vkformer classify DIR \"one last goal\" --label sport --label politics\n"
               "  vkformer classify GLINER \"Ada lived in Rome\" --label person --label city\n"
               "  vkformer classify DIR cat.jpg dog.png --top 3\n"
               "  vkformer classify DIR cat.jpg --label \"a cat\" --label \"a dog\"\n"
               "  vkformer classify models/digits models/digits/7.png --overlay seen.png\n"
               "  vkformer classify DIR --input pairs.jsonl --output labels.jsonl --keep-going\n");
  command->callback([&line, options] {
    options->entities.multi_label = options->zero_shot.multi_label;
    line.run = [&line, options] { return run_classify(line.common, *options); };
  });
}

}  // namespace vkformer::cli
