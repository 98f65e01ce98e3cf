/// Launches of casts, images, activations, sums, dropout, copies and the loss. Thread rule: pure functions.
#pragma once

#include <cmath>

#include "core/random.hpp"
#include "gpu/kernels/bodies/channels.hpp"
#include "gpu/kernels/bodies/dropout.hpp"
#include "gpu/kernels/bodies/flat.hpp"
#include "gpu/kernels/bodies/images.hpp"
#include "gpu/kernels/bodies/loss.hpp"
#include "gpu/kernels/bodies/transpose.hpp"
#include "gpu/kernels/kernel.hpp"
#include "gpu/kernels/launch/choose.hpp"

namespace troupe::gpu::launches {

template <class Launcher>
void cast(const void* from, Type from_type, void* to, Type to_type, std::int64_t count, Launcher& launcher) {
  with_type(from_type, [&](auto from_tag) {
    with_type(to_type, [&](auto to_tag) {
      using From = typename decltype(from_tag)::type;
      using To = typename decltype(to_tag)::type;
      flat(launcher, CastBody<From, To>{of<From>(from), launches::to<To>(to)}, count, from, to);
    });
  });
}
template <class Launcher>
void launch(const Cast& k, Launcher& launcher) {
  cast(k.from, k.from_type, k.to, k.to_type, k.count, launcher);
}

template <class Launcher>
void launch(const ImagesToNhwc& k, Launcher& launcher) {
  const std::int64_t plane = k.to_shape.height * k.to_shape.width;
  if (k.channels == k.to_shape.channels && (plane == 1 || k.channels == 1)) {  // the same order
    cast(k.from, Type::fp32, k.to, k.type, k.to_shape.size(), launcher);
    return;
  }
  with_groups(
      k.type, k.to_shape.channels,
      [&](auto tag, auto lanes) {
        using T = typename decltype(tag)::type;
        elements(launcher,
                 ImagesToNhwcBody<T, decltype(lanes)::value>{k.from, to<T>(k.to), Divider(plane), k.channels,
                                                             k.to_shape.channels},
                 k.to_shape.pixels());
      },
      k.to);
}
template <class Launcher>
void launch(const BytesToNhwc& k, Launcher& launcher) {
  with_groups(
      k.type, k.to_shape.channels,
      [&](auto tag, auto lanes) {
        using T = typename decltype(tag)::type;
        elements(launcher,
                 BytesToNhwcBody<T, decltype(lanes)::value>{
                     k.from, to<T>(k.to), k.cuts, k.scale, k.bias, Images(k.to_shape), k.from_shape.channels,
                     k.to_shape.channels, k.from_shape.height, k.from_shape.width},
                 k.to_shape.pixels());
      },
      k.to);
}

/// use(std::integral_constant of the activation)
template <class Use>
void with_activation(nn::Activation activation, const Use& use) {
  using enum nn::Activation;
  switch (activation) {
    case relu: return use(std::integral_constant<nn::Activation, relu>{});
    case sigmoid: return use(std::integral_constant<nn::Activation, sigmoid>{});
    case tanh: return use(std::integral_constant<nn::Activation, tanh>{});
  }
}
template <class Launcher>
void launch(const ActivationForward& k, Launcher& launcher) {
  with_type(k.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_activation(k.activation, [&](auto activation) {
      flat(launcher, ActivationForwardBody<T, decltype(activation)::value>{of<T>(k.x), to<T>(k.y)}, k.count, k.x, k.y);
    });
  });
}
template <class Launcher>
void launch(const ActivationBackward& k, Launcher& launcher) {
  with_type(k.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_activation(k.activation, [&](auto activation) {
      flat(launcher, ActivationBackwardBody<T, decltype(activation)::value>{of<T>(k.y), of<T>(k.dy), to<T>(k.dx)},
           k.count, k.y, k.dy, k.dx);
    });
  });
}
template <class Launcher>
void launch(const AddUp& k, Launcher& launcher) {
  static_assert(kMostAddends == std::tuple_size_v<decltype(k.x)>);
  with_type(k.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    AddUpBody<T> body{{}, k.inputs, k.relu, to<T>(k.y)};
    bool wide = is_aligned(k.y);
    for (int input = 0; input < k.inputs; ++input) {
      body.x[input] = of<T>(k.x[static_cast<std::size_t>(input)]);
      wide = wide && is_aligned(body.x[input]);
    }
    const Flat<AddUpBody<T>> each{body, k.count, wide};
    elements(launcher, each, each.indices());
  });
}

