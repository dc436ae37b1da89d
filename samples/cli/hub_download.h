// Downloading a model of a hub into the cache that vkformer shares with huggingface_hub.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hub_cache.h"
#include "progress.h"

namespace vkformer::cli {

struct HubDownloadOptions {
  HubName name;
  std::string revision = "main";  // a branch, a tag or a commit
  Progress::Show progress = Progress::Show::kNever;
  std::function<void(const std::string&)> say;  // notes about single files
};

struct HubDownload {
  struct File {
    std::string name;
    int64_t bytes = 0;
    bool downloaded = false;  // false: it was in the cache
  };
  std::string commit;
  std::vector<File> files;
};

// Downloads the files that vkformer can use, or the one that the name gives, and checks each by
// size and hash. Goes on where an earlier download ended. A file of the cache is either whole or
// ends in ".incomplete"; the revision is noted once all files are there. A build without libcurl
// gives kUnsupported.
Result<HubDownload> download_from_hub(const HubDownloadOptions& options);

}  // namespace vkformer::cli
