#include "cpu/kernels/pooled_gradient.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "core/buffer.hpp"

namespace troupe::cpu {
namespace {

constexpr std::int64_t kLanes = 16;
constexpr std::int64_t kWindow = 2;  // of the pooling, and its stride
constexpr std::size_t kPlaces = kWindow * kWindow;
constexpr std::int64_t kL1Floats = 9216;    // 36 of 48 KiB: the data that the inner loops read repeatedly
constexpr std::int64_t kImagesAtATime = 4;  // of dx, while a block of weights is in the L1 cache

/// Sizes for both gradients. A plane is the part of an image in one accumulation: 16 channels, or all if there are few.
struct Sizes {
  explicit Sizes(const ConvolutionShape& shape)
      : plane_channels(shape.channels % kLanes == 0 ? kLanes : shape.channels),
        planes(shape.channels / plane_channels),
        plane(shape.height * shape.width * plane_channels),
        row(shape.width * plane_channels),
        vectors((shape.kernel * plane_channels + kLanes - 1) / kLanes),
        filter(shape.kernel * vectors * kLanes),
        tail(shape.kernel * plane_channels - (vectors - 1) * kLanes),
        output_blocks(shape.outputs / kLanes),
        pooled_height(shape.out_height / kWindow),
        pooled_width(shape.out_width / kWindow),
        positions(pooled_height * pooled_width),
        images(std::clamp<std::int64_t>(kL1Floats / plane, 1, shape.batch)) {}

  std::int64_t plane_channels;
  std::int64_t planes;   // of an image
  std::int64_t plane;    // floats
  std::int64_t row;      // floats of a plane's row
  std::int64_t vectors;  // of a filter's row
  std::int64_t filter;   // floats of one output's weights for one plane
  std::int64_t tail;     // floats of a filter's row in its last vector
  std::int64_t output_blocks;
  std::int64_t pooled_height;
  std::int64_t pooled_width;
  std::int64_t positions;
  std::int64_t images;  // images whose planes fit the L1 cache together

  /// The offset of the window at `position` in a plane; places() are the offsets of its elements from there.
  [[nodiscard]] std::int64_t corner(std::int64_t position) const noexcept {
    return (position / pooled_width * row + position % pooled_width * plane_channels) * kWindow;
  }
  [[nodiscard]] std::array<std::int64_t, kPlaces> places() const noexcept {
    return {0, plane_channels, row, row + plane_channels};
  }
};

/// Pooled gradients in the given layout, [n, block of outputs, position, 16].
struct Pooled {
  const float* gradients;
  const float* outputs;  // null: no relu
  const std::uint8_t* winners;