template <class Launcher>
void launch(const Dropout& k, Launcher& launcher) {
  with_groups(
      k.type, k.shape.channels,
      [&](auto tag, auto lanes) {
        using T = typename decltype(tag)::type;
        constexpr int kLanes = decltype(lanes)::value;
        const Groups<kLanes> groups(k.shape.pixels(), k.shape.channels);
        elements(launcher,
                 DropoutBody<T, kLanes>{of<T>(k.x), to<T>(k.y), k.key, k.seed, static_cast<std::uint64_t>(k.node),
                                        static_cast<std::uint32_t>(core::Purpose::dropout),
                                        static_cast<std::uint64_t>(std::ceil(k.rate * 0x1p32)),
                                        static_cast<float>(1.0 / (1.0 - k.rate)),
                                        Divider(k.shape.height * k.shape.width), k.shape.channels, groups},
                 groups.indices());
      },
      k.x, k.y);
}

template <int kBytes, class Launcher>
void copy_channels(const CopyChannels& k, std::int64_t element, Launcher& launcher) {
  const auto units = [&](std::int64_t channels) { return channels * element / kBytes; };
  const Groups<1> groups(k.pixels, units(k.channels));
  elements(launcher,
           CopyChannelsBody<kBytes>{k.from, k.to, units(k.from_channels), units(k.from_first), units(k.to_channels),
                                    units(k.to_first), groups},
           groups.indices());
}
template <class Launcher>
void launch(const CopyChannels& k, Launcher& launcher) {
  const auto element = static_cast<std::int64_t>(bytes_of(k.type));
  const auto fits = [&](std::int64_t bytes) {
    const auto at = reinterpret_cast<std::uintptr_t>(k.from) | reinterpret_cast<std::uintptr_t>(k.to);
    const auto all = (k.from_channels | k.from_first | k.to_channels | k.to_first | k.channels) * element;
    return at % static_cast<std::uintptr_t>(bytes) == 0 && all % bytes == 0;
  };
  if (k.channels == 0) return;
  if (fits(16)) return copy_channels<16>(k, element, launcher);
  if (fits(8)) return copy_channels<8>(k, element, launcher);
  if (fits(4)) return copy_channels<4>(k, element, launcher);
  copy_channels<2>(k, element, launcher);
}

template <class Launcher>
void launch(const Transpose& k, Launcher& launcher) {
  if (bytes_of(k.type) == 2)
    blocks(launcher, TransposeBody<std::uint16_t>{of<std::uint16_t>(k.from), to<std::uint16_t>(k.to), k.batch, k.rows,
                                                  k.columns});
  else
    blocks(launcher, TransposeBody<std::uint32_t>{of<std::uint32_t>(k.from), to<std::uint32_t>(k.to), k.batch, k.rows,
                                                  k.columns});
}

template <class Launcher>
void launch(const LossKernel& k, Launcher& launcher) {
  with_type(k.gradient_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    blocks(launcher, LossRowsBody<T>{k.loss, k.z, k.labels, k.samples, to<T>(k.gradient), k.row_sums, k.rows, k.classes,
                                     k.smoothing, k.weight, k.loss_scale});
  });
  blocks(launcher, LossTotalBody{k.row_sums, k.samples, k.rows, k.sums});
}

}  // namespace troupe::gpu::launches
