// `vkformer chat`: a conversation with a model that has a chat template, line by line.
#include <unistd.h>

#include <cstdio>

#include "choice_options.h"
#include "files.h"
#include "picture_prompts.h"
#include "task_command.h"
#include "vkformer/chat.h"

namespace vkformer::cli {

namespace {

constexpr const char* kCommands =
    "  /picture FILE shows the model a picture with the next message; may be repeated\n"
    "  /retry        another answer to the last message\n"
    "  /edit TEXT    the last message again, as TEXT\n"
    "  /undo         takes the last message and its answer back\n"
    "  /clear        begins anew, with the system message\n"
    "  /system TEXT  another system message; without TEXT none\n"
    "  /history      what was said\n"
    "  /save FILE    writes the conversation as JSON\n"
    "  /load FILE    goes on with one that was written\n"
    "  /help         these lines\n"
    "  /quit         ends, as the end of the input does\n";

struct ChatCommandOptions {
  std::string model;
  std::string system;
  std::string template_file;
  std::string load_file;
  std::vector<std::string> pictures;  // of the first message
  ModelOptions load;
  TextOptions text;
  ChoiceCommandOptions choice;
};

// A message, and the pictures that go with it.
struct Said {
  std::string role;
  std::string content;
  std::vector<SharedPicture> pictures;
};

class Chat {
 public:
  Chat(TextGenerator generator, ChatTemplate chat_template, const TextOptions& text, bool quiet)
      : generator_(std::move(generator)),
        template_(std::move(chat_template)),
        text_(text),
        quiet_(quiet) {
    text_.special_tokens = SpecialTokens::kExclude;
  }

  void set_system(const std::string& text);
  Status load(const std::string& path);
  // Goes with the next message.
  Status add_picture(const std::string& path);
  // Carries a line out: a command, or a message to answer. False ends the conversation.
  Result<bool> take(const std::string& line);

 private:
  Status say(Said message);
  Status answer();
  Result<std::vector<std::vector<GeneratedText>>> generate();
  Result<Said> read_message(const Json& entry) const;
  Status save(const std::string& path) const;
  Status retry(const std::string* edited);
  Status undo();
  void show() const;
  Result<bool> command(const std::string& name, const std::string& rest);

