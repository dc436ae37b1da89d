#include "checkpoint/sparse_file.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/json_config.h"

namespace vkformer {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 42;  // that a file may stand for

Error damaged(const std::string& label, std::initializer_list<MessagePart> parts) {
  return invalid_file("File [" + label + "] is a damaged part of a packed model: " +
                      message(parts) + " Pack the model again, or copy the file again.");
}

}  // namespace

SparseFile make_sparse(std::span<const std::byte> file, const std::vector<ByteRange>& stored) {
  SparseFile sparse;
  nlohmann::json json;
  json["size"] = file.size();
  json["stored"] = nlohmann::json::array();
  for (const ByteRange& range : stored) {
    json["stored"].push_back({range.begin, range.end});
    const auto part = file.subspan(range.begin, range.end - range.begin);
    sparse.stored.insert(sparse.stored.end(), part.begin(), part.end());
  }
  sparse.ranges = json.dump();
  return sparse;
}

Result<MappedFile> read_sparse(std::string_view ranges, std::span<const std::byte> stored,
                               const std::string& label) {
  VKF_ASSIGN(const JsonConfig json, JsonConfig::parse(ranges, label + kRangesEnding));
  VKF_ASSIGN(const int64_t size, json.get_int("size"));
  VKF_ASSIGN(const auto rows, json.get_int_lists_or("stored", {}));
  if (size < 0 || size > kMostBytes) {
    return damaged(label, {"it stands for ", size, " bytes, but 0 to ", kMostBytes, " may be."});
  }
  std::vector<ByteRange> found;
  size_t last = 0, sum = 0;
  for (const std::vector<int64_t>& row : rows) {
    const bool apart = row.size() == 2 && row[0] >= static_cast<int64_t>(last) &&
                       row[0] <= row[1] && row[1] <= size;
    if (!apart) {
      return damaged(
          label, {"its range ", found.size(), " does not lie after those before it and inside its ",
                  size, " bytes."});
    }
    last = static_cast<size_t>(row[1]);
    found.push_back({static_cast<size_t>(row[0]), last});
    sum += last - found.back().begin;
  }
  if (sum != stored.size()) {
    return damaged(label, {"it has ", stored.size(), " bytes for ranges of ", sum, " in sum."});
  }
  return MappedFile::sparse(static_cast<size_t>(size), std::move(found), stored, label);
}

}  // namespace vkformer
