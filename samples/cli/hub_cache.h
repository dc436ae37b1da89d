// Models of a hub on this machine: names, and the cache folder that vkformer shares with
// huggingface_hub:
//
//   $HF_HUB_CACHE/models--OWNER--NAME/blobs/HASH              content, by its hash
//                                     snapshots/COMMIT/FILE   relative links to blobs
//                                     refs/REVISION           the commit of a branch or tag
//                .locks/models--OWNER--NAME/HASH.lock         held while HASH is downloaded
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "vkformer/result.h"

namespace vkformer::cli {

// OWNER/NAME, or OWNER/NAME:FILE for one file of it.
struct HubName {
  std::string owner;
  std::string name;
  std::string file;  // empty: the model

  std::string repository() const { return owner + "/" + name; }
  std::string text() const { return file.empty() ? repository() : repository() + ":" + file; }
};

// Nothing where the text has another form, or letters that the hub does not allow.
std::optional<HubName> parse_hub_name(const std::string& text);

// Whether a file name that a hub gives stays inside the model's folder: relative, with '/', and
// without "..", a drive or a control character.
bool is_inner_file_name(const std::string& name);
// Whether a text that a hub gives (a commit, a hash) may be the name of one file.
bool is_plain_name(const std::string& name);

// $HF_HUB_CACHE, else $HF_HOME/hub, else huggingface/hub in $XDG_CACHE_HOME or ~/.cache.
std::filesystem::path hub_cache_folder();
// The folder of a model in the cache; it need not exist.
std::filesystem::path hub_model_folder(const HubName& name);
// Whether HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE) forbids the network: 1, ON, YES or TRUE.
bool hub_is_offline();

// The commit that refs/REVISION names, or the revision itself if it is a snapshot; empty if neither
// is in the cache.
std::string cached_commit(const HubName& name, const std::string& revision);
// What a MODEL argument of that name stands for: the snapshot of the branch main, or the only
// snapshot there is. If a GGUF file is all that it has, that file. kNotFound where it is not
// downloaded.
Result<std::string> cached_model(const HubName& name);
// The same of the snapshot of a commit; nothing where that is no model, or lacks the file.
std::optional<std::string> model_in_snapshot(const HubName& name, const std::string& commit);

}  // namespace vkformer::cli
