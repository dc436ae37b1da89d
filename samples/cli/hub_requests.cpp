#include "hub_requests.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "files.h"

namespace vkformer::cli {

namespace {

constexpr const char* kHub = "https://huggingface.co";
constexpr size_t kMostListingBytes = size_t{64} << 20;
constexpr size_t kMostListedFiles = 100'000;
constexpr int kMostRedirects = 10;
// Attempts without progress, and how long a hub may ask to wait before one.
constexpr int kMostAttempts = 5;
constexpr int64_t kMostWaitSeconds = 120;

std::string variable_or(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

// As huggingface_hub reads it: without spaces and line ends around it.
std::string hub_token() {
  std::string token = variable_or("HF_TOKEN", variable_or("HUGGING_FACE_HUB_TOKEN", ""));
  if (token.empty()) {
    const std::string beside = (hub_cache_folder().parent_path() / "token").string();
    const std::string home = variable_or("HF_HOME", "");
    std::ifstream file(variable_or("HF_TOKEN_PATH", home.empty() ? beside : home + "/token"));
    std::getline(file, token);
  }
  const auto is_blank = [](char letter) { return static_cast<unsigned char>(letter) <= ' '; };
  token.erase(std::remove_if(token.begin(), token.end(), is_blank), token.end());
  return token;
}

// A header that holds a number of bytes or seconds; -1: it does not.
int64_t number_of(const std::string& text) {
  const bool digits = !text.empty() && text.size() <= 18 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::strtoll(text.c_str(), nullptr, 10) : -1;
}

// An ETag without quotes and the mark of a weak one.
std::string plain_etag(std::string text) {
  if (text.starts_with("W/")) text.erase(0, 2);
  text.erase(std::remove(text.begin(), text.end(), '"'), text.end());
  return text;
}

bool is_redirect(const HttpReply& reply) {
  return reply.status >= 301 && reply.status <= 308 && !reply.redirect.empty();
}

}  // namespace

bool is_passing_status(int status) {
  return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

Result<HubRequests> HubRequests::create(HubName name, std::function<void(const std::string&)> say) {
  Result<HttpClient> client = HttpClient::create();
  if (!client) return client.error();
  HubRequests requests(std::move(name), std::move(*client));
  requests.endpoint_ = variable_or("HF_ENDPOINT", kHub);
  while (requests.endpoint_.ends_with('/')) requests.endpoint_.pop_back();
  requests.origin_ = url_origin(requests.endpoint_);
  if (requests.origin_.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "[HF_ENDPOINT] is '" + requests.endpoint_ +
                     "', but must be a URL of http or https, such as " + kHub + "."};
  }
  requests.token_ = hub_token();
  requests.say_ = std::move(say);
  return requests;
}

Error HubRequests::error(ErrorCode code, const std::string& text) const {
  return {code, "[" + name_.repository() + "] " + text};
}

Error HubRequests::network_error(const HttpOutcome& outcome) const {
  if (!outcome.reached) {
    return error(ErrorCode::kNotFound,
                 "cannot be downloaded: " + endpoint_ + " could not be reached (" +
                     outcome.failure +
                     "). Check the network and its proxy (https_proxy), or set HF_ENDPOINT to a "
                     "mirror; a model that was downloaded elsewhere can be copied as a folder.");
  }
  return error(ErrorCode::kNotFound, "was not downloaded whole: the connection to " + endpoint_ +
                                         " failed " + std::to_string(kMostAttempts) +
                                         " times without progress (" + outcome.failure +
                                         "). Run the command again; it goes on where it ended.");
}

Error HubRequests::status_error(const HttpReply& reply, const std::string& what) const {
  const std::string said = "the hub answered " + std::to_string(reply.status) + " for " + what;
  const std::string code = reply.header("x-error-code");
  switch (reply.status) {
    case 401:
      return error(ErrorCode::kNotFound,
                   said + (token_.empty()
                               ? ": it does not exist, or may be read only with a token. Check the "
                                 "name; for a private or gated model set HF_TOKEN to an access "
                                 "token of an account that may read it."
                               : ": it does not exist, or the token does not open it. Check the "
                                 "name and HF_TOKEN."));
    case 403:
      return error(ErrorCode::kNotFound, said + ": it is gated. Accept its terms at " + endpoint_ +
                                             "/" + name_.repository() +
                                             " and set HF_TOKEN to a token of that account.");
    case 404:
      return error(ErrorCode::kNotFound, said + ": there is no such " +
                                             (code == "RevisionNotFound" ? "revision"
                                              : code == "EntryNotFound"  ? "file"
                                                                         : "model or revision") +
                                             ". Check the name and --revision at " + endpoint_ +
                                             ".");
    default:
      return error(ErrorCode::kNotFound, said + "; try again later.");
  }
}

Status HubRequests::wait(const HttpOutcome& outcome, int attempts) {
  const HttpReply& reply = outcome.reply;
  const bool answered = outcome.failure.empty();
  const int64_t asked = answered ? number_of(reply.header("retry-after")) : -1;
  if (attempts >= kMostAttempts || asked > kMostWaitSeconds) {
    if (!answered) return network_error(outcome);
    const bool crowded = reply.status == 429;
    std::string text = "the hub answered " + std::to_string(reply.status) +
                       (crowded ? " (too many requests)" : "");
    if (asked >= 0) text += " and asks to wait " + std::to_string(asked) + " seconds";
    if (asked <= kMostWaitSeconds) text += ", " + std::to_string(attempts) + " times in a row";
    text +=
        "; run the command again later" +
        std::string(crowded && token_.empty() ? ", or set HF_TOKEN, which raises the limit." : ".");
    return error(ErrorCode::kNotFound, text);
  }
  const auto backoff = std::chrono::milliseconds(500LL << std::max(0, attempts - 1));
  const auto duration = asked >= 0 ? std::chrono::milliseconds(asked * 1000) : backoff;
  if (asked >= 5 && say_) {
    say_("the hub answered " + std::to_string(reply.status) + "; waiting " + std::to_string(asked) +
         " seconds, as it asks.");
  }
  std::this_thread::sleep_for(duration);
  return {};
}

Result<HttpOutcome> HubRequests::send(HttpRequest request, const HttpClient::TakeBody& take) {
  std::string commit;
  for (int redirects = 0;; ++redirects) {
    const std::string origin = url_origin(request.url);
    // The token is for the hub, not for where its files are stored.
    request.token = origin == origin_ ? token_ : "";
    HttpOutcome outcome = client_.send(request, take);
    reached_ = reached_ || outcome.reached;
    HttpReply& reply = outcome.reply;
    // What a redirect says of the commit, the last reply need not repeat.
    if (!reply.header("x-repo-commit").empty()) commit = reply.header("x-repo-commit");
    if (!commit.empty()) reply.headers["x-repo-commit"] = commit;
    if (!outcome.failure.empty() || !is_redirect(reply)) return outcome;
    const std::string target = url_origin(reply.redirect);
    if (request.head && target != origin_ && !reply.header("x-linked-etag").empty()) return outcome;
    if (redirects == kMostRedirects) {
      return error(ErrorCode::kInvalidFile, "the hub redirected " + std::to_string(kMostRedirects) +
                                                " times without an answer; check HF_ENDPOINT.");
    }
    if (target.empty() || (origin.starts_with("https:") && !target.starts_with("https:"))) {
      return error(ErrorCode::kInvalidFile,
                   "the hub redirected to an address that is not https, which is refused; check "
                   "HF_ENDPOINT.");
    }
    request.url = reply.redirect;
  }
}

Result<HttpReply> HubRequests::ask(const HttpRequest& request, const std::string& what,
                                   std::string& body) {
  const auto take = [&body](const HttpReply&, std::string_view bytes) {
    body += bytes;
    return body.size() <= kMostListingBytes;
  };
  for (int attempts = 1;; ++attempts) {
    body.clear();
    Result<HttpOutcome> outcome = send(request, take);
    if (!outcome) return outcome.error();
    if (outcome->refused) {
      return error(ErrorCode::kInvalidFile, "the hub's answer for " + what + " is larger than " +
                                                std::to_string(kMostListingBytes) + " bytes.");
    }
    const HttpReply& reply = outcome->reply;
    const bool failed = !outcome->failure.empty();
    // Without any connection so far there is no network, which waiting does not change.
    if (failed && !reached_) return network_error(*outcome);
    if (!failed && !is_passing_status(reply.status)) {
      if (reply.status == 200 || (request.head && is_redirect(reply))) return reply;
      return status_error(reply, what);
    }
    const Status waited = wait(*outcome, attempts);
    if (!waited) return waited.error();
  }
}

Result<HubListing> HubRequests::list(const std::string& revision) {
  HttpRequest request;
  request.url =
      endpoint_ + "/api/models/" + name_.repository() + "/revision/" + url_segment(revision);
  std::string text;
  const std::string what =
      "the model" + (revision == "main" ? std::string() : " at the revision " + revision);
  const Result<HttpReply> reply = ask(request, what, text);
  if (!reply) return reply.error();
  const Json json = parse_json(text);
  const auto wrong = [&](const std::string& why) {
    return error(ErrorCode::kInvalidFile,
                 "the list of files that " + endpoint_ + " gives " + why + "; check HF_ENDPOINT.");
  };
  if (!json.is_object() || !json.contains("siblings") || !json["siblings"].is_array()) {
    return wrong("is not JSON with \"siblings\"");
  }
  HubListing listing;
  if (json.contains("sha") && json["sha"].is_string()) listing.commit = json["sha"];
  if (!is_plain_name(listing.commit)) return wrong("has no commit (\"sha\")");
  if (json["siblings"].size() > kMostListedFiles) {
    return wrong("has " + std::to_string(json["siblings"].size()) + " entries, more than " +
                 std::to_string(kMostListedFiles));
  }
  for (const Json& sibling : json["siblings"]) {
    if (!sibling.is_object() || !sibling.contains("rfilename") ||
        !sibling["rfilename"].is_string()) {
      return wrong("has an entry without \"rfilename\"");
    }
    const std::string file = sibling["rfilename"];
    if (!is_inner_file_name(file)) {
      return error(ErrorCode::kInvalidFile, "lists the file " + json_text(file).substr(0, 200) +
                                                ", which is not inside the model's folder; the "
                                                "model is refused.");
    }
    listing.files.push_back(file);
  }
  return listing;
}

std::string HubRequests::file_url(const std::string& commit, const std::string& file) const {
  std::string url = endpoint_ + "/" + name_.repository() + "/resolve/" + url_segment(commit);
  for (size_t begin = 0; begin <= file.size();) {
    const size_t end = std::min(file.find('/', begin), file.size());
    url += "/" + url_segment(std::string_view(file).substr(begin, end - begin));
    begin = end + 1;
  }
  return url;
}

Result<HubFile> HubRequests::describe(const std::string& commit, const std::string& file) {
  HttpRequest request;
  request.url = file_url(commit, file);
  request.head = true;
  std::string body;
  const Result<HttpReply> reply = ask(request, file, body);
  if (!reply) return reply.error();
  const auto either = [&](const char* linked, const char* plain) {
    const std::string value = reply->header(linked);
    return value.empty() ? reply->header(plain) : value;
  };
  HubFile found;
  found.name = file;
  found.hash = plain_etag(either("x-linked-etag", "etag"));
  found.bytes = number_of(either("x-linked-size", "content-length"));
  const std::string given = reply->header("x-repo-commit");
  if (!given.empty() && given != commit) {
    return error(ErrorCode::kInvalidFile, "the hub gives " + file + " of the commit " +
                                              json_text(given).substr(0, 100) + " in place of " +
                                              commit + "; run the command again.");
  }
  if (!is_plain_name(found.hash) || found.bytes < 0) {
    return error(ErrorCode::kInvalidFile, "the hub gives " + file +
                                              " without a hash (ETag) or a size; check "
                                              "HF_ENDPOINT.");
  }
  return found;
}

Result<HttpOutcome> HubRequests::read(const std::string& commit, const std::string& file,
                                      int64_t from, const HttpClient::TakeBody& take) {
  HttpRequest request;
  request.url = file_url(commit, file);
  request.from = from;
  return send(request, take);
}

}  // namespace vkformer::cli
