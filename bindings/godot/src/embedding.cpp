#include <algorithm>
#include <cmath>

#include "passes.h"

namespace vkf_godot {
namespace {

using gd::Variant;

using Vector = std::vector<float>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

double cosine(const Vector& a, const Vector& b) {
  const double lengths = std::sqrt(dot(a, a) * dot(b, b));
  return lengths > 0 ? dot(a, b) / lengths : 0;
}

// One text to its vector; the last of several says so.
class EmbedJob : public Job {
 public:
  EmbedJob(std::vector<std::string> texts, std::string prompt, bool unit_length)
      : texts_(std::move(texts)), prompt_(std::move(prompt)), unit_length_(unit_length) {}

  std::string prepare() override {
    for (const std::string& text : texts_) {
      ids_.emplace_back();
      if (std::string error = encode(*seat->model, prompt_ + text, 0, ids_.back());
          !error.empty()) {
        return error;
      }
    }
    return "";
  }

  vkf_status start(vkf_session* session, vkf_error* error) override {
    const std::vector<int64_t>& ids = ids_[vectors_.size()];
    Tensors inputs;
    if (const vkf_status status = vkf_tensors_create(made(inputs), error); status != VKF_OK) {
      return status;
    }
    const int64_t shape[] = {1, static_cast<int64_t>(ids.size())};
    auto tensor = sized<vkf_tensor>();
    tensor.dtype = VKF_I64;
    tensor.shape = shape;
    tensor.rank = 2;
    tensor.data = ids.data();
    tensor.bytes = ids.size() * sizeof(int64_t);
    if (const vkf_status status = vkf_tensors_set(inputs.get(), "input_ids", &tensor, error);
        status != VKF_OK) {
      return status;
    }
    return vkf_session_start(session, inputs.get(), nullptr, error);
  }

  vkf_status finish(vkf_session* session, vkf_error* error) override {
    Tensors outputs;
    if (const vkf_status status = vkf_session_finish(session, made(outputs), error);
        status != VKF_OK) {
      return status;
    }
    auto tensor = sized<vkf_tensor>();
    const char* name = "sentence_embedding";
    if (vkf_tensors_get(outputs.get(), name, &tensor, nullptr) != VKF_OK) {
      name = seat->model->info().encoder_layers > 0 &&
                     std::string(seat->model->info().kind) == "encoder-decoder"
                 ? "encoder_last_hidden_state"
                 : "last_hidden_state";
      if (const vkf_status status = vkf_tensors_get(outputs.get(), name, &tensor, error);
          status != VKF_OK) {
        return status;
      }
    }
    size_t count = 1;
    for (size_t i = 0; i < tensor.rank; ++i) count *= static_cast<size_t>(tensor.shape[i]);
    Vector states(count);
    if (const vkf_status status =
            vkf_tensors_get_floats(outputs.get(), name, states.data(), count, error);
        status != VKF_OK) {
      return status;
    }
    add(states, static_cast<size_t>(tensor.shape[tensor.rank - 1]));
    if (!more()) done();
    return VKF_OK;
  }

  bool more() const override { return vectors_.size() < texts_.size(); }

 protected:
  virtual void done() {
    tell("embedded", {texts_[0], Variant::floats(vectors_[0].data(), vectors_[0].size())});
  }

  std::vector<std::string> texts_;
  std::vector<Vector> vectors_;

 private:
  // The mean over the tokens, which is the vector itself where the model pools.
  void add(const Vector& states, size_t width) {
    Vector vector(width);
    const size_t rows = states.size() / width;
    for (size_t d = 0; d < width; ++d) {
      double sum = 0;
      for (size_t t = 0; t < rows; ++t) sum += static_cast<double>(states[t * width + d]);
      vector[d] = static_cast<float>(sum / static_cast<double>(rows));
    }
    if (unit_length_) {
      const double length = std::max(std::sqrt(dot(vector, vector)), 1e-12);
      for (float& value : vector) value = static_cast<float>(static_cast<double>(value) / length);
    }
    vectors_.push_back(std::move(vector));
  }

  std::string prompt_;
  bool unit_length_;
  std::vector<std::vector<int64_t>> ids_;
};

template <class Memory>
class RememberJob : public EmbedJob {
 public:
  RememberJob(std::vector<std::string> texts, std::string prompt, bool unit,
              std::shared_ptr<Memory> memory)
      : EmbedJob(std::move(texts), std::move(prompt), unit), memory_(std::move(memory)) {}

