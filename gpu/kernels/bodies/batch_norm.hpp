/// Element bodies of batch normalisation, and what its gradients sum up. An index is a group of channels of several pixels, a whole number of
/// tensors' parts apart: what belongs to a channel is read once for all of them. Thread rule: plain values.
#pragma once

#include <type_traits>

#include "gpu/kernels/bodies/columns.hpp"
#include "gpu/kernels/bodies/functions.hpp"
#include "gpu/kernels/bodies/groups.hpp"

namespace troupe::gpu {

inline constexpr std::int64_t kNormPixels = 4;  // of an index

/// Indices over [pixels, channels], kNormPixels pixels each: pixel i, i + n, i + 2n, … of n = ⌈pixels / kNormPixels⌉.
template <int kLanes>
class StridedGroups {
 public:
  StridedGroups(std::int64_t pixels, std::int64_t channels)
      : pixels_(pixels), channels_(channels), step_(ceil_div(pixels, kNormPixels)), groups_(step_, channels) {}
  [[nodiscard]] std::int64_t indices() const { return groups_.indices(); }
  /// Calls begin(channel), then fetch(offset of the group's first element) for each pixel, then use(what begin returned, what fetch returned,
  /// offset) for each pixel: all reads of memory are under way before the first one is waited for, whether or not outputs are inputs.
  template <class Begin, class Fetch, class Use>
  TROUPE_HOST_DEVICE void operator()(std::int64_t index, const Begin& begin, const Fetch& fetch, const Use& use) const {
    const auto [first, channel] = groups_(index);
    decltype(fetch(index)) fetched[kNormPixels] = {};
    TROUPE_UNROLL
    for (std::int64_t k = 0; k < kNormPixels; ++k) {
      const std::int64_t pixel = first + k * step_;
      if (pixel < pixels_) fetched[k] = fetch(pixel * channels_ + channel);
    }
    const auto known = begin(channel);
    TROUPE_UNROLL
    for (std::int64_t k = 0; k < kNormPixels; ++k) {
      const std::int64_t pixel = first + k * step_;
      if (pixel < pixels_) use(known, fetched[k], pixel * channels_ + channel);
    }
  }

 private:
  std::int64_t pixels_;
  std::int64_t channels_;
  std::int64_t step_;
  Groups<kLanes> groups_;
};

[[nodiscard]] TROUPE_HOST_DEVICE inline float inverse_root(float variance, float epsilon) {
  return 1.0f / ::sqrtf(variance + epsilon);
}

template <class T, int kLanes>
struct BatchNormForwardBody {
  const T* x;
  T* y;
  const T* addend;  // null: none
  const float* weight;
  const float* bias;
  const float* mean;
  const float* inverse_deviation;  // evaluation: the variance
  bool evaluation;
  bool relu_after;
  float epsilon;
  StridedGroups<kLanes> groups;

  struct Channel {
    Lanes<kLanes> scale;
    Lanes<kLanes> mean;
    Lanes<kLanes> bias;
  };
  struct Fetched {
    Packed<T, kLanes> x;
    Packed<T, kLanes> addend;
  };
  TROUPE_HOST_DEVICE void operator()(std::int64_t index) const {
    groups(
        index, [this](std::int64_t channel) { return begin(channel); }, [this](std::int64_t at) { return fetched(at); },
        [this](const Channel& known, const Fetched& from, std::int64_t at) { use(known, from, at); });
  }

