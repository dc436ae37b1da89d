// TokenTrie: the bytes of a vocabulary's tokens as one tree, in the order of a walk through it.
// Needs: nothing.
//
// Threading: immutable; any number of threads may share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vkformer/token.h"

namespace vkformer {

class TokenTrie {
 public:
  // A byte that follows the bytes of the parent. A node's subtree are the nodes from it up to
  // `skip`.
  struct Node {
    uint32_t skip = 0;
    uint32_t first_token = 0;  // into tokens(): its own end where the next node's begin
    uint32_t depth = 0;        // bytes, this one included
    uint8_t byte = 0;
  };

  // Of the tokens' bytes by id; tokens without bytes stay out.
  static TokenTrie build(std::vector<std::string> bytes);

  // The last node is an end mark of depth 0.
  std::span<const Node> nodes() const { return nodes_; }
  size_t node_count() const { return nodes_.size() - 1; }
  // The ids of the tokens that end at a node.
  std::span<const int32_t> tokens_at(size_t node) const {
    return std::span(tokens_).subspan(nodes_[node].first_token,
                                      nodes_[node + 1].first_token - nodes_[node].first_token);
  }
  bool has_children(size_t node) const { return nodes_[node].skip > node + 1; }
  // One above the highest id.
  size_t vocab_size() const { return bytes_.size(); }
  const std::string& bytes_of(TokenId token) const { return bytes_[static_cast<size_t>(token)]; }
  // The longest token in bytes.
  size_t max_depth() const { return max_depth_; }

 private:
  std::vector<Node> nodes_;
  std::vector<int32_t> tokens_;  // in the order of their bytes
  std::vector<std::string> bytes_;
  size_t max_depth_ = 0;
};

}  // namespace vkformer
