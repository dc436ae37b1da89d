// The smallest program around vkformer: spelling in, phonemes out.
//
// Build it against the installed library with the CMakeLists.txt beside this file, or with
//   g++ -std=c++20 main.cpp -o embed_minimal $(pkg-config --cflags --libs vkformer)
// and run it with
//   embed_minimal models/g2p-en attention is all you need
#include <vkformer/session.h>
#include <vkformer/tokenizer.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

int fail(const vkformer::Error& error) {
  std::fprintf(stderr, "embed_minimal: %s\n", error.message.c_str());
  return 1;
}

int pronounce(const std::string& directory, const std::vector<std::string>& words) {
  const auto tokenizer = vkformer::Tokenizer::load(directory);
  if (!tokenizer) return fail(tokenizer.error());
  const auto device = vkformer::Device::create();
  if (!device) return fail(device.error());
  const auto model = vkformer::Model::load(*device, directory);
  if (!model) return fail(model.error());
  auto session = vkformer::Session::create(*model);
  if (!session) return fail(session.error());

  std::vector<std::vector<vkformer::TokenId>> rows;
  for (const std::string& word : words) {
    const auto encoding = tokenizer->encode(word);
    if (!encoding) return fail(encoding.error());
    rows.push_back(encoding->ids);
  }
  const auto generation = session->generate(rows, session->generation_defaults());
  if (!generation) return fail(generation.error());
  for (size_t i = 0; i < words.size(); ++i) {
    const auto text = tokenizer->decode((*generation)[i].front().ids);
    if (!text) return fail(text.error());
    std::printf("%s\t%s\n", words[i].c_str(), text->c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: embed_minimal MODEL WORD...\n");
    return 2;
  }
  return pronounce(argv[1], {argv + 2, argv + argc});
}
