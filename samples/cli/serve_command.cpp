// `vkformer serve`: requests as JSON lines on stdin, their texts as JSON lines on stdout as they
// come, many at once.
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>

#include "batch_texts.h"
#include "files.h"
#include "ranks.h"

namespace vkformer::cli {

namespace {

constexpr size_t kMostLines = 256;
// Bytes of lines, beyond which the next one waits: pictures make long ones.
constexpr size_t kMostLineQueueBytes = size_t{64} << 20;

// Lines of stdin that were read and not taken yet. Reading stops while they are many, so that
// whoever writes waits, too.
struct LineQueue {
  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::string> lines;
  size_t bytes = 0;  // of the lines
  bool ended = false;
  Status read;  // why the end came before that of stdin
};

// What stands for a line that is too long, whose text is of no use.
constexpr std::string_view kTooLong = "\ntoo long";

// A line that is too long is one client's mistake: the others go on.
Result<bool> next_line(InputFile& input, std::string& line) {
  Result<bool> read = input.read_line(line);
  bool cut = false;
  while (!read && line.size() == kMostLineBytes) {
    cut = true;
    read = input.read_line(line);
  }
  if (!cut || !read) return read;
  line = kTooLong;
  return true;
}

void read_lines(LineQueue& queue) {
  Result<InputFile> input = InputFile::standard_input();
  std::string line;
  Result<bool> read = input ? next_line(*input, line) : input.error();
  for (; read && *read; read = next_line(*input, line)) {
    std::unique_lock held(queue.lock);
    queue.changed.wait(
        held, [&] { return queue.lines.size() < kMostLines && queue.bytes < kMostLineQueueBytes; });
    queue.bytes += line.size();
    queue.lines.push_back(std::move(line));
    queue.changed.notify_all();
  }
  const std::lock_guard held(queue.lock);
  queue.ended = true;
  if (!read) queue.read = read.error();
  queue.changed.notify_all();
}

// The HTTP status that says the same, for a program that hands requests on.
int http_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kInvalidFile:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kQueueFull:
      return 429;
    case ErrorCode::kUnsupported:
      return 501;
    case ErrorCode::kOutOfMemory:
      return 503;
    default:
      return 500;
  }
}

class Server {
 public:
  explicit Server(BatchTexts texts) : texts_(std::move(texts)), queue_(new LineQueue) {
    // A thread that waits for a line cannot be woken: it owns what it uses, and the program's end
    // is its own.
    std::thread([queue = queue_] { read_lines(*queue); }).detach();
  }

  Status run() {
    while (take_lines()) {
      submit_held();
      const Result<std::vector<Json>> events = texts_.step();
      if (!events) return events.error();
      for (const Json& event : *events) print_json(event);
      std::fflush(stdout);
    }
    print_json(texts_.work());
    const std::lock_guard held(queue_->lock);
    return queue_->read;
  }

 private:
  // Takes lines while there is room; waits for some where nothing else is to be done. False at the
  // end.
  bool take_lines() {
    std::unique_lock held(queue_->lock);
    if (texts_.idle() && held_.empty()) {
      queue_->changed.wait(held, [&] { return !queue_->lines.empty() || queue_->ended; });
    }
    while (!queue_->lines.empty() && held_.size() < kMostLines &&
           held_bytes_ < kMostLineQueueBytes) {
      read(queue_->lines.front());
      queue_->bytes -= queue_->lines.front().size();
      queue_->lines.pop_front();
    }
    queue_->changed.notify_all();
    return !queue_->ended || !queue_->lines.empty() || !held_.empty() || !texts_.idle();
  }

  void read(const std::string& line) {
    if (line == kTooLong) {
      refuse(nullptr, {ErrorCode::kInvalidArgument,
                       "[line] has more than " + std::to_string(kMostLineBytes) +
                           " bytes, the limit of a request; give smaller pictures."});
      return;
    }
    if (line.find_first_not_of(" \t\r") == std::string::npos) return;
    Json fields = parse_json(line);
    if (!fields.is_object()) {
      refuse(nullptr,
             {ErrorCode::kInvalidArgument, "[line] is not a JSON object: " + line.substr(0, 80)});
    } else if (fields.contains("cancel")) {
      cancel(fields["cancel"]);
    } else {
      held_.push_back({std::move(fields), line.size()});
      held_bytes_ += line.size();
    }
  }