  TextGenerator generator_;
  ChatTemplate template_;
  TextOptions text_;
  bool quiet_;
  std::vector<Said> messages_;
  std::vector<SharedPicture> pictures_;  // of the next message
};

Error nothing_said(const char* command) {
  return {ErrorCode::kInvalidArgument,
          "[" + std::string(command) + "] nothing was said yet; write a message first."};
}

void Chat::set_system(const std::string& text) {
  const bool has = !messages_.empty() && messages_[0].role == "system";
  if (has) messages_.erase(messages_.begin());
  if (!text.empty()) messages_.insert(messages_.begin(), {"system", text, {}});
}

Status Chat::add_picture(const std::string& path) {
  const Result<std::string> reads = generator_.picture_placeholder();
  if (!reads) return reads.error();
  Result<SharedPicture> picture = load_named_picture(path);
  if (!picture) return picture.error();
  pictures_.push_back(std::move(*picture));
  return {};
}

Status Chat::say(Said message) {
  messages_.push_back(std::move(message));
  const Status answered = answer();
  // What could not be answered was not said.
  if (!answered) messages_.pop_back();
  return answered;
}

// The answer to all that was said. Templates of models that read images take contents in parts.
Result<std::vector<std::vector<GeneratedText>>> Chat::generate() {
  if (!generator_.info().reads_images) {
    std::vector<ChatMessage> messages;
    for (const Said& said : messages_) messages.push_back({said.role, said.content});
    const Result<std::string> prompt = template_.render(messages);
    if (!prompt) return prompt.error();
    return generator_.generate({&*prompt, 1}, text_);
  }
  Json list = Json::array();
  PromptWithPictures prompt;
  for (const Said& said : messages_) {
    Json entry;
    entry["role"] = said.role;
    entry["content"] = content_parts(said.content, said.pictures.size());
    list.push_back(std::move(entry));
    for (const SharedPicture& picture : said.pictures) prompt.pictures.push_back(&picture->picture);
  }
  Result<std::string> rendered = template_.render_json(json_text(list));
  if (!rendered) return rendered.error();
  prompt.text = std::move(*rendered);
  // As the processors of such models do, which leave the start token to their tokenizers.
  TextOptions options = text_;
  options.special_tokens = SpecialTokens::kInclude;
  return generator_.generate_with_pictures({&prompt, 1}, options);
}

Status Chat::answer() {
  const Interrupt interrupt;
  TextClock clock;
  text_.on_text = [&](const TextPiece& piece) {
    clock.piece();
    std::fwrite(piece.text.data(), 1, piece.text.size(), stdout);
    std::fflush(stdout);
    return interrupt.raised() ? TokenVerdict::kEnd : TokenVerdict::kGoOn;
  };
  auto generated = generate();
  std::fputs("\n", stdout);
  std::fflush(stdout);
  if (!generated) return generated.error();
  GeneratedText& found = (*generated)[0][0];
  if (!quiet_) {
    print_message(clock.report(found.ids.size()) + ", " +
                  std::to_string(generator_.counters().reused_tokens) +
                  " prompt tokens from the cache");
  }
  messages_.push_back({"assistant", std::move(found.text), {}});
  return {};
}

Status Chat::undo() {
  if (messages_.empty() || messages_.back().role == "system") return nothing_said("/undo");
  while (!messages_.empty() && messages_.back().role == "assistant") messages_.pop_back();
  if (!messages_.empty() && messages_.back().role == "user") messages_.pop_back();
  return {};
}

Status Chat::retry(const std::string* edited) {
  const std::vector<Said> before = messages_;
  Said message;
  for (const Said& said : messages_) {
    if (said.role == "user") message = said;
  }
  const Status undone = undo();
  if (!undone) return nothing_said(edited != nullptr ? "/edit" : "/retry");
  // The same numbers would give the same answer.
  text_.seed = text_.seed.value_or(0) + 1;
  if (edited != nullptr) message.content = *edited;
  Status said = say(std::move(message));
  if (!said) messages_ = before;
  return said;
}

Status Chat::save(const std::string& path) const {
  Json list = Json::array();
  for (const Said& message : messages_) {
    Json entry;
    entry["role"] = message.role;
    entry["content"] = message.content;
    for (const SharedPicture& picture : message.pictures) {
      entry["pictures"].push_back(picture->path);
    }
    list.push_back(std::move(entry));
  }
  Json file;
  file["messages"] = std::move(list);
  return write_text_file(path, json_text(file) + "\n");
}

// A message of a file; ErrorCode::kInvalidFile where the entry is none.
Result<Said> Chat::read_message(const Json& entry) const {
  const Error none{ErrorCode::kInvalidFile, ""};
  const bool good = entry.is_object() && entry.contains("role") && entry["role"].is_string() &&
                    entry.contains("content") && entry["content"].is_string();
  if (!good) return none;
  Said said{entry["role"], entry["content"], {}};
  for (const Json& path : entry.value("pictures", Json::array())) {
    if (!path.is_string()) return none;
    Result<SharedPicture> picture = load_named_picture(path.get<std::string>());
    if (!picture) return picture.error();
    said.pictures.push_back(std::move(*picture));
  }
  return said;
}

Status Chat::load(const std::string& path) {
  const Result<Json> file = read_json_file(path);
  if (!file) return file.error();
  std::vector<Said> read;
  const Json list = file->value("messages", Json());
  bool good = list.is_array();
  for (size_t i = 0; good && i < list.size(); ++i) {
    Result<Said> said = read_message(list[i]);
    good = said.ok();
    if (!good && !said.error().message.empty()) return said.error();
    if (good) read.push_back(std::move(*said));
  }
  if (!good) {
    return Error{ErrorCode::kInvalidFile,
                 "[" + path +
                     "] is no conversation; it must hold \"messages\", a list of objects with "
                     "\"role\" and \"content\"."};
  }
  messages_ = std::move(read);
  return {};
}

void Chat::show() const {
  for (const Said& message : messages_) {
    for (const SharedPicture& picture : message.pictures) {
      print_line(message.role + ": [" + picture->path + "]");
    }
    print_line(message.role + ": " + message.content);
  }
}

Result<bool> Chat::command(const std::string& name, const std::string& rest) {
  const auto done = [](const Status& status) -> Result<bool> {
    if (!status) return status.error();
    return true;
  };
  if (name == "/quit" || name == "/exit") return false;
  if ((name == "/save" || name == "/load" || name == "/picture" || name == "/edit") &&
      rest.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "[" + name + "] lacks " + (name == "/edit" ? "the new message" : "a file") + "."};
  }
  if (name == "/retry") return done(retry(nullptr));
  if (name == "/edit") return done(retry(&rest));
  if (name == "/undo") return done(undo());
  if (name == "/picture") return done(add_picture(rest));
  if (name == "/save") return done(save(rest));
  if (name == "/load") return done(load(rest));
  if (name == "/system") {
    set_system(rest);
  } else if (name == "/clear") {
    const bool has = !messages_.empty() && messages_[0].role == "system";
    messages_.resize(has ? 1 : 0);
    pictures_.clear();
  } else if (name == "/history") {
    show();
  } else if (name == "/help") {
    std::fputs(kCommands, stdout);
  } else {
    return Error{ErrorCode::kInvalidArgument, "[" + name + "] is not a command; /help lists them."};
  }
  return true;
}

Result<bool> Chat::take(const std::string& line) {
  if (line.empty()) return true;
  if (line[0] == '/') {
    const size_t space = line.find(' ');
    const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
    return command(line.substr(0, space), rest);
  }
  const Status said = say({"user", line, pictures_});
  if (!said) return said.error();
  pictures_.clear();
  return true;
}

Result<ChatTemplate> chat_template(const ChatCommandOptions& options) {
  if (options.template_file.empty())
    return ChatTemplate::load(ModelSource::directory(options.model));
  const Result<std::string> text = read_text_file(options.template_file);
  if (!text) return text.error();
  return ChatTemplate::parse(*text);
}

// Reads lines until there are no more. A message that fails is said so, and the next one read.
int converse(Chat& chat) {
  const bool asks = isatty(STDIN_FILENO) != 0;
  int code = kExitOk;
  Result<InputFile> opened = InputFile::standard_input();
  if (!opened) return report(opened.error());
  InputFile& input = *opened;
  std::string line;
  while (true) {
    if (asks) {
      std::fputs("> ", stdout);
      std::fflush(stdout);
    }
    const Result<bool> read = input.read_line(line);
    if (!read) return report(read.error());
    if (!*read) break;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const Result<bool> taken = chat.take(line);
    if (taken && !*taken) break;
    // In a pipe nobody sees the message in time.
    if (!taken) code = asks ? kExitOk : report(taken.error());
    if (!taken && asks) report(taken.error());
    if (!taken && (taken.error().code == ErrorCode::kDeviceLost)) return kExitFailed;
  }
  return code;
}

int run_chat(const CommonOptions& common, ChatCommandOptions& options) {
  const Status choice = finish_choice(options.choice, options.text);
  if (!choice) return report(choice.error());
  Result<ChatTemplate> read = chat_template(options);
  if (!read) return report(read.error().with_context("no chat template (--template gives one)"));
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  const auto load = [&](const ModelOptions& watched) {
    TaskOptions task;
    task.model = watched;
    task.session.prefix_reuse = true;
    return TextGenerator::load(*device, ModelSource::directory(options.model), task);
  };
  Result<TextGenerator> generator = with_progress(common, options.model, options.load, load);
  if (!generator) return report(generator.error());
  options.text.beams = 1;
  Chat chat(std::move(*generator), std::move(*read), options.text, common.quiet);
  chat.set_system(options.system);
  if (!options.load_file.empty()) {
    const Status loaded = chat.load(options.load_file);
    if (!loaded) return report(loaded.error());
  }
  for (const std::string& path : options.pictures) {
    const Status added = chat.add_picture(path);
    if (!added) return report(added.error());
  }
  return converse(chat);
}

}  // namespace