 protected:
  void done() override {
    for (size_t i = 0; i < texts_.size(); ++i) {
      memory_->texts.push_back(texts_[i]);
      memory_->vectors.push_back(vectors_[i]);
    }
    tell("remembered", {static_cast<int64_t>(memory_->texts.size())});
  }

 private:
  std::shared_ptr<Memory> memory_;
};

template <class Memory>
class SearchJob : public EmbedJob {
 public:
  SearchJob(const std::string& query, std::string prompt, bool unit, size_t top,
            std::shared_ptr<Memory> memory)
      : EmbedJob({query}, std::move(prompt), unit), top_(top), memory_(std::move(memory)) {}

 protected:
  void done() override {
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < memory_->vectors.size(); ++i) {
      order.emplace_back(-cosine(vectors_[0], memory_->vectors[i]), i);
    }
    std::sort(order.begin(), order.end());
    if (top_ > 0 && order.size() > top_) order.resize(top_);
    std::vector<std::string> texts;
    std::vector<float> scores;
    for (const auto& [score, place] : order) {
      texts.push_back(memory_->texts[place]);
      scores.push_back(static_cast<float>(-score));
    }
    tell("found",
         {texts_[0], Variant::strings(texts), Variant::floats(scores.data(), scores.size())});
  }

 private:
  size_t top_;
  std::shared_ptr<Memory> memory_;
};

}  // namespace

Variant EmbeddingNode::embed(const gd::Arguments& given) {
  submit(std::make_shared<EmbedJob>(std::vector<std::string>{given[0].as_string()}, prompt_,
                                    unit_length_));
  return {};
}

Variant EmbeddingNode::remember(const gd::Arguments& given) {
  const std::vector<std::string> texts = given[0].as_strings();
  if (texts.empty()) return {};
  submit(std::make_shared<RememberJob<Memory>>(texts, prompt_, unit_length_, memory_));
  return {};
}

Variant EmbeddingNode::search(const gd::Arguments& given) {
  const auto top = static_cast<size_t>(std::max<int64_t>(0, given[1].as_int()));
  submit(std::make_shared<SearchJob<Memory>>(given[0].as_string(), prompt_, unit_length_, top,
                                             memory_));
  return {};
}

Variant EmbeddingNode::forget(const gd::Arguments&) {
  memory_ = std::make_shared<Memory>();  // jobs that run have the old one
  return {};
}

Variant EmbeddingNode::similarity(const gd::Arguments& given) {
  return cosine(given[0].as_floats(), given[1].as_floats());
}

std::unique_ptr<gd::Class> EmbeddingNode::register_class() {
  using T = EmbeddingNode;
  constexpr auto kFloats = GDEXTENSION_VARIANT_TYPE_PACKED_FLOAT32_ARRAY;
  constexpr auto kStrings = GDEXTENSION_VARIANT_TYPE_PACKED_STRING_ARRAY;
  auto c =
      std::make_unique<gd::Class>("VkfEmbedding", "Node", [] { return std::make_unique<T>(); });
  register_node<T>(*c);
  c->property<T>(
      "prompt", GDEXTENSION_VARIANT_TYPE_STRING, {}, [](T& self) { return self.prompt_; },
      [](T& self, const Variant& value) { self.prompt_ = value.as_string(); });
  c->property<T>(
      "unit_length", GDEXTENSION_VARIANT_TYPE_BOOL, {}, [](T& self) { return self.unit_length_; },
      [](T& self, const Variant& value) { self.unit_length_ = value.as_bool(); });
  c->method("embed", GDEXTENSION_VARIANT_TYPE_NIL, {{"text"}}, &T::embed);
  c->method("remember", GDEXTENSION_VARIANT_TYPE_NIL, {{"texts", kStrings}}, &T::remember);
  c->method("search", GDEXTENSION_VARIANT_TYPE_NIL,
            {{"query"}, {"top", GDEXTENSION_VARIANT_TYPE_INT}}, &T::search, {Variant(3)});
  c->method("forget", GDEXTENSION_VARIANT_TYPE_NIL, {}, &T::forget);
  c->method("similarity", GDEXTENSION_VARIANT_TYPE_FLOAT, {{"a", kFloats}, {"b", kFloats}},
            &T::similarity);
  c->signal("embedded", {{"text"}, {"vector", kFloats}});
  c->signal("remembered", {{"count", GDEXTENSION_VARIANT_TYPE_INT}});
  c->signal("found", {{"query"}, {"texts", kStrings}, {"scores", kFloats}});
  return c;
}

}  // namespace vkf_godot
