// DecodeStage: a decoding step at work on tokens that arrive one at a time. Needs: Result.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vkformer/result.h"

namespace vkformer {

// A piece of a token's text on its way through the steps. A step that joins tokens passes the
// joined one on in many pieces, so that the text need not wait for its end.
struct StreamPiece {
  std::string text;  // whole characters
  bool ends_token = true;
};

// One step of one stream. What it appends to `out` is, token by token, what the step's decode()
// makes of all tokens together.
class DecodeStage {
 public:
  virtual ~DecodeStage() = default;
  virtual Status push(StreamPiece piece, std::vector<StreamPiece>& out) = 0;
  // There are no more tokens. Called once, and nothing after it.
  virtual Status finish(std::vector<StreamPiece>& out) = 0;
};

// A stage that sees whole tokens.
class WholeTokenStage : public DecodeStage {
 public:
  Status push(StreamPiece piece, std::vector<StreamPiece>& out) final {
    token_ += piece.text;
    if (!piece.ends_token) return {};
    std::string token;
    token.swap(token_);
    return push_token(std::move(token), out);
  }

 protected:
  virtual Status push_token(std::string token, std::vector<StreamPiece>& out) = 0;

 private:
  std::string token_;  // the pieces so far of one that has not ended
};

}  // namespace vkformer
