#include "model/gato_sequence.h"

#include <cmath>

#include "base/message.h"

namespace vkformer {
namespace {

using SlotKind = GatoSlot::Kind;

constexpr int64_t kMostRows = 4096;

constexpr const char* kTextIds = "text_ids";
constexpr const char* kPixels = "pixel_values";
constexpr const char* kContinuous = "continuous_observations";
constexpr const char* kDiscrete = "discrete_observations";
constexpr const char* kActions = "continuous_actions";

// A tensor of the inputs with that many dimensions, or null where it is absent.
Result<const Tensor*> find_input(const TensorMap& inputs, const std::string& name, size_t rank) {
  const auto found = inputs.find(name);
  if (found == inputs.end()) return static_cast<const Tensor*>(nullptr);
  if (found->second.shape.size() == rank) return &found->second;
  return invalid_argument(message({"[", name, "] has shape ", shape_text(found->second.shape),
                                   ", but must have ", rank, " dimensions"}));
}

// The same size wherever it is said.
Status agree(const std::string& name, const char* what, int64_t given, int64_t& known) {
  if (known < 0 || known == given) {
    known = given;
    return {};
  }
  return invalid_argument(
      message({"[", name, "] has ", given, " ", what, ", but another input has ", known}));
}

class GatoReader {
 public:
  GatoReader(const GatoTokens& tokens, const TensorMap& inputs)
      : tokens_(tokens), inputs_(inputs) {}

  Status read() {
    VKF_CHECK(read_sizes());
    VKF_CHECK(read_ids(kTextIds, text_));
    VKF_CHECK(read_ids(kDiscrete, discrete_));
    VKF_CHECK(read_bins(kContinuous, continuous_));
    return read_bins(kActions, actions_);
  }
  Status fill(FeedWords& words) const;
  const GatoSizes& sizes() const { return sizes_; }

 private:
  Status read_sizes();
  Status read_pixel_sizes();
  Status read_step_width(const std::string& name, int64_t& width);
  Status read_ids(const std::string& name, std::vector<int64_t>& ids) const;
  Status read_bins(const std::string& name, std::vector<int64_t>& ids) const;
  Status fill_pixels(FeedWords& words) const;
  int64_t id_of(const GatoSlot& slot, int64_t row) const;

  const GatoTokens& tokens_;
  const TensorMap& inputs_;
  GatoSizes sizes_;
  int64_t batch_ = -1;
  int64_t steps_ = -1;
  std::vector<int64_t> text_, continuous_, discrete_, actions_;  // ids
};

Status GatoReader::read_pixel_sizes() {
  VKF_ASSIGN(const Tensor* pixels, find_input(inputs_, kPixels, 5));
  if (pixels == nullptr) return {};
  const Shape& s = pixels->shape;
  VKF_CHECK(agree(kPixels, "rows", s[0], batch_));
  VKF_CHECK(agree(kPixels, "time steps", s[1], steps_));
  const int64_t patch = tokens_.patch;
  if (s[2] != tokens_.channels || s[3] < patch || s[4] < patch || s[3] % patch != 0 ||
      s[4] % patch != 0) {
    return invalid_argument(
        message({"[pixel_values] has shape ", shape_text(s), ", but this model takes (B, steps, ",
                 tokens_.channels, ", height, width) with whole patches of ", patch,
                 " pixels a side; resize the pictures to that"}));
  }
  sizes_.height = s[3];
  sizes_.width = s[4];
  sizes_.rows = s[3] / patch;
  sizes_.columns = s[4] / patch;
  return {};
}

// Observations of one kind: (B, steps, width).
Status GatoReader::read_step_width(const std::string& name, int64_t& width) {
  VKF_ASSIGN(const Tensor* values, find_input(inputs_, name, 3));
  if (values == nullptr) return {};
  VKF_CHECK(agree(name, "rows", values->shape[0], batch_));
  VKF_CHECK(agree(name, "time steps", values->shape[1], steps_));
  width = values->shape[2];
  return {};
}

Status GatoReader::read_sizes() {
  VKF_ASSIGN(const Tensor* text, find_input(inputs_, kTextIds, 2));
  if (text != nullptr) {
    VKF_CHECK(agree(kTextIds, "rows", text->shape[0], batch_));
    sizes_.text = text->shape[1];
  }
  VKF_CHECK(read_pixel_sizes());
  VKF_CHECK(read_step_width(kContinuous, sizes_.continuous));
  VKF_CHECK(read_step_width(kDiscrete, sizes_.discrete));
  sizes_.steps = std::max<int64_t>(0, steps_);
  VKF_ASSIGN(const Tensor* actions, find_input(inputs_, kActions, 3));
  if (actions != nullptr) {
    VKF_CHECK(agree(kActions, "rows", actions->shape[0], batch_));
    sizes_.acted_steps = actions->shape[1];
    sizes_.actions = actions->shape[2];
    if (sizes_.acted_steps > sizes_.steps) {
      return invalid_argument(message({"[continuous_actions] has ", sizes_.acted_steps,
                                       " time steps, but the observations have ", sizes_.steps}));
    }
  }
  sizes_.batch = batch_;
  if (batch_ >= 1 && sizes_.text + sizes_.steps > 0) return {};
  return invalid_argument(
      "[text_ids] and the observations are empty or missing; a sequence needs at least one row and "
      "one token");
}

Status GatoReader::read_ids(const std::string& name, std::vector<int64_t>& ids) const {
  const auto found = inputs_.find(name);
  if (found == inputs_.end()) return {};
  VKF_ASSIGN(ids, found->second.to_ints());
  for (int64_t id : ids) {
    if (id >= 0 && id < tokens_.text) continue;
    return invalid_argument(
        message({"[", name, "] holds ", id, ", but this model knows 0 to ", tokens_.text - 1}));
  }
  return {};
}

// Observations are encoded by the mu-law before they are binned, actions are not.
Status GatoReader::read_bins(const std::string& name, std::vector<int64_t>& ids) const {
  const auto found = inputs_.find(name);
  if (found == inputs_.end()) return {};
  const bool encoded = name == kContinuous;
  VKF_ASSIGN(const std::vector<float> values, found->second.to_floats());
  for (const float value : values) {
    if (std::isnan(value)) {
      return invalid_argument(
          message({"[", name, "] holds a NaN, which has no bin; pass numbers"}));
    }
    const double x = encoded ? mu_law_encode(value, tokens_.law) : static_cast<double>(value);
    ids.push_back(tokens_.text + mu_law_bin(x, tokens_.law));
  }
  return {};
}

// The id at a slot; -1 for a patch.
int64_t GatoReader::id_of(const GatoSlot& slot, int64_t row) const {
  const GatoSizes& s = sizes_;
  const auto at = [&](const std::vector<int64_t>& ids, int64_t steps, int64_t width) {
    return ids[static_cast<size_t>((row * steps + slot.step) * width + slot.index)];
  };
  switch (slot.kind) {
    case SlotKind::kText:
      return at(text_, 1, s.text);
    case SlotKind::kContinuous:
      return at(continuous_, s.steps, s.continuous);
    case SlotKind::kDiscrete:
      return at(discrete_, s.steps, s.discrete);
    case SlotKind::kAction:
      return at(actions_, s.acted_steps, s.actions);
    case SlotKind::kSeparator:
      return tokens_.separator();
    case SlotKind::kPatch:
      break;
  }
  return -1;
}

// Pixels p in [0, 1] as (2 p - 1) / sqrt(patch size).
Status GatoReader::fill_pixels(FeedWords& words) const {
  VKF_ASSIGN(std::vector<float> values, inputs_.at(kPixels).to_floats());
  const double scale = 1.0 / std::sqrt(static_cast<double>(tokens_.patch));
  for (float& value : values) {
    value = static_cast<float>((2.0 * static_cast<double>(value) - 1.0) * scale);
  }
  words[kPixels] = float_words(values);
  return {};
}

Status GatoReader::fill(FeedWords& words) const {
  std::vector<uint32_t>& ids = words["input_ids"];
  std::vector<uint32_t>& shown = words["token_ids"];
  const std::vector<GatoSlot> slots = gato_slots(sizes_);
  for (int64_t row = 0; row < sizes_.batch; ++row) {
    for (const GatoSlot& slot : slots) {
      const int64_t id = id_of(slot, row);
      shown.push_back(static_cast<uint32_t>(id));
      if (id >= 0) ids.push_back(static_cast<uint32_t>(id));
    }
  }
  return sizes_.patches() > 0 && sizes_.steps > 0 ? fill_pixels(words) : Status{};
}

}  // namespace

std::vector<int64_t> GatoSizes::words() const {
  return {text, steps, height, width, rows, columns, continuous, discrete, acted_steps, actions};
}

GatoSizes GatoSizes::from_words(const std::vector<int64_t>& w, int64_t batch) {
  return {batch, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9]};
}

