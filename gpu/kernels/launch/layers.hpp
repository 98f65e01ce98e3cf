/// Launches of sums over columns, pooling, LRN and batch normalisation. Thread rule: pure functions.
#pragma once

#include "gpu/kernels/bodies/batch_norm.hpp"
#include "gpu/kernels/bodies/channel_sums.hpp"
#include "gpu/kernels/bodies/columns.hpp"
#include "gpu/kernels/bodies/lrn.hpp"
#include "gpu/kernels/bodies/moments.hpp"
#include "gpu/kernels/bodies/pooling.hpp"
#include "gpu/kernels/kernel.hpp"
#include "gpu/kernels/launch/choose.hpp"

namespace troupe::gpu::launches {

/// Source's sums to `out`, over `scratch` where the rows are cut into chunks.
template <class Source, class Launcher>
void column_sums(const Source& source, std::int64_t rows, std::int64_t columns, float* scratch,
                 const std::array<float*, Source::kValues>& out, Launcher& launcher) {
  constexpr int kValues = Source::kValues;
  if (columns == 0) return;
  const auto chunks = RowChunks::of(rows, columns);
  using Tiles = ColumnTiles<Source::kLanes>;
  ColumnSumsBody<Source> first{source, chunks, Tiles(columns, Tiles::kMostX), {}};
  ChunkSource<kValues> partial{{}, columns};
  for (int value = 0; value < kValues; ++value) {
    partial.x[value] = scratch + value * chunks.chunks * columns;
    first.out[value] =
        chunks.chunks == 1 ? out[static_cast<std::size_t>(value)] : scratch + value * chunks.chunks * columns;
  }
  blocks(launcher, first);
  if (chunks.chunks == 1) return;
  ColumnSumsBody<ChunkSource<kValues>> second{
      partial, RowChunks{chunks.chunks, chunks.chunks, 1}, ColumnTiles<1>(columns, ChunkSource<kValues>::kMostX), {}};
  for (int value = 0; value < kValues; ++value) second.out[value] = out[static_cast<std::size_t>(value)];
  blocks(launcher, second);
}

template <class Launcher>
void launch(const ColumnSums& k, Launcher& launcher) {
  with_groups(
      k.type, k.columns,
      [&](auto tag, auto lanes) {
        using T = typename decltype(tag)::type;
        column_sums(TensorSource<T, decltype(lanes)::value>{of<T>(k.x), k.columns}, k.rows, k.columns, k.scratch,
                    {k.sums}, launcher);
      },
      k.x);
}

[[nodiscard]] inline Windows rows_of(const PoolForward& k) {
  return {k.kernel, k.stride, k.padding, k.input.height, k.output.height};
}
[[nodiscard]] inline Windows columns_of(const PoolForward& k) {
  return {k.kernel, k.stride, k.padding, k.input.width, k.output.width};
}
[[nodiscard]] inline EvenWindows rows_of(const AdaptivePoolForward& k) { return {k.input.height, k.output.height}; }
[[nodiscard]] inline EvenWindows columns_of(const AdaptivePoolForward& k) { return {k.input.width, k.output.width}; }

template <class T, int kLanes, class Pool, class Launcher>
void average_forward(const Pool& k, Launcher& launcher) {
  const Groups<kLanes> groups(k.output.pixels(), k.output.channels);
  elements(launcher,
           AveragePoolForwardBody<T, kLanes, decltype(rows_of(k))>{of<T>(k.x), to<T>(k.y), rows_of(k), columns_of(k),
                                                                   Images(k.input), Images(k.output), k.input.channels,
                                                                   groups},
           groups.indices());
}
/// x is dx, y is dy.
template <class T, int kLanes, class Pool, class Launcher>
void average_backward(const Pool& k, Launcher& launcher) {
  const Groups<kLanes> groups(k.input.pixels(), k.input.channels);
  elements(launcher,
           AveragePoolBackwardBody<T, kLanes, decltype(rows_of(k))>{const_cast<T*>(of<T>(k.x)), of<T>(k.y), rows_of(k),
                                                                    columns_of(k), Images(k.input), Images(k.output),
                                                                    k.input.channels, groups},
           groups.indices());
}

template <class Launcher>
void launch(const PoolForward& k, Launcher& launcher) {
  with_groups(
      k.type, k.input.channels,
      [&](auto tag, auto lanes) {
        using T = typename decltype(tag)::type;
        constexpr int kLanes = decltype(lanes)::value;
        if (k.kind == nn::PoolKind::average) return average_forward<T, kLanes>(k, launcher);
        const Groups<kLanes> groups(k.output.pixels(), k.output.channels);
        elements(launcher,
                 MaxPoolForwardBody<T, kLanes>{of<T>(k.x), to<T>(k.y), k.winners, rows_of(k), columns_of(k),
                                               Images(k.input), Images(k.output), k.input.channels, groups},
                 groups.indices());
      },
      k.x, k.y, k.winners);
}
template <class Launcher>
void launch(const PoolBackward& backward, Launcher& launcher) {
  const PoolForward& k = backward.forward;
  with_groups(
      k.type, k.input.channels,
      [&](auto tag, auto lanes) {
        using T = typename decltype(tag)::type;
        constexpr int kLanes = decltype(lanes)::value;
        if (k.kind == nn::PoolKind::average) return average_backward<T, kLanes>(k, launcher);
        const Groups<kLanes> groups(k.input.pixels(), k.input.channels);
        elements(
            launcher,
            MaxPoolBackwardBody<T, kLanes>{const_cast<T*>(of<T>(k.x)), of<T>(k.y), k.winners, rows_of(k), columns_of(k),
                                           Images(k.input), Images(k.output), k.input.channels, groups},
            groups.indices());
      },
      k.x, k.y, k.winners);
}
template <class Launcher>
void launch(const AdaptivePoolForward& k, Launcher& launcher) {
  with_groups(
      k.type, k.input.channels,
      [&](auto tag, auto lanes) { average_forward<typename decltype(tag)::type, decltype(lanes)::value>(k, launcher); },
      k.x, k.y);
}
template <class Launcher>
void launch(const AdaptivePoolBackward& backward, Launcher& launcher) {
  const AdaptivePoolForward& k = backward.forward;
  with_groups(
      k.type, k.input.channels,
      [&](auto tag, auto lanes) {
        average_backward<typename decltype(tag)::type, decltype(lanes)::value>(k, launcher);
      },
      k.x, k.y);
}

[[nodiscard]] inline LrnNumbers numbers_of(const nn::LrnLayer& layer, std::int64_t channels) {
  return {static_cast<float>(layer.k), static_cast<float>(layer.alpha / static_cast<double>(layer.size)),
          static_cast<float>(layer.beta), layer.size / 2, channels};
}
/// use(Number<half of the window>{}): sizes 3 and 5 are compiled in, 0 is any.
template <class Use>
void with_half(std::int64_t size, const Use& use) {
  if (size == 5) return use(Number<2>{});
  if (size == 3) return use(Number<1>{});
  use(Number<0>{});
}
template <class Launcher>
void launch(const LrnForward& k, Launcher& launcher) {
  with_groups(
      k.type, k.shape.channels,
      [&](auto tag, auto lanes) {
        using T = typename decltype(tag)::type;
        constexpr int kLanes = decltype(lanes)::value;
        const Groups<kLanes> groups(k.shape.pixels(), k.shape.channels);
        with_half(k.layer.size, [&](auto half) {
          elements(launcher,
                   LrnForwardBody<T, kLanes, decltype(half)::value>{of<T>(k.x), to<T>(k.y),
                                                                    numbers_of(k.layer, k.shape.channels), groups},
                   groups.indices());
        });
      },
      k.x, k.y);
}
template <class Launcher>
void launch(const LrnBackward& k, Launcher& launcher) {
  with_groups(
      k.type, k.shape.channels,
      [&](auto tag, auto lanes) {
        using T = typename decltype(tag)::type;
        constexpr int kLanes = decltype(lanes)::value;
        const Groups<kLanes> groups(k.shape.pixels(), k.shape.channels);
        with_half(k.layer.size, [&](auto half) {
          elements(launcher,
                   LrnBackwardBody<T, kLanes, decltype(half)::value>{of<T>(k.x), of<T>(k.dy), to<T>(k.dx),
                                                                     numbers_of(k.layer, k.shape.channels), groups},
                   groups.indices());
        });
      },
      k.x, k.dy, k.dx);
}

[[nodiscard]] inline float unbiased(std::int64_t pixels) {
  return static_cast<float>(static_cast<double>(pixels) / static_cast<double>(pixels - 1));
}
template <class Launcher>
void launch(const BatchStatistics& k, Launcher& launcher) {
  if (k.channels == 0) return;
  const MoveStatisticsBody running{nullptr, nullptr,    k.running_mean,    k.running_variance,
                                   nullptr, k.momentum, unbiased(k.pixels)};
  const ColumnTiles<1> tiles(k.channels, BatchMomentsBody::kMostX);
  const StatisticsResults results{k.epsilon,  k.mean,  k.inverse_deviation,
                                  k.variance, running, k.running_mean != nullptr};
  if (k.sum != nullptr) {
    with_type(k.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      blocks(launcher, ChannelSumsBody<T>{of<T>(k.x), k.sum, k.squares, k.pixels, tiles, results});
    });
    return;
  }
  const auto chunks = RowChunks::of(k.pixels, k.channels);
  float* const chunk_mean = k.scratch;
  float* const chunk_squares = k.scratch + chunks.chunks * k.channels;
  with_groups(
      k.type, k.channels,
      [&](auto tag, auto lanes) {
        using T = typename decltype(tag)::type;
        using Tiles = ColumnTiles<decltype(lanes)::value>;
        blocks(launcher, ChunkMomentsBody<T, decltype(lanes)::value>{
                             of<T>(k.x), chunks, Tiles(k.channels, Tiles::kMostX), chunk_mean, chunk_squares});
      },
      k.x);
  blocks(launcher, BatchMomentsBody{chunk_mean, chunk_squares, chunks, tiles, results});
}
template <class Launcher>
void launch(const MoveStatistics& k, Launcher& launcher) {
  elements(launcher,
           MoveStatisticsBody{k.mean, k.variance, k.running_mean, k.running_variance,
                              k.sums == nullptr ? nullptr : &k.sums->bad_label, k.momentum, unbiased(k.pixels)},
           k.channels);
}
template <class Launcher>
void launch(const BatchNormForward& k, Launcher& launcher) {
  with_groups(
      k.type, k.channels,
      [&](auto tag, auto lanes) {
        using T = typename decltype(tag)::type;
        constexpr int kLanes = decltype(lanes)::value;
        const StridedGroups<kLanes> groups(k.pixels, k.channels);
        elements(launcher,
                 BatchNormForwardBody<T, kLanes>{of<T>(k.x), to<T>(k.y), of<T>(k.addend), k.weight, k.bias, k.mean,
                                                 k.inverse_deviation, k.evaluation, k.relu, k.epsilon, groups},
                 groups.indices());
      },
      k.x, k.y, k.addend, k.weight, k.bias, k.mean, k.inverse_deviation);
}