  [[nodiscard]] PooledBlock block(std::int64_t index) const noexcept {
    const std::int64_t at = index * kLanes;
    return {gradients + at, outputs == nullptr ? nullptr : outputs + at, winners + at};
  }
};

/// Lists the winners of 16 outputs in images [first, last) by output, with offsets into x; adds the gradients to `sums`.
void list_by_output(const Sizes& sizes, const Pooled& pooled, std::int64_t block, std::int64_t first, std::int64_t last,
                    Winner* lists, std::int64_t* counts, float* sums) {
  const std::int64_t capacity = sizes.images * sizes.positions;
  Winner* next[kLanes];
  for (std::int64_t o = 0; o < kLanes; ++o) next[o] = lists + o * capacity;
  const auto places = sizes.places();
  for (std::int64_t n = first; n < last; ++n) {
    const std::int64_t at = (n * sizes.output_blocks + block) * sizes.positions;
    for (std::int64_t position = 0; position < sizes.positions; ++position) {
      const std::int64_t corner = n * sizes.planes * sizes.plane + sizes.corner(position);
      std::int32_t offsets[kPlaces];
      for (std::size_t place = 0; place < kPlaces; ++place)
        offsets[place] = static_cast<std::int32_t>(corner + places[place]);
      append_winners(pooled.block(at + position), offsets, next, sums);
    }
  }
  for (std::int64_t o = 0; o < kLanes; ++o) counts[o] = next[o] - (lists + o * capacity);
}

constexpr std::int64_t kSortedFloats = sizeof(SortedWinners) / sizeof(float);

/// The share of a thread in [0, count).
struct Share {
  explicit Share(std::int64_t count)
      : first(count * omp_get_thread_num() / omp_get_num_threads()),
        last(count * (omp_get_thread_num() + 1) / omp_get_num_threads()) {}
  std::int64_t first;
  std::int64_t last;
};

}  // namespace

bool pooled_gradient_fits(const ConvolutionShape& shape, const nn::PoolLayer& pool, bool images) noexcept {
  const bool whole = shape.out_height % kWindow == 0 && shape.out_width % kWindow == 0;
  const bool window = pool.kind == nn::PoolKind::max && pool.kernel == kWindow && pool.stride == kWindow &&
                      pool.padding == 0 && (whole || !pool.ceil);
  const bool kernel = (shape.kernel == 3 || shape.kernel == 5) && shape.stride == 1 && shape.padding == 0;
  const bool channels = shape.outputs % kLanes == 0 &&
                        (shape.channels % kLanes == 0 || (images && shape.channels * shape.kernel <= kLanes));
  const std::int64_t floats = std::max(shape.batch * shape.channels * shape.height * shape.width,
                                       shape.outputs * shape.channels * shape.kernel * kLanes);
  return __builtin_cpu_supports("avx512f") != 0 && window && kernel && channels &&
         floats <= std::numeric_limits<std::int32_t>::max();
}

dnnl::memory::desc pooled_gradient_blocked(const dnnl::memory::dims& dims, dnnl::memory::data_type type) {
  return {dims, type, dnnl::memory::format_tag::aBcd16b};
}

dnnl::memory::desc pooled_gradient_source(const ConvolutionShape& shape) {
  const dnnl::memory::dims dims{shape.batch, shape.channels, shape.height, shape.width};
  if (shape.channels % kLanes == 0) return pooled_gradient_blocked(dims, dnnl::memory::data_type::f32);
  return {dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::nhwc};
}

dnnl::memory::desc pooled_gradient_weights(const ConvolutionShape& shape) {
  const dnnl::memory::dims dims{shape.outputs, shape.channels, shape.kernel, shape.kernel};
  if (shape.channels % kLanes == 0) return pooled_gradient_blocked(dims, dnnl::memory::data_type::f32);
  return {dims, dnnl::memory::data_type::f32, dnnl::memory::dims{shape.kernel * kLanes, 1, kLanes, shape.channels}};
}

std::size_t pooled_weight_gradient_scratch(const ConvolutionShape& shape) noexcept {
  const Sizes sizes(shape);
  const std::int64_t winners = shape.outputs * sizes.images * sizes.positions;
  return static_cast<std::size_t>(2 * (winners + shape.outputs));
}

std::size_t pooled_data_gradient_scratch(const ConvolutionShape& shape, int threads) noexcept {
  const Sizes sizes(shape);
  return static_cast<std::size_t>(threads * kImagesAtATime * sizes.output_blocks * sizes.positions * kSortedFloats);
}

void pooled_weight_gradient(const KernelCall& call, const StepContext& /*context*/) {
  const Sizes sizes(call.convolution);
  const Pooled pooled{call.data[1], call.data[2], reinterpret_cast<const std::uint8_t*>(call.data[3])};
  const float* x = call.data[0];
  float* dw = call.data[4];
  const std::int64_t outputs = call.convolution.outputs;
  const std::int64_t capacity = sizes.images * sizes.positions;
  auto* lists = reinterpret_cast<Winner*>(call.data[6]);
  auto* counts = reinterpret_cast<std::int64_t*>(lists + outputs * capacity);
  const Accumulate accumulate = accumulate_winners(call.convolution.kernel, sizes.vectors);
#pragma omp parallel
  {
    const Share blocks(sizes.output_blocks);
    float* first = dw + blocks.first * kLanes * sizes.planes * sizes.filter;
    const std::int64_t mine = (blocks.last - blocks.first) * kLanes;
    std::memset(first, 0, static_cast<std::size_t>(mine * sizes.planes * sizes.filter) * sizeof(float));
    if (call.data[5] != nullptr) std::fill_n(call.data[5] + blocks.first * kLanes, mine, 0.0f);
    for (std::int64_t image = 0; image < call.convolution.batch; image += sizes.images) {
      const std::int64_t last_image = std::min(image + sizes.images, call.convolution.batch);
      for (std::int64_t block = blocks.first; block < blocks.last; ++block) {
        float unused[kLanes] = {};
        float* sums = call.data[5] == nullptr ? unused : call.data[5] + block * kLanes;
        list_by_output(sizes, pooled, block, image, last_image, lists + block * kLanes * capacity,
                       counts + block * kLanes, sums);
      }
      for (std::int64_t plane = 0; plane < sizes.planes; ++plane)
        for (std::int64_t o = blocks.first * kLanes; o < blocks.last * kLanes; ++o)
          accumulate({dw + (o * sizes.planes + plane) * sizes.filter, sizes.vectors * kLanes, x + plane * sizes.plane,
                      sizes.row, lists + o * capacity, counts[o], sizes.tail});
    }
  }
}

void pooled_data_gradient(const KernelCall& call, const StepContext& /*context*/) {
  const Sizes sizes(call.convolution);
  const Pooled pooled{call.data[0], call.data[1], reinterpret_cast<const std::uint8_t*>(call.data[2])};
  const float* w = call.data[3];
  float* dx = call.data[4];
  const auto places = sizes.places();
  const std::int64_t lists_each = kImagesAtATime * sizes.output_blocks * sizes.positions;
  const Accumulate accumulate = accumulate_winners(call.convolution.kernel, sizes.vectors);
#pragma omp parallel
  {
    const Share images(call.convolution.batch);
    auto* lists = reinterpret_cast<SortedWinners*>(call.data[5]) + omp_get_thread_num() * lists_each;
    for (std::int64_t image = images.first; image < images.last; image += kImagesAtATime) {
      const std::int64_t count = std::min(kImagesAtATime, images.last - image);
      const std::int64_t first = image * sizes.output_blocks * sizes.positions;
      for (std::int64_t i = 0; i < count * sizes.output_blocks * sizes.positions; ++i)
        sort_winners(pooled.block(first + i), static_cast<std::int32_t>(sizes.planes * sizes.filter), lists[i]);
      float* planes = dx + image * sizes.planes * sizes.plane;
      std::memset(planes, 0, static_cast<std::size_t>(count * sizes.planes * sizes.plane) * sizeof(float));
      for (std::int64_t plane = 0; plane < sizes.planes; ++plane)
        for (std::int64_t block = 0; block < sizes.output_blocks; ++block)
          for (std::int64_t n = 0; n < count; ++n) {
            const SortedWinners* sorted = lists + (n * sizes.output_blocks + block) * sizes.positions;
            for (std::int64_t position = 0; position < sizes.positions; ++position, ++sorted) {
              const Winner* winners = sorted->winners;
              const std::int64_t corner = (n * sizes.planes + plane) * sizes.plane + sizes.corner(position);
              for (std::size_t place = 0; place < kPlaces; winners += sorted->counts[place++])
                if (sorted->counts[place] > 0)
                  accumulate({planes + corner + places[place], sizes.row,
                              w + (block * kLanes * sizes.planes + plane) * sizes.filter, sizes.vectors * kLanes,
                              winners, sorted->counts[place], kLanes});
            }
          }
    }
  }
}

}  // namespace troupe::cpu