std::vector<GatoSlot> gato_slots(const GatoSizes& s) {
  std::vector<GatoSlot> slots;
  for (int64_t i = 0; i < s.text; ++i) slots.push_back({SlotKind::kText, 0, i, -1});
  for (int64_t t = 0; t < s.steps; ++t) {
    int64_t seen = 0;
    for (int64_t i = 0; i < s.patches(); ++i) slots.push_back({SlotKind::kPatch, t, i, seen++});
    for (int64_t i = 0; i < s.continuous; ++i)
      slots.push_back({SlotKind::kContinuous, t, i, seen++});
    for (int64_t i = 0; i < s.discrete; ++i) slots.push_back({SlotKind::kDiscrete, t, i, seen++});
    slots.push_back({SlotKind::kSeparator, t, 0, -1});
    if (t >= s.acted_steps) continue;
    for (int64_t i = 0; i < s.actions; ++i) slots.push_back({SlotKind::kAction, t, i, -1});
  }
  return slots;
}

std::vector<std::string> gato_input_names() {
  return {kTextIds, kPixels, kContinuous, kDiscrete, kActions};
}

Result<GatoSizes> read_gato_inputs(const GatoTokens& tokens, int64_t most, const TensorMap& inputs,
                                   FeedWords& words) {
  GatoReader reader(tokens, inputs);
  VKF_CHECK(reader.read());
  const GatoSizes& s = reader.sizes();
  // Empty tensors can claim any size.
  for (const int64_t size : {s.text, s.steps, s.seen(), s.actions}) {
    if (size <= most && s.batch <= kMostRows) continue;
    return invalid_argument(
        message({"[text_ids], observations and actions have ", s.batch, " rows and up to ", size,
                 " tokens or time steps, but this model has positions for ", most,
                 " tokens, and at most ", kMostRows, " rows run together"}));
  }
  if (s.seen() > tokens.most_seen) {
    return invalid_argument(
        message({"[pixel_values] and observations make ", s.seen(),
                 " tokens a time step, but this model has embeddings for ", tokens.most_seen,
                 "; use smaller pictures or fewer observations"}));
  }
  // The last action that is chosen needs no position.
  const int64_t chosen = s.acts() ? s.context() + s.actions - 1 : 0;
  const int64_t needed = std::max(s.tokens(), chosen);
  if (needed > most) {
    return invalid_argument(message({"[text_ids], observations and actions make a sequence of ",
                                     needed, " tokens, but this model has positions for ", most,
                                     "; drop the oldest time steps"}));
  }
  VKF_CHECK(reader.fill(words));
  return s;
}

}  // namespace vkformer
