#include "pack_text.h"

#include <algorithm>
#include <fstream>

namespace vkformer::cli {

bool is_pack(const std::string& path) {
  constexpr std::string_view kBegin = "VKFPACK";
  std::ifstream stream(path, std::ios::binary);
  std::string begin(kBegin.size(), ' ');
  return stream.read(begin.data(), static_cast<std::streamsize>(begin.size())) && begin == kBegin;
}

Json pack_json(const PackInfo& info) {
  Json json;
  json["sha256"] = info.sha256;
  json["size"] = info.size;
  json["files"] = Json::array();
  for (const PackInfo::File& file : info.files) {
    json["files"].push_back({{"name", file.name},
                             {"offset", file.offset},
                             {"size", file.size},
                             {"sha256", file.sha256}});
  }
  json["adapters"] = Json::array();
  for (const AdapterChoice& adapter : info.adapters) {
    json["adapters"].push_back({{"folder", adapter.directory}, {"scale", adapter.scale}});
  }
  return json;
}

void print_pack(const PackInfo& info) {
  print_line("packed        " + std::to_string(info.files.size()) + " files, " +
             std::to_string(info.size) + " bytes, verified");
  print_line("SHA-256       " + info.sha256);
  size_t width = 0;
  for (const PackInfo::File& file : info.files) width = std::max(width, file.name.size());
  for (const PackInfo::File& file : info.files) {
    print_line("  " + padded(file.name, width + 2) + padded(std::to_string(file.size), 14) +
               file.sha256);
  }
  for (const AdapterChoice& adapter : info.adapters) {
    print_line("adapter       " + adapter.directory + ", scale " +
               fixed(static_cast<double>(adapter.scale), 4));
  }
}

}  // namespace vkformer::cli