 private:
  [[nodiscard]] TROUPE_HOST_DEVICE Fetched fetched(std::int64_t at) const {
    Fetched from{fetch<kLanes>(x + at), {}};
    if (addend != nullptr) from.addend = fetch<kLanes>(addend + at);
    return from;
  }
  [[nodiscard]] TROUPE_HOST_DEVICE Channel begin(std::int64_t channel) const {
    Channel known{load<kLanes>(weight + channel), load<kLanes>(mean + channel), load<kLanes>(bias + channel)};
    const auto deviation = load<kLanes>(inverse_deviation + channel);
    TROUPE_UNROLL
    for (int l = 0; l < kLanes; ++l)
      known.scale[l] = known.scale[l] * (evaluation ? inverse_root(deviation[l], epsilon) : deviation[l]);
    return known;
  }
  TROUPE_HOST_DEVICE void use(const Channel& known, const Fetched& from, std::int64_t at) const {
    auto lanes = lanes_of(from.x);
    TROUPE_UNROLL
    for (int l = 0; l < kLanes; ++l) lanes[l] = (lanes[l] - known.mean[l]) * known.scale[l] + known.bias[l];
    if (addend != nullptr) {
      const auto others = lanes_of(from.addend);
      TROUPE_UNROLL
      for (int l = 0; l < kLanes; ++l) lanes[l] = lanes[l] + others[l];
    }
    if (relu_after) {
      TROUPE_UNROLL
      for (int l = 0; l < kLanes; ++l) lanes[l] = relu(lanes[l]);
    }
    store(y + at, lanes);
  }
};

/// What the gradient of a relu behind the normalisation is masked by.
enum class NormMask : std::uint8_t {
  none,    ///< no relu
  output,  ///< y
  input,   ///< y, computed again from x: as BatchNormForwardBody does, without the rounding, which keeps signs
};

/// g and x̂ of an element, for the gradients and for backward.
template <class T, int kLanes, NormMask kMask>
struct NormalisedGradient {
  const T* x;
  const T* y;
  const T* dy;
  const float* mean;
  const float* inverse_deviation;
  const float* weight;
  const float* bias;

  struct NoLanes {};
  struct Affine {
    Lanes<kLanes> scale;
    Lanes<kLanes> bias;
  };
  struct Channel {
    Lanes<kLanes> mean;
    Lanes<kLanes> inverse_deviation;
    std::conditional_t<kMask == NormMask::input, Affine, NoLanes> output;
  };
  struct Values {
    Lanes<kLanes> gradient;    // g
    Lanes<kLanes> normalised;  // x̂
  };
  struct Fetched {
    Packed<T, kLanes> x;
    std::conditional_t<kMask == NormMask::output, Packed<T, kLanes>, NoLanes> y;
    Packed<T, kLanes> dy;
  };
  [[nodiscard]] TROUPE_HOST_DEVICE Channel begin(std::int64_t channel) const {
    Channel known{load<kLanes>(mean + channel), load<kLanes>(inverse_deviation + channel), {}};
    if constexpr (kMask == NormMask::input) {
      known.output = {load<kLanes>(weight + channel), load<kLanes>(bias + channel)};
      TROUPE_UNROLL
      for (int l = 0; l < kLanes; ++l) known.output.scale[l] = known.output.scale[l] * known.inverse_deviation[l];
    }
    return known;
  }
  [[nodiscard]] TROUPE_HOST_DEVICE Fetched fetched(std::int64_t at) const {
    Fetched from{fetch<kLanes>(x + at), {}, fetch<kLanes>(dy + at)};
    if constexpr (kMask == NormMask::output) from.y = fetch<kLanes>(y + at);
    return from;
  }
  [[nodiscard]] TROUPE_HOST_DEVICE Values of(const Channel& known, const Fetched& from) const {
    Values values{lanes_of(from.dy), lanes_of(from.x)};
    if constexpr (kMask == NormMask::output) {
      const auto outputs = lanes_of(from.y);
      TROUPE_UNROLL
      for (int l = 0; l < kLanes; ++l) values.gradient[l] = outputs[l] > 0 ? values.gradient[l] : 0.0f;
    }
    TROUPE_UNROLL
    for (int l = 0; l < kLanes; ++l) {
      const float centred = values.normalised[l] - known.mean[l];
      if constexpr (kMask == NormMask::input) {
        const bool passes = centred * known.output.scale[l] + known.output.bias[l] > 0;
        values.gradient[l] = passes ? values.gradient[l] : 0.0f;
      }
      values.normalised[l] = centred * known.inverse_deviation[l];
    }
    return values;
  }
};

/// Of ColumnSumsBody: Σ g · x̂, Σ g.
template <class T, int kColumnLanes, NormMask kMask>
struct NormGradientSource {
  static constexpr int kLanes = kColumnLanes;
  static constexpr int kValues = 2;
  static constexpr int kRowsAtOnce = 4;
  using Gradient = NormalisedGradient<T, kLanes, kMask>;
  Gradient gradient;
  std::int64_t channels;
  [[nodiscard]] TROUPE_HOST_DEVICE typename Gradient::Channel begin(std::int64_t column) const {
    return gradient.begin(column);
  }
  [[nodiscard]] TROUPE_HOST_DEVICE typename Gradient::Fetched fetch(std::int64_t row, std::int64_t column) const {
    return gradient.fetched(row * channels + column);
  }
  TROUPE_HOST_DEVICE void add(const typename Gradient::Channel& known, const typename Gradient::Fetched& fetched,
                              Lanes<kLanes> (&sums)[2]) const {
    const auto values = gradient.of(known, fetched);
    TROUPE_UNROLL
    for (int l = 0; l < kLanes; ++l) {
      sums[0][l] = sums[0][l] + values.gradient[l] * values.normalised[l];
      sums[1][l] = sums[1][l] + values.gradient[l];
    }
  }
};

template <class T, int kLanes, NormMask kMask>
struct BatchNormBackwardBody {
  using Gradient = NormalisedGradient<T, kLanes, kMask>;
  Gradient gradient;
  const float* weight;
  const float* weight_gradient;
  const float* bias_gradient;
  T* dx;               // null: none
  T* addend_gradient;  // null: none
  float pixels;
  StridedGroups<kLanes> groups;

