#include "hub_download.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <regex>
#include <thread>

#if __has_include(<sys/file.h>)
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#endif

#include "content_hash.h"
#include "hub_files.h"
#include "hub_requests.h"
#include "system_file.h"

namespace vkformer::cli {

namespace {

namespace fs = std::filesystem;

Error hub_file_error(const fs::path& path, const char* what, const std::error_code& code) {
  return {ErrorCode::kInvalidFile,
          "[" + path.string() + "] could not be " + what + ": " + code.message() + "."};
}

Status make_folder(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  return code ? Status(hub_file_error(folder, "made", code)) : Status();
}

// Held while a blob is downloaded, by the lock that huggingface_hub takes. Where a file system has
// none, two downloads of one file do the work twice; what they leave is checked all the same.
class BlobLock {
 public:
  explicit BlobLock(const fs::path& path) {
#if __has_include(<sys/file.h>)
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0664);
#else
    (void)path;
#endif
  }
  BlobLock(const BlobLock&) = delete;
  BlobLock& operator=(const BlobLock&) = delete;
  ~BlobLock() {
#if __has_include(<sys/file.h>)
    if (descriptor_ >= 0) ::close(descriptor_);
#endif
  }
  // False: another program holds it.
  bool try_lock() const {
#if __has_include(<sys/file.h>)
    return descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
#else
    return true;
#endif
  }

