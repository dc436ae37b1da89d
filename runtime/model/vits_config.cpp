#include "model/vits_config.h"

#include <cmath>

#include "base/check.h"
#include "base/message.h"
#include "model/config_reading.h"
#include "ops/inverse_spline.h"

namespace vkformer {
namespace {

constexpr int64_t kMostKernel = 1024;  // frames
constexpr int64_t kMostFlows = 64;
constexpr int64_t kMostCovered = 1 << 14;  // frames that a kernel covers with its dilation
constexpr size_t kMostStages = 16;
constexpr int64_t kMostSpeakers = 1 << 20;

Error bad_value(const JsonConfig& config, const std::string& key, const std::string& problem) {
  return invalid_file(message({"[", key, "] in ", config.where(), " ", problem}));
}

// Base to the power of `exponent`, or more than may be covered.
int64_t power(int64_t base, int64_t exponent) {
  int64_t value = 1;
  for (int64_t i = 0; i < exponent && value <= kMostCovered; ++i) value *= base;
  return value;
}

// A kernel that leaves the number of frames as it is, and covers no more than it may.
Status check_kernel(const JsonConfig& config, const std::string& key, int64_t kernel,
                    int64_t dilation) {
  if (kernel < 1 || kernel > kMostKernel || dilation < 1 || dilation > kMostCovered ||
      (kernel - 1) * dilation >= kMostCovered) {
    return bad_value(config, key,
                     message({"makes a kernel of ", kernel, " with a dilation of ", dilation,
                              ", but a kernel has 1 to ", kMostKernel, " values and covers at ",
                              "most ", kMostCovered, " frames."}));
  }
  if ((kernel - 1) * dilation % 2 == 0) return {};
  return bad_value(config, key,
                   message({"makes a kernel of ", kernel, " with a dilation of ", dilation,
                            ", which covers an even number of frames and would lose one; it must ",
                            "cover an odd number."}));
}

Status read_encoder(const JsonConfig& config, VitsConfig& c) {
  StackConfig& s = c.stack;
  s.rows = "encoder";
  s.order = StackConfig::Order::kPost;
  VKF_ASSIGN(s.width, get_size_or(config, "hidden_size", 192, kMostWidth));
  VKF_ASSIGN(s.layers, get_size_or(config, "num_hidden_layers", 6, kMostLayers));
  VKF_ASSIGN(s.heads, get_size_or(config, "num_attention_heads", 2, kMostWidth));
  VKF_ASSIGN(s.ffn, get_size_or(config, "ffn_dim", 768, kMostWidth));
  VKF_CHECK(head_width(config, s.width, s.heads));
  VKF_ASSIGN(s.activation, get_activation(config, "hidden_act", "relu"));
  VKF_ASSIGN(s.epsilon, get_epsilon(config, "layer_norm_eps", 1e-5));
  VKF_ASSIGN(c.window, get_size_or(config, "window_size", 4, kMostCovered));
  VKF_ASSIGN(c.ffn_kernel, get_size_or(config, "ffn_kernel_size", 3, kMostKernel));
  VKF_ASSIGN(const bool bias, config.get_bool_or("use_bias", true));
  if (!bias) c.bias = VitsConfig::Bias::kNo;
  VKF_ASSIGN(const int64_t speakers, get_size_or(config, "num_speakers", 1, kMostSpeakers));
  VKF_ASSIGN(c.speaker_width, config.get_int_or("speaker_embedding_size", 0));
  if (c.speaker_width < 0 || c.speaker_width > kMostWidth ||
      (speakers > 1 && c.speaker_width == 0)) {
    return bad_value(config, "speaker_embedding_size",
                     message({"is ", c.speaker_width, " with ", speakers,
                              " speakers, but several need 1 to ", kMostWidth, "."}));
  }
  c.speakers = speakers > 1 ? speakers : 0;
  return {};
}

Status read_flows(const JsonConfig& config, VitsConfig& c) {
  VKF_ASSIGN(c.flow_width, get_size_or(config, "flow_size", 192, kMostWidth));
  if (c.flow_width % 2 != 0) {
    return bad_value(
        config, "flow_size",
        message({"is ", c.flow_width, ", but its halves must be equal; it must be ", "even."}));
  }
  VKF_ASSIGN(c.flows, get_size_or(config, "prior_encoder_num_flows", 4, kMostFlows));
  VKF_ASSIGN(c.wave_layers,
             get_size_or(config, "prior_encoder_num_wavenet_layers", 4, kMostLayers));
  VKF_ASSIGN(c.wave_kernel, get_size_or(config, "wavenet_kernel_size", 5, kMostKernel));
  VKF_ASSIGN(c.wave_dilation, get_size_or(config, "wavenet_dilation_rate", 1, kMostKernel));
  for (int64_t i = 0; i < c.wave_layers; ++i) {
    VKF_CHECK(
        check_kernel(config, "wavenet_kernel_size", c.wave_kernel, power(c.wave_dilation, i)));
  }
  return {};
}

Status read_stages(const JsonConfig& config, HifiGan& v) {
  VKF_ASSIGN(const auto rates, config.get_int_list_or("upsample_rates", {8, 8, 2, 2}));
  VKF_ASSIGN(const auto kernels, config.get_int_list_or("upsample_kernel_sizes", {16, 16, 4, 4}));
  if (rates.empty() || rates.size() > kMostStages || kernels.size() != rates.size()) {
    return bad_value(
        config, "upsample_rates",
        message({"has ", rates.size(), " values and [upsample_kernel_sizes] ", kernels.size(),
                 ", but there must be as many of both, 1 to ", kMostStages, "."}));
  }
  for (size_t i = 0; i < rates.size(); ++i) {
    if (rates[i] < 1 || rates[i] > kMostKernel || kernels[i] < rates[i] ||
        kernels[i] > kMostKernel) {
      return bad_value(
          config, "upsample_rates",
          message({"has a rate of ", rates[i], " with a kernel of ", kernels[i],
                   ", but a kernel must be at least its rate and at most ", kMostKernel, "."}));
    }
    v.stages.push_back({rates[i], kernels[i]});
  }
  VKF_ASSIGN(v.channels, get_size_or(config, "upsample_initial_channel", 512, kMostWidth));
  if (v.width(rates.size() - 1) >= 1) return {};
  return bad_value(
      config, "upsample_initial_channel",
      message({"is ", v.channels, ", which ", rates.size(),
               " stages halve to nothing; it must be at least ", int64_t{1} << rates.size(), "."}));
}

Status read_vocoder(const JsonConfig& config, HifiGan& v) {
  VKF_CHECK(read_stages(config, v));
  VKF_ASSIGN(const auto kernels, config.get_int_list_or("resblock_kernel_sizes", {3, 7, 11}));
  VKF_ASSIGN(const auto dilations,
             config.get_int_lists_or("resblock_dilation_sizes", {{1, 3, 5}, {1, 3, 5}, {1, 3, 5}}));
  if (kernels.empty() || kernels.size() > kMostStages || dilations.size() != kernels.size()) {
    return bad_value(
        config, "resblock_kernel_sizes",
        message({"has ", kernels.size(), " values and [resblock_dilation_sizes] ", dilations.size(),
                 ", but there must be as many of both, 1 to ", kMostStages, "."}));
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (dilations[i].empty() || dilations[i].size() > kMostStages) {
      return bad_value(config, "resblock_dilation_sizes",
                       message({"has a list of ", dilations[i].size(), " values; a list has 1 to ",
                                kMostStages, "."}));
    }
    for (const int64_t dilation : dilations[i]) {
      VKF_CHECK(check_kernel(config, "resblock_kernel_sizes", kernels[i], dilation));
    }
    VKF_CHECK(check_kernel(config, "resblock_kernel_sizes", kernels[i], 1));
    v.stacks.push_back({kernels[i], dilations[i]});
  }
  VKF_ASSIGN(const double slope, config.get_double_or("leaky_relu_slope", 0.1));
  v.slope = static_cast<float>(slope);
  if (std::isfinite(v.slope)) return {};
  return bad_value(config, "leaky_relu_slope", message({"is ", slope, ", which is not a number."}));
}

Status read_durations(const JsonConfig& config, VitsConfig& c) {
  VKF_ASSIGN(const bool flows, config.get_bool_or("use_stochastic_duration_prediction", true));
  if (!flows) c.durations = VitsConfig::Durations::kConvs;
  VKF_ASSIGN(c.duration_kernel,
             get_size_or(config, "duration_predictor_kernel_size", 3, kMostKernel));
  VKF_CHECK(check_kernel(config, "duration_predictor_kernel_size", c.duration_kernel, 1));
  VKF_ASSIGN(c.duration_width,
             get_size_or(config, "duration_predictor_filter_channels", 256, kMostWidth));
  if (!flows) return {};
  VKF_ASSIGN(c.duration_flows, get_size_or(config, "duration_predictor_num_flows", 4, kMostFlows));
  VKF_ASSIGN(c.duration_layers, get_size_or(config, "depth_separable_num_layers", 3, kMostLayers));
  VKF_CHECK(check_kernel(config, "depth_separable_num_layers", c.duration_kernel,
                         c.separable().dilation(c.duration_layers - 1)));
  VKF_ASSIGN(c.spline_bins,
             get_size_or(config, "duration_predictor_flow_bins", 10, kMostSplineBins));
  VKF_ASSIGN(c.spline_bound, config.get_double_or("duration_predictor_tail_bound", 5.0));
  if (!(c.spline_bound > 0) || !std::isfinite(static_cast<float>(c.spline_bound))) {
    return bad_value(config, "duration_predictor_tail_bound",
                     message({"is ", c.spline_bound, ", but must be finite and above 0."}));
  }
  VKF_ASSIGN(const int64_t channels, config.get_int_or("depth_separable_channels", 2));
  if (channels == 2) return {};
  return unsupported(message({"[depth_separable_channels] in ", config.where(), " is ", channels,
                              "; a token has one duration, so that only 2 is supported."}));
}

Status read_scales(const JsonConfig& config, VitsConfig& c) {
  const struct {
    const char* key;
    double* value;
    bool positive;
  } numbers[] = {{"noise_scale", &c.noise, false},
                 {"noise_scale_duration", &c.duration_noise, false},
                 {"speaking_rate", &c.speaking_rate, true}};
  for (const auto& [key, value, positive] : numbers) {
    VKF_ASSIGN(*value, config.get_double_or(key, *value));
    if (std::isfinite(*value) && (positive ? *value > 0 : *value >= 0)) continue;
    return bad_value(config, key,
                     message({"is ", *value, ", but must be finite and ",
                              positive ? "above 0." : "at least 0."}));
  }
  return {};
}

}  // namespace

int64_t SeparableConvs::dilation(int64_t layer) const {
  return power(kernel, layer);
}

Result<VitsConfig> read_vits_config(const JsonConfig& config) {
  VitsConfig c;
  VKF_CHECK(read_encoder(config, c));
  VKF_CHECK(read_flows(config, c));
  c.vocoder.rows = "vocoder";
  c.vocoder.features = c.flow_width;
  if (c.flows % 2 != 0) c.vocoder.reversed = HifiGan::Reversed::kYes;
  VKF_CHECK(read_vocoder(config, c.vocoder));
  VKF_CHECK(read_durations(config, c));
  VKF_CHECK(read_scales(config, c));
  return c;
}

}  // namespace vkformer