  struct Channel {
    typename Gradient::Channel input;
    Lanes<kLanes> scale;
    Lanes<kLanes> mean_gradient;   // dbias / m
    Lanes<kLanes> mean_projected;  // dweight / m
  };
  using Fetched = typename Gradient::Fetched;
  TROUPE_HOST_DEVICE void operator()(std::int64_t index) const {
    groups(
        index, [this](std::int64_t channel) { return begin(channel); },
        [this](std::int64_t at) { return gradient.fetched(at); },
        [this](const Channel& known, const Fetched& from, std::int64_t at) { use(known, from, at); });
  }

 private:
  [[nodiscard]] TROUPE_HOST_DEVICE Channel begin(std::int64_t channel) const {
    Channel known{gradient.begin(channel), load<kLanes>(weight + channel), load<kLanes>(bias_gradient + channel),
                  load<kLanes>(weight_gradient + channel)};
    TROUPE_UNROLL
    for (int l = 0; l < kLanes; ++l) {
      known.scale[l] = known.scale[l] * known.input.inverse_deviation[l];
      known.mean_gradient[l] = known.mean_gradient[l] / pixels;
      known.mean_projected[l] = known.mean_projected[l] / pixels;
    }
    return known;
  }
  TROUPE_HOST_DEVICE void use(const Channel& known, const Fetched& from, std::int64_t at) const {
    auto values = gradient.of(known.input, from);
    if (addend_gradient != nullptr) store(addend_gradient + at, values.gradient);
    if (dx == nullptr) return;
    TROUPE_UNROLL
    for (int l = 0; l < kLanes; ++l)
      values.gradient[l] = known.scale[l] * (values.gradient[l] - known.mean_gradient[l] -
                                             values.normalised[l] * known.mean_projected[l]);
    store(dx + at, values.gradient);
  }
};

/// Element body over the channels. The arithmetic of cpu/layers/pointwise.cpp.
struct MoveStatisticsBody {
  const float* mean;
  const float* variance;
  float* running_mean;
  float* running_variance;
  const std::int64_t* bad_label;  // null: none
  float momentum;
  float unbiased;  // m / (m − 1)
  TROUPE_HOST_DEVICE void operator()(std::int64_t c) const {
    if (bad_label == nullptr || *bad_label < 0) move(c, mean[c], variance[c]);
  }
  TROUPE_HOST_DEVICE void move(std::int64_t c, float batch_mean, float batch_variance) const {
    running_mean[c] = running_mean[c] + momentum * (batch_mean - running_mean[c]);
    running_variance[c] = running_variance[c] + momentum * (batch_variance * unbiased - running_variance[c]);
  }
};

}  // namespace troupe::gpu