void add_chat_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "chat", "Talk with a model that has a chat template; each line of stdin is a message.");
  const auto options = std::make_shared<ChatCommandOptions>();
  add_model_argument(*command, line, options->model);
  command->add_option("--system", options->system, "system message");
  add_file_option(*command, "--template", options->template_file,
                  "file with a chat template, instead of the model's own");
  add_file_option(*command, "--load", options->load_file, "a conversation that /save wrote");
  add_file_option(*command, "--picture", options->pictures,
                  "a picture that goes with the first message; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--max-new-tokens", options->text.max_new_tokens, "tokens of an answer")
      ->check(CLI::Range(1, 1 << 20));
  add_choice_options(*command, options->text, options->choice);
  add_model_options(*command, options->load);
  command->add_flag("--quiet,-q", line.common.quiet, "no rate, no progress");
  add_device_options(*command, line.common);
  add_group_options(*command, line.common);
  add_examples(*command,
               "  vkformer chat DIR --system 'Answer in one sentence.' --temperature 0.7\n"
               "  printf 'Hello\\n/retry\\n/save talk.json\\n' | vkformer chat DIR --seed 1\n");
  command->footer(command->get_footer() + "\nLines that begin with a slash are commands:\n" +
                  kCommands);
  command->callback([&line, options] {
    line.run = [&line, options] { return run_chat(line.common, *options); };
  });
}

}  // namespace vkformer::cli