/// use(std::integral_constant of the mask)
template <class Use>
void with_mask(const BatchNormGradients& k, const Use& use) {
  using enum NormMask;
  if (!k.relu) return use(std::integral_constant<NormMask, none>{});
  if (k.y != nullptr) return use(std::integral_constant<NormMask, output>{});
  use(std::integral_constant<NormMask, input>{});
}
/// use(As<T>{}, Number<lanes>{}, mask): `pointers` are what a call has besides those of the gradients.
template <class Use, class... Pointers>
void with_norm_groups(const BatchNormGradients& k, const Use& use, const Pointers*... pointers) {
  with_mask(k, [&](auto mask) {
    with_groups(
        k.type, k.channels, [&](auto tag, auto lanes) { use(tag, lanes, mask); }, k.x, k.y, k.dy, k.mean,
        k.inverse_deviation, k.weight, k.bias, pointers...);
  });
}
template <class T, int kLanes, NormMask kMask>
[[nodiscard]] NormalisedGradient<T, kLanes, kMask> gradient_of(const BatchNormGradients& k) {
  return {of<T>(k.x), of<T>(k.y), of<T>(k.dy), k.mean, k.inverse_deviation, k.weight, k.bias};
}
template <class Launcher>
void launch(const BatchNormGradients& k, Launcher& launcher) {
  with_norm_groups(k, [&](auto tag, auto lanes, auto mask) {
    using T = typename decltype(tag)::type;
    constexpr int kLanes = decltype(lanes)::value;
    constexpr NormMask kMask = decltype(mask)::value;
    column_sums(NormGradientSource<T, kLanes, kMask>{gradient_of<T, kLanes, kMask>(k), k.channels}, k.pixels,
                k.channels, k.scratch, {k.weight_gradient, k.bias_gradient}, launcher);
  });
}
template <class Launcher>
void launch(const BatchNormBackward& backward, Launcher& launcher) {
  const BatchNormGradients& k = backward.gradients;
  with_norm_groups(
      k,
      [&](auto tag, auto lanes, auto mask) {
        using T = typename decltype(tag)::type;
        constexpr int kLanes = decltype(lanes)::value;
        constexpr NormMask kMask = decltype(mask)::value;
        const StridedGroups<kLanes> groups(k.pixels, k.channels);
        elements(launcher,
                 BatchNormBackwardBody<T, kLanes, kMask>{
                     gradient_of<T, kLanes, kMask>(k), backward.weight, k.weight_gradient, k.bias_gradient,
                     to<T>(backward.dx), to<T>(backward.addend_gradient), static_cast<float>(k.pixels), groups},
                 groups.indices());
      },
      backward.weight, k.weight_gradient, k.bias_gradient, backward.dx, backward.addend_gradient);
}

}  // namespace troupe::gpu::launches
