// HTTP requests, one at a time, through libcurl. Redirects are told, not followed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "vkformer/result.h"

namespace vkformer::cli {

struct HttpRequest {
  std::string url;
  bool head = false;  // no body
  std::string token;  // sent as a bearer token; empty: none
  int64_t from = 0;   // bytes of the body that are not asked for
};

struct HttpReply {
  int status = 0;                              // 0: none came
  std::map<std::string, std::string> headers;  // names in lower case; the last of a name
  std::string redirect;                        // where a redirect leads, as a whole URL

  // The value of a header; empty: there is none.
  std::string header(const std::string& name) const;
};

// A reply, and why it did not arrive whole.
struct HttpOutcome {
  HttpReply reply;
  std::string failure;   // what the network did; empty: the reply is whole
  bool reached = true;   // false: no connection was made
  bool refused = false;  // the taker of the body gave up
};

class HttpClient {
 public:
  // Gets pieces of the body of a reply with status 200 or 206; false: no more.
  using TakeBody = std::function<bool(const HttpReply& reply, std::string_view bytes)>;

  static Result<HttpClient> create();
  HttpClient(HttpClient&& other) noexcept;
  HttpClient& operator=(HttpClient&& other) noexcept;
  ~HttpClient();

  // http and https only.
  HttpOutcome send(const HttpRequest& request, const TakeBody& take);

 private:
  struct Handle;
  explicit HttpClient(std::unique_ptr<Handle> handle);
  std::unique_ptr<Handle> handle_;
};

// "https://host:port" in lower case; empty: the text is no URL of http or https.
std::string url_origin(const std::string& url);
// `text` with what a path segment of a URL may not hold as %XX.
std::string url_segment(std::string_view text);

}  // namespace vkformer::cli
