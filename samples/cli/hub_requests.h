// What a hub is asked, with its redirects and its errors as sentences.
#pragma once

#include <string>
#include <vector>

#include "http_client.h"
#include "hub_cache.h"

namespace vkformer::cli {

// A file of a model as the hub describes it.
struct HubFile {
  std::string name;
  std::string hash;  // its ETag: SHA-256 of large files, git's SHA-1 of others
  int64_t bytes = 0;
};

struct HubListing {
  std::string commit;
  std::vector<std::string> files;
};

class HubRequests {
 public:
  // The hub is $HF_ENDPOINT, or huggingface.co. The token is $HF_TOKEN, or what `hf auth login` has
  // stored; it is sent to that host only. `say` gets what takes long for a reason worth telling.
  static Result<HubRequests> create(HubName name, std::function<void(const std::string&)> say);

  // The files of the model at a branch, tag or commit. Every name is_inner_file_name().
  Result<HubListing> list(const std::string& revision);
  Result<HubFile> describe(const std::string& commit, const std::string& file);
  // The body of a file from the byte `from` on. After a failed connection the caller may go on
  // where it ended: the outcome then has a failure, or a status to wait for.
  Result<HttpOutcome> read(const std::string& commit, const std::string& file, int64_t from,
                           const HttpClient::TakeBody& take);
  // Waits before the attempt after that many without progress: as long as the hub asks, or longer
  // each time. An error if there were too many, or the hub asks for too long.
  Status wait(const HttpOutcome& outcome, int attempts);

  // An error about the model: "[OWNER/NAME] text".
  Error error(ErrorCode code, const std::string& text) const;
  Error network_error(const HttpOutcome& outcome) const;
  // Why the hub did not give `what`.
  Error status_error(const HttpReply& reply, const std::string& what) const;

 private:
  HubRequests(HubName name, HttpClient client)
      : name_(std::move(name)), client_(std::move(client)) {}
  std::string file_url(const std::string& commit, const std::string& file) const;
  // Sends a request and follows redirects: of a description only inside the hub, where the reply
  // that leads out has the file's hash and size.
  Result<HttpOutcome> send(HttpRequest request, const HttpClient::TakeBody& take);
  // The same, tried again while that may help. What is not a success is an error about `what`.
  Result<HttpReply> ask(const HttpRequest& request, const std::string& what, std::string& body);

  HubName name_;
  HttpClient client_;
  std::string endpoint_;
  std::string origin_;
  std::string token_;
  bool reached_ = false;  // a connection was made before
  std::function<void(const std::string&)> say_;
};

// Whether a later attempt may succeed where the hub answered with that status.
bool is_passing_status(int status);

}  // namespace vkformer::cli