  // One that still waits for room in the queue is taken out here.
  void cancel(const Json& id) {
    for (auto it = held_.begin(); it != held_.end(); ++it) {
      if (!it->fields.contains("id") || it->fields["id"] != id) continue;
      if (it == held_.begin()) front_waits_ = false;
      held_bytes_ -= it->bytes;
      held_.erase(it);
      print_json({{"id", id}, {"event", "end"}, {"reason", "cancelled"}});
      return;
    }
    const Status cancelled = texts_.cancel(id);
    if (!cancelled) refuse(id, cancelled.error());
  }

  // In the order they came, until the batch's queue is full; the rest waits here, and what follows
  // it in the pipe. A request beyond its client's own share is refused instead, so that the
  // requests of other clients do not wait with it.
  void submit_held() {
    while (!held_.empty()) {
      const Json& fields = held_.front().fields;
      // Its pictures are not decoded again in every step.
      if (front_waits_ && !texts_.has_room(fields)) return;
      const Status submitted = texts_.submit(fields);
      if (!submitted && submitted.error().code == ErrorCode::kQueueFull &&
          !texts_.has_room(fields)) {
        front_waits_ = true;
        return;
      }
      front_waits_ = false;
      if (!submitted) refuse(fields.value("id", Json()), submitted.error());
      held_bytes_ -= held_.front().bytes;
      held_.pop_front();
    }
  }

  static void refuse(const Json& id, const Error& error) {
    print_json({{"id", id},
                {"event", "refused"},
                {"status", http_status(error.code)},
                {"error", error.message}});
  }

  BatchTexts texts_;
  std::shared_ptr<LineQueue> queue_;
  // A request that the batch's queue has no room for yet, and the bytes of its line.
  struct Held {
    Json fields;
    size_t bytes = 0;
  };
  std::deque<Held> held_;
  size_t held_bytes_ = 0;
  bool front_waits_ = false;  // whether its fields are valid, but the queue had no room
};

int run_serve(const CommonOptions& common, const BatchFlags& flags) {
  if (rank_link()) {
    return report({ErrorCode::kUnsupported,
                   "[serve] takes requests as they come to one process, but mpirun started several "
                   "for this model; start it once, with --devices for several devices."});
  }
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  Result<BatchTexts> texts = BatchTexts::open(common, *device, flags);
  if (!texts) return report(texts.error());
  const Status served = Server(std::move(*texts)).run();
  return served ? kExitOk : report(served.error());
}

}  // namespace

void add_serve_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "serve", "Generate for many requests at once: JSON lines on stdin and stdout.");
  const auto flags = std::make_shared<BatchFlags>();
  add_model_argument(*command, line, flags->model);
  add_batch_options(*command, *flags);
  add_draft_options(*command, line, *flags);
  add_model_options(*command, flags->load);
  add_request_adapter_option(*command, flags->load.request_adapters);
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  add_group_options(*command, line.common);
  add_examples(
      *command,
      "  echo '{\"id\": 1, \"text\": \"ROMEO:\", \"max_new_tokens\": 50}' | vkformer serve "
      "models/shakespeare\n"
      "  vkformer serve models/shakespeare --slots 4 --max-queue 8 --prompt-lookup 3 < "
      "requests.jsonl\n"
      "  echo '{\"id\": \"w\", \"text\": \"attention\"}' | vkformer serve models/g2p-en "
      "--source-tokens "
      "32\n"
      "A line {\"cancel\": ID} ends a request.\n");
  command->callback(
      [&line, flags] { line.run = [&line, flags] { return run_serve(line.common, *flags); }; });
}

}  // namespace vkformer::cli
