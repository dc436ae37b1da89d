// `vkformer chat`: a conversation with a model that has a chat template, line by line.
#include <unistd.h>

#include <cstdio>

#include "choice_options.h"
#include "files.h"
#include "task_command.h"
#include "vkformer/chat.h"

namespace vkformer::cli {

namespace {

constexpr const char* kCommands =
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
  ModelOptions load;
  TextOptions text;
  ChoiceCommandOptions choice;
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
  // Carries a line out: a command, or a message to answer. False ends the conversation.
  Result<bool> take(const std::string& line);

 private:
  Status say(const std::string& message);
  Status answer();
  Status save(const std::string& path) const;
  Status retry(const std::string* edited);
  Status undo();
  void show() const;
  Result<bool> command(const std::string& name, const std::string& rest);

  TextGenerator generator_;
  ChatTemplate template_;
  TextOptions text_;
  bool quiet_;
  std::vector<ChatMessage> messages_;
};

Error nothing_said(const char* command) {
  return {ErrorCode::kInvalidArgument,
          "[" + std::string(command) + "] nothing was said yet; write a message first."};
}

void Chat::set_system(const std::string& text) {
  const bool has = !messages_.empty() && messages_[0].role == "system";
  if (has) messages_.erase(messages_.begin());
  if (!text.empty()) messages_.insert(messages_.begin(), {"system", text});
}

Status Chat::say(const std::string& message) {
  messages_.push_back({"user", message});
  const Status answered = answer();
  // What could not be answered was not said.
  if (!answered) messages_.pop_back();
  return answered;
}

Status Chat::answer() {
  Result<std::string> prompt = template_.render(messages_);
  if (!prompt) return prompt.error();
  const Interrupt interrupt;
  TextClock clock;
  text_.on_text = [&](const TextPiece& piece) {
    clock.piece();
    std::fwrite(piece.text.data(), 1, piece.text.size(), stdout);
    std::fflush(stdout);
    return interrupt.raised() ? TokenVerdict::kEnd : TokenVerdict::kGoOn;
  };
  auto generated = generator_.generate({&*prompt, 1}, text_);
  std::fputs("\n", stdout);
  std::fflush(stdout);
  if (!generated) return generated.error();
  GeneratedText& found = (*generated)[0][0];
  if (!quiet_) {
    print_message(clock.report(found.ids.size()) + ", " +
                  std::to_string(generator_.counters().reused_tokens) +
                  " tokens of the prompt kept");
  }
  messages_.push_back({"assistant", std::move(found.text)});
  return {};
}

Status Chat::undo() {
  if (messages_.empty() || messages_.back().role == "system") return nothing_said("/undo");
  while (!messages_.empty() && messages_.back().role == "assistant") messages_.pop_back();
  if (!messages_.empty() && messages_.back().role == "user") messages_.pop_back();
  return {};
}

Status Chat::retry(const std::string* edited) {
  const std::vector<ChatMessage> before = messages_;
  std::string message;
  for (const ChatMessage& said : messages_) {
    if (said.role == "user") message = said.content;
  }
  const Status undone = undo();
  if (!undone) return nothing_said(edited != nullptr ? "/edit" : "/retry");
  // The same numbers would give the same answer.
  text_.seed = text_.seed.value_or(0) + 1;
  Status said = say(edited != nullptr ? *edited : message);
  if (!said) messages_ = before;
  return said;
}

Status Chat::save(const std::string& path) const {
  Json list = Json::array();
  for (const ChatMessage& message : messages_) {
    Json entry;
    entry["role"] = message.role;
    entry["content"] = message.content;
    list.push_back(std::move(entry));
  }
  Json file;
  file["messages"] = std::move(list);
  return write_text_file(path, json_text(file) + "\n");
}

Status Chat::load(const std::string& path) {
  const Result<Json> file = read_json_file(path);
  if (!file) return file.error();
  std::vector<ChatMessage> read;
  const Json list = file->value("messages", Json());
  bool good = list.is_array();
  for (size_t i = 0; good && i < list.size(); ++i) {
    const Json& entry = list[i];
    good = entry.is_object() && entry.contains("role") && entry["role"].is_string() &&
           entry.contains("content") && entry["content"].is_string();
    if (good) read.push_back({entry["role"], entry["content"]});
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
  for (const ChatMessage& message : messages_) print_line(message.role + ": " + message.content);
}

Result<bool> Chat::command(const std::string& name, const std::string& rest) {
  const auto done = [](const Status& status) -> Result<bool> {
    if (!status) return status.error();
    return true;
  };
  if (name == "/quit" || name == "/exit") return false;
  if ((name == "/save" || name == "/load" || name == "/edit") && rest.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "[" + name + "] lacks " + (name == "/edit" ? "the new message" : "a file") + "."};
  }
  if (name == "/retry") return done(retry(nullptr));
  if (name == "/edit") return done(retry(&rest));
  if (name == "/undo") return done(undo());
  if (name == "/save") return done(save(rest));
  if (name == "/load") return done(load(rest));
  if (name == "/system") {
    set_system(rest);
  } else if (name == "/clear") {
    const bool has = !messages_.empty() && messages_[0].role == "system";
    messages_.resize(has ? 1 : 0);
  } else if (name == "/history") {
    show();
  } else if (name == "/help") {
    std::fputs(kCommands, stdout);
  } else {
    return Error{ErrorCode::kInvalidArgument, "[" + name + "] is no command; /help lists them."};
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
  const Status said = say(line);
  if (!said) return said.error();
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
  InputFile input = InputFile::standard_input();
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
  command->add_option("--max-new-tokens", options->text.max_new_tokens, "tokens of an answer")
      ->check(CLI::Range(1, 1 << 20));
  add_choice_options(*command, options->text, options->choice);
  add_model_options(*command, options->load);
  command->add_flag("--quiet,-q", line.common.quiet, "no rate, no progress");
  add_device_options(*command, line.common);
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
