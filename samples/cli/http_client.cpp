#include "http_client.h"

#include <curl/curl.h>

#include <cctype>
#include <cstdlib>
#include <utility>

namespace vkformer::cli {

namespace {

constexpr long kConnectSeconds = 20;
// A transfer that brings nothing for so long is cut.
constexpr long kSilentSeconds = 30;
constexpr size_t kMostHeaders = 256;

struct CurlList {
  curl_slist* head = nullptr;
  CurlList() = default;
  CurlList(const CurlList&) = delete;
  CurlList& operator=(const CurlList&) = delete;
  ~CurlList() { curl_slist_free_all(head); }
  void add(const std::string& line) { head = curl_slist_append(head, line.c_str()); }
};

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char letter) {
    return letter == ' ' || letter == '\t' || letter == '\r' || letter == '\n';
  };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// What the callbacks of one transfer share.
struct Transfer {
  HttpReply reply;
  const HttpClient::TakeBody* take = nullptr;
  bool refused = false;
};

size_t take_header(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) {
    transfer.reply = {};  // what came before was 100 Continue
    const size_t space = line.find(' ');
    if (space != std::string_view::npos) {
      transfer.reply.status = std::atoi(std::string(line.substr(space + 1, 3)).c_str());
    }
    return line.size();
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || transfer.reply.headers.size() == kMostHeaders) {
    return line.size();
  }
  std::string name(line.substr(0, colon));
  for (char& letter : name) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  transfer.reply.headers[name] = trimmed(line.substr(colon + 1));
  return line.size();
}

size_t take_body(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view bytes(data, size * count);
  const int status = transfer.reply.status;
  // The page that comes with an error is not read.
  if (status != 200 && status != 206) return bytes.size();
  transfer.refused = !(*transfer.take)(transfer.reply, bytes);
  return transfer.refused ? CURL_WRITEFUNC_ERROR : bytes.size();
}

// Whether a transfer that ended so had a connection.
bool is_connected(CURLcode code) {
  switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_PROXY:
      return false;
    default:
      return true;
  }
}

std::string part_of(CURLU* url, CURLUPart part, unsigned flags) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return "";
  const std::string copy = text;
  curl_free(text);
  return copy;
}

}  // namespace

struct HttpClient::Handle {
  CURL* curl = nullptr;
  char message[CURL_ERROR_SIZE] = {};
  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { curl_easy_cleanup(curl); }
};

std::string HttpReply::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

HttpClient::HttpClient(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
HttpClient::HttpClient(HttpClient&& other) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&& other) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HttpClient> HttpClient::create() {
  auto handle = std::make_unique<Handle>();
  if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) handle->curl = curl_easy_init();
  if (handle->curl == nullptr) {
    return Error{ErrorCode::kInternal, "[libcurl] could not be started; check its installation."};
  }
  return HttpClient(std::move(handle));
}

HttpOutcome HttpClient::send(const HttpRequest& request, const TakeBody& take) {
  CURL* curl = handle_->curl;
  curl_easy_reset(curl);  // open connections stay
  Transfer transfer{.reply = {}, .take = &take};
  CurlList headers;
  // Sizes and ranges count the bytes of the file itself.
  headers.add("Accept-Encoding: identity");
  if (!request.token.empty()) headers.add("Authorization: Bearer " + request.token);
  const std::string range = std::to_string(request.from) + "-";
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOBODY, request.head ? 1L : 0L);
  if (request.from > 0) curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.head);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "vkformer/" VKFORMER_VERSION);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, handle_->message);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* file = std::getenv(name);
    if (file == nullptr || *file == '\0') continue;
    curl_easy_setopt(curl, CURLOPT_CAINFO, file);
    break;
  }
  handle_->message[0] = '\0';
  const CURLcode code = curl_easy_perform(curl);
  HttpOutcome outcome;
  outcome.refused = transfer.refused;
  const char* redirect = nullptr;
  curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &redirect);
  if (redirect != nullptr) transfer.reply.redirect = redirect;
  outcome.reply = std::move(transfer.reply);
  outcome.reached = is_connected(code);
  if (code != CURLE_OK) {
    const char* said = handle_->message;
    outcome.failure = *said != '\0' ? said : curl_easy_strerror(code);
  }
  return outcome;
}

std::string url_origin(const std::string& url) {
  CURLU* parsed = curl_url();
  if (parsed == nullptr) return "";
  std::string origin;
  if (curl_url_set(parsed, CURLUPART_URL, url.c_str(), 0) == CURLUE_OK) {
    const std::string scheme = part_of(parsed, CURLUPART_SCHEME, 0);
    const std::string host = part_of(parsed, CURLUPART_HOST, 0);
    if (!host.empty() && (scheme == "http" || scheme == "https")) {
      origin = scheme + "://" + host + ":" + part_of(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT);
    }
  }
  curl_url_cleanup(parsed);
  for (char& letter : origin) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return origin;
}

std::string url_segment(std::string_view text) {
  char* escaped = curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size()));
  if (escaped == nullptr) return "";
  const std::string copy = escaped;
  curl_free(escaped);
  return copy;
}

}  // namespace vkformer::cli
