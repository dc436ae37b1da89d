#include "content_hash.h"

#include <openssl/evp.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "files.h"

namespace vkformer::cli {

namespace {

constexpr size_t kHashedPiece = size_t{1} << 20;

struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

std::string hexadecimal(const unsigned char* bytes, size_t count) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace

Result<std::string> hash_of_file(const std::string& path, ContentHash kind,
                                 const std::function<void(int64_t bytes)>& step) {
  const Error failed{ErrorCode::kInternal,
                     "[" + path + "] could not be hashed; check the installation of OpenSSL."};
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> context(EVP_MD_CTX_new());
  const EVP_MD* algorithm = kind == ContentHash::kSha256 ? EVP_sha256() : EVP_sha1();
  if (!context || EVP_DigestInit_ex(context.get(), algorithm, nullptr) != 1) return failed;
  if (kind == ContentHash::kGitBlob) {
    std::error_code code;
    const std::string head = "blob " + std::to_string(std::filesystem::file_size(path, code));
    // The zero byte at the string's end belongs to it.
    if (EVP_DigestUpdate(context.get(), head.c_str(), head.size() + 1) != 1) return failed;
  }
  Result<InputFile> file = InputFile::open(path);
  if (!file) return file.error();
  std::vector<char> piece(kHashedPiece);
  for (int64_t total = 0;;) {
    const Result<size_t> count = file->read(piece);
    if (!count) return count.error();
    if (EVP_DigestUpdate(context.get(), piece.data(), *count) != 1) return failed;
    total += static_cast<int64_t>(*count);
    step(total);
    if (*count < piece.size()) break;
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_DigestFinal_ex(context.get(), digest, &length) != 1) return failed;
  return hexadecimal(digest, length);
}

}  // namespace vkformer::cli