 private:
  int descriptor_ = -1;
};

std::optional<int64_t> size_of(const fs::path& path) {
  std::error_code code;
  if (!fs::is_regular_file(path, code)) return std::nullopt;
  const uintmax_t bytes = fs::file_size(path, code);
  if (code) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

// The hash that a hub's ETag is; nothing where it is of another kind.
std::optional<ContentHash> hash_kind(const std::string& etag) {
  static const std::regex kSha256("[0-9a-f]{64}"), kSha1("[0-9a-f]{40}");
  if (std::regex_match(etag, kSha256)) return ContentHash::kSha256;
  if (std::regex_match(etag, kSha1)) return ContentHash::kGitBlob;
  return std::nullopt;
}

// One download into the cache.
class Downloader {
 public:
  Downloader(const HubDownloadOptions& options, HubRequests requests)
      : options_(options),
        requests_(std::move(requests)),
        folder_(hub_model_folder(options.name)),
        progress_("asking for " + options.name.text(), options.progress, Progress::Unit::kBytes) {}

  Result<HubDownload> run();

 private:
  fs::path blob(const HubFile& file) const { return folder_ / "blobs" / file.hash; }
  Status prepare_folders() const;
  Status check_space(const std::vector<HubFile>& files) const;
  // Whether it was downloaded, and not there already. Links it into the snapshot.
  Result<bool> fetch(const HubFile& file);
  Status download(const HubFile& file, const fs::path& part);
  // Appends to the part what the hub sends, once.
  Result<HttpOutcome> receive(const HubFile& file, const fs::path& part);
  Status check(const HubFile& file, const fs::path& part);
  Status link(const HubFile& file) const;
  Status note_revision() const;
  Error wrong_size(const HubFile& file, int64_t bytes, bool more) const;

  const HubDownloadOptions& options_;
  HubRequests requests_;
  fs::path folder_;
  std::string commit_;
  int64_t done_ = 0;   // bytes of files before
  int64_t total_ = 0;  // bytes of all files
  Progress progress_;
};

Status Downloader::prepare_folders() const {
  const fs::path cache = hub_cache_folder();
  for (const fs::path& folder : {folder_ / "blobs", folder_ / "refs", folder_ / "snapshots",
                                 cache / ".locks" / folder_.filename()}) {
    if (const Status made = make_folder(folder); !made) return made;
  }
  // Backup programs omit folders with this file (https://bford.info/cachedir/).
  const fs::path tag = cache / "CACHEDIR.TAG";
  if (!size_of(tag)) {
    std::ofstream(tag) << "Signature: 8a477f597d28d172789f06886806bc55\n"
                          "# This folder is a cache of models from the Hugging Face hub.\n";
  }
  return {};
}

Status Downloader::check_space(const std::vector<HubFile>& files) const {
  int64_t needed = 0;
  for (const HubFile& file : files) {
    if (size_of(blob(file)) == file.bytes) continue;
    needed += file.bytes - size_of(blob(file).string() + ".incomplete").value_or(0);
  }
  std::error_code code;
  const fs::space_info space = fs::space(folder_, code);
  if (code || needed < 0 || static_cast<uint64_t>(needed) <= space.available) return {};
  return requests_.error(ErrorCode::kInvalidFile,
                         "needs " + std::to_string(needed) + " bytes more, but " +
                             folder_.string() + " has " + std::to_string(space.available) +
                             " free; make room, or set HF_HUB_CACHE to a folder elsewhere.");
}

Error Downloader::wrong_size(const HubFile& file, int64_t bytes, bool more) const {
  return requests_.error(ErrorCode::kInvalidFile,
                         file.name + " came with " + (more ? "more than " : "") +
                             std::to_string(bytes) + " bytes, but the hub says that it has " +
                             std::to_string(file.bytes) +
                             "; nothing of it is kept. Run the "
                             "command again.");
}

Result<HttpOutcome> Downloader::receive(const HubFile& file, const fs::path& part) {
  int64_t at = size_of(part).value_or(0);
  const Result<SystemFile> target = SystemFile::open(part.string(), SystemFile::Content::kUpdate);
  if (!target) return target.error();
  const int64_t asked = at;
  Status written;
  bool started = false, misplaced = false, longer = false;
  const auto take = [&](const HttpReply& reply, std::string_view bytes) {
    if (!started && asked > 0) {
      // A server may ignore the range and send all.
      if (reply.status == 200) {
        at = 0;
        written = target->resize(0);
      } else {
        const std::string begin = "bytes " + std::to_string(asked) + "-";
        misplaced = !reply.header("content-range").starts_with(begin);
      }
    }
    started = true;
    longer = at + static_cast<int64_t>(bytes.size()) > file.bytes;
    if (!written || misplaced || longer) return false;
    written = target->write_at(at, bytes);
    at += static_cast<int64_t>(bytes.size());
    progress_.set(done_ + at, total_);
    return static_cast<bool>(written);
  };
  Result<HttpOutcome> outcome = requests_.read(commit_, file.name, asked, take);
  if (!outcome) return outcome.error();
  if (!written) return written.error();
  std::error_code ignored;
  if (longer) {
    fs::remove(part, ignored);
    return wrong_size(file, file.bytes, true);
  }
  // 416: the part has more than the file.
  if (misplaced || outcome->reply.status == 416) {
    fs::remove(part, ignored);
    outcome->failure = "the server sent another range than was asked for";
    return outcome;
  }
  const bool whole =
      outcome->failure.empty() && (outcome->reply.status == 200 || outcome->reply.status == 206);
  if (whole && at == file.bytes) {
    if (const Status stored = target->sync(); !stored) return stored.error();
  }
  if (!whole || at == file.bytes) return outcome;
  // A reply that does not say its length cannot be told from one that was cut.
  if (outcome->reply.header("content-length").empty()) {
    outcome->failure = "the connection was closed after " + std::to_string(at) + " bytes";
    return outcome;
  }
  fs::remove(part, ignored);
  return wrong_size(file, at, false);
}

Status Downloader::download(const HubFile& file, const fs::path& part) {
  std::error_code ignored;
  if (size_of(part).value_or(0) > file.bytes) fs::remove(part, ignored);
  int attempts = 0;
  while (true) {
    const int64_t before = size_of(part).value_or(0);
    if (size_of(part) == file.bytes) return {};
    progress_.set(done_ + before, total_);
    const Result<HttpOutcome> outcome = receive(file, part);
    if (!outcome) return outcome.error();
    if (size_of(part).value_or(0) == file.bytes) continue;
    const HttpReply& reply = outcome->reply;
    if (outcome->failure.empty() && !is_passing_status(reply.status)) {
      return requests_.status_error(reply, file.name);
    }
    attempts = size_of(part).value_or(0) > before ? 1 : attempts + 1;
    if (const Status waited = requests_.wait(*outcome, attempts); !waited) return waited;
  }
}

Status Downloader::check(const HubFile& file, const fs::path& part) {
  const std::optional<ContentHash> kind = hash_kind(file.hash);
  if (!kind) {
    options_.say("the hub gives no hash of " + file.name + ", so only its size was checked.");
    return {};
  }
  progress_.start("checking " + file.name, Progress::Unit::kBytes);
  const Result<std::string> hash =
      hash_of_file(part.string(), *kind, [&](int64_t bytes) { progress_.set(bytes, file.bytes); });
  if (!hash) return hash.error();
  if (*hash == file.hash) return {};
  const char* name = *kind == ContentHash::kSha256 ? "SHA-256 " : "git hash ";
  return requests_.error(ErrorCode::kInvalidFile,
                         file.name + " came with the " + name + *hash +
                             ", but the hub says that it has " + file.hash +
                             "; nothing of it is kept. Run the command again.");
}

Result<bool> Downloader::fetch(const HubFile& file) {
  const fs::path whole = blob(file), part = whole.string() + ".incomplete";
  const BlobLock lock(hub_cache_folder() / ".locks" / folder_.filename() / (file.hash + ".lock"));
  for (bool waited = false; !lock.try_lock(); waited = true) {
    if (!waited)
      progress_.start("waiting for another download of " + file.name, Progress::Unit::kBytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  if (size_of(whole) == file.bytes) {
    const Status linked = link(file);
    if (!linked) return linked.error();
    return false;
  }
  progress_.start(options_.name.repository() + "/" + file.name, Progress::Unit::kBytes);
  std::error_code code;
  for (bool resumed = size_of(part).has_value();; resumed = false) {
    if (const Status got = download(file, part); !got) {
      if (size_of(part) == 0) fs::remove(part, code);
      return got.error();
    }
    const Status good = check(file, part);
    if (good) break;
    fs::remove(part, code);
    // What was there before may be of another content.
    if (!resumed) return good.error();
  }
  fs::rename(part, whole, code);
  if (code) return hub_file_error(whole, "written", code);
  const Status linked = link(file);
  if (!linked) return linked.error();
  return true;
}

Status Downloader::link(const HubFile& file) const {
  const fs::path pointer = folder_ / "snapshots" / commit_ / file.name;
  if (size_of(pointer) == file.bytes) return {};
  if (const Status made = make_folder(pointer.parent_path()); !made) return made;
  std::string target = "../../";
  for (const char letter : file.name) target += letter == '/' ? "../" : "";
  std::error_code code;
  // A link beside it, then renamed: what is there without its blob is replaced.
  const fs::path beside = pointer.string() + ".part";
  fs::remove(beside, code);
  fs::create_symlink(target + "blobs/" + file.hash, beside, code);
  // As huggingface_hub does on systems without links.
  if (code) fs::copy_file(blob(file), beside, fs::copy_options::overwrite_existing, code);
  if (!code) fs::rename(beside, pointer, code);
  return code ? Status(hub_file_error(pointer, "written", code)) : Status();
}

Status Downloader::note_revision() const {
  if (options_.revision == commit_) return {};
  const fs::path ref = folder_ / "refs" / options_.revision;
  if (const Status made = make_folder(ref.parent_path()); !made) return made;
  // Another download may write the same at the same time.
  const std::string part = ref.string() + "." + std::to_string(std::random_device()()) + ".part";
  return replace_file(ref.string(), part, commit_);
}

Result<HubDownload> Downloader::run() {
  const Result<HubListing> listing = requests_.list(options_.revision);
  if (!listing) return listing.error();
  commit_ = listing->commit;
  const Result<std::vector<std::string>> names = choose_hub_files(options_.name, listing->files);
  if (!names) return names.error();
  std::vector<HubFile> files;
  for (const std::string& name : *names) {
    Result<HubFile> file = requests_.describe(commit_, name);
    if (!file) return file.error();
    total_ += file->bytes;
    files.push_back(std::move(*file));
  }
  if (const Status made = prepare_folders(); !made) return made.error();
  if (const Status room = check_space(files); !room) return room.error();
  HubDownload result;
  result.commit = commit_;
  for (const HubFile& file : files) {
    const Result<bool> fetched = fetch(file);
    if (!fetched) return fetched.error();
    done_ += file.bytes;
    result.files.push_back({file.name, file.bytes, *fetched});
  }
  const Status noted = note_revision();
  if (!noted) return noted.error();
  return result;
}

}  // namespace

Result<HubDownload> download_from_hub(const HubDownloadOptions& options) {
  Result<HubRequests> requests = HubRequests::create(options.name, options.say);
  if (!requests) return requests.error();
  return Downloader(options, std::move(*requests)).run();
}

}  // namespace vkformer::cli
