#include "checkpoint/inner_link.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/mapped_file.h"
#include "checkpoint/message_text.h"

namespace vkformer {

namespace fs = std::filesystem;

Status check_inner_link(const std::string& directory, const std::string& path) {
  if (path.find('\0') != std::string::npos) return {};  // refused when it is opened
  std::error_code code;
  const fs::path root = fs::canonical(path_from_utf8(directory.empty() ? "." : directory), code);
  if (code) return {};
  const fs::path real = fs::canonical(path_from_utf8(path), code);
  if (code) return {};
  const auto inside = [&](const fs::path& folder) {
    return std::mismatch(folder.begin(), folder.end(), real.begin(), real.end()).first ==
           folder.end();
  };
  const fs::path snapshots = root.parent_path();
  if (inside(root)) return {};
  if (snapshots.filename() == "snapshots" && inside(snapshots.parent_path() / "blobs")) return {};
  const std::u8string leads = real.u8string();
  return invalid_file(message(
      {"File [", path, "] is a link to ", bracketed(std::string(leads.begin(), leads.end())),
       ", which is not inside the model's directory; copy the file into it."}));
}

}  // namespace vkformer
