#include <algorithm>
#include <utility>

#include "gpu/device/host_products.hpp"
#include "gpu/device/host_tiles.hpp"

namespace troupe::gpu::host {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

/// One group of a convolution.
struct Group {
  const ConvolutionShape& shape;
  std::int64_t number;
  [[nodiscard]] std::int64_t inputs() const { return shape.input.channels / shape.groups; }
  [[nodiscard]] std::int64_t outputs() const { return shape.output.channels / shape.groups; }
  [[nodiscard]] std::int64_t taps() const { return shape.kernel * shape.kernel; }
  [[nodiscard]] std::int64_t first_input() const { return number * inputs(); }
  [[nodiscard]] std::int64_t first_output() const { return number * outputs(); }
  /// Of w [outputs, kernel, kernel, inputs of a group]; `output` counts in the group.
  [[nodiscard]] std::int64_t weight(std::int64_t output, std::int64_t tap, std::int64_t input) const {
    return ((first_output() + output) * taps() + tap) * inputs() + input;
  }
};

/// Forward and backward data are one loop: each pixel of `to` sums, over the taps, the products of one pixel of `from` with that tap's matrix.
struct Gather {
  const TensorShape& to;
  const TensorShape& from;
  std::int64_t depth;     // channels of `from` in a group
  std::int64_t first;     // of them
  std::int64_t step = 1;  // pixels of a tile are so many columns apart: then they have the same taps
};

/// The pixel of `from` that pixel (row, column) of `to` meets at tap (r, s); −1: none.
using Meet = std::int64_t (*)(const ConvolutionShape& shape, std::int64_t place, std::int64_t tap);

std::int64_t meet_forward(const ConvolutionShape& shape, std::int64_t place, std::int64_t tap) {
  return place * shape.stride + tap - shape.padding;
}
std::int64_t meet_backward(const ConvolutionShape& shape, std::int64_t place, std::int64_t tap) {
  const std::int64_t reach = place + shape.padding - tap;
  return reach >= 0 && reach % shape.stride == 0 ? reach / shape.stride : -1;
}

/// Up to kTileRows pixels of one row of `to`.
struct PixelTile {
  std::int64_t sample;
  std::int64_t row;
  std::int64_t column;
  std::int64_t pixels;
};

void sum_tile(const ConvolutionShape& shape, const Gather& gather, Meet meet, const PixelTile& tile, const float* from,
              const float* panel, Tile& sums) {
  const TileLoops& loops = tile_loops();
  for (std::int64_t r = 0; r < shape.kernel; ++r) {
    const std::int64_t row = meet(shape, tile.row, r);
    if (row < 0 || row >= gather.from.height) continue;
    for (std::int64_t s = 0; s < shape.kernel; ++s) {
      const float* rows[kTileRows];
      std::int64_t found = 0;
      for (std::int64_t p = 0; p < tile.pixels; ++p) {
        const std::int64_t column = meet(shape, tile.column + p * gather.step, s);
        const bool exists = column >= 0 && column < gather.from.width;
        const std::int64_t pixel = (tile.sample * gather.from.height + row) * gather.from.width + column;
        rows[p] = exists ? from + pixel * gather.from.channels + gather.first : nullptr;
        found += exists ? 1 : 0;
      }
      const float* const part = panel + (r * shape.kernel + s) * gather.depth * kTileColumns;
      if (found == kTileRows) {
        loops.rows(rows, gather.depth, part, sums);
        continue;
      }
      for (std::int64_t p = 0; p < tile.pixels; ++p)
        if (rows[p] != nullptr) loops.row(rows[p], gather.depth, part, sums[p]);
    }
  }
}

/// Calls finish(offset of the pixel's first element in `to`, its sums) for each pixel of `to`.
template <class Finish>
void for_each_tile(const ConvolutionShape& shape, const Gather& gather, Meet meet, const float* from,
                   const float* panel, const Finish& finish) {
  const TensorShape& to = gather.to;
  for (std::int64_t line = 0; line < to.batch * to.height; ++line)
    for (std::int64_t residue = 0; residue < std::min(gather.step, to.width); ++residue) {
      const std::int64_t pixels = (to.width - residue + gather.step - 1) / gather.step;
      for (std::int64_t first = 0; first < pixels; first += kTileRows) {
        const PixelTile tile{line / to.height, line % to.height, residue + first * gather.step,
                             std::min<std::int64_t>(kTileRows, pixels - first)};
        Tile sums{};
        sum_tile(shape, gather, meet, tile, from, panel, sums);
        for (std::int64_t p = 0; p < tile.pixels; ++p)
          finish((line * to.width + tile.column + p * gather.step) * to.channels, sums[p]);
      }
    }
}

void forward(const Convolution& c, const Group& group, const float* x, const ConvolutionOperands& operands) {
  const ConvolutionShape& shape = c.shape;
  std::vector<float> panel(static_cast<std::size_t>(group.taps() * group.inputs() * kTileColumns));
  for (std::int64_t first = 0; first < group.outputs(); first += kTileColumns) {
    const std::int64_t columns = std::min<std::int64_t>(kTileColumns, group.outputs() - first);
    std::fill(panel.begin(), panel.end(), 0.0F);
    for (std::int64_t k = 0; k < columns; ++k)
      for (std::int64_t d = 0; d < group.taps() * group.inputs(); ++d)
        panel[static_cast<std::size_t>(d * kTileColumns + k)] =
            element(operands.w, c.type, group.weight(first + k, 0, d), c.math);
    const Gather gather{shape.output, shape.input, group.inputs(), group.first_input()};
    for_each_tile(shape, gather, meet_forward, x, panel.data(), [&](std::int64_t pixel, const float* sums) {
      for (std::int64_t k = 0; k < columns; ++k) {
        const std::int64_t channel = group.first_output() + first + k;
        float sum = sums[k];
        if (c.bias) sum += element(operands.bias, c.type, channel, Math::fp32);
        if (c.addend) sum += element(operands.addend, c.type, pixel + channel, Math::fp32);
        set_element(operands.y, c.type, pixel + channel, activated(sum, c.activation));
      }
    });
  }
}

/// Of y as it is stored. Each sample is summed on its own first, so that few additions meet a large sum.
void add_statistics(const Convolution& c, const ConvolutionOperands& operands) {
  const TensorShape& shape = c.shape.output;
  const std::int64_t pixels = shape.height * shape.width;
  for (std::int64_t channel = 0; channel < shape.channels; ++channel) {
    float sum = 0, squares = 0;
    for (std::int64_t sample = 0; sample < shape.batch; ++sample) {
      float own_sum = 0, own_squares = 0;
      for (std::int64_t pixel = sample * pixels; pixel < (sample + 1) * pixels; ++pixel) {
        const float y = element(operands.y, c.type, pixel * shape.channels + channel, Math::fp32);
        own_sum += y;
        own_squares += y * y;
      }
      sum += own_sum;
      squares += own_squares;
    }
    operands.sum[channel] = sum;
    operands.squares[channel] = squares;
  }
}

void backward_data(const Convolution& c, const Group& group, const float* dy, const ConvolutionOperands& operands) {
  const ConvolutionShape& shape = c.shape;
  std::vector<float> panel(static_cast<std::size_t>(group.taps() * group.outputs() * kTileColumns));
  for (std::int64_t first = 0; first < group.inputs(); first += kTileColumns) {
    const std::int64_t columns = std::min<std::int64_t>(kTileColumns, group.inputs() - first);
    std::fill(panel.begin(), panel.end(), 0.0F);
    for (std::int64_t tap = 0; tap < group.taps(); ++tap)
      for (std::int64_t k = 0; k < group.outputs(); ++k)
        for (std::int64_t i = 0; i < columns; ++i)
          panel[static_cast<std::size_t>((tap * group.outputs() + k) * kTileColumns + i)] =
              element(operands.w, c.type, group.weight(k, tap, first + i), c.math);
    const Gather gather{shape.input, shape.output, group.outputs(), group.first_output(), shape.stride};
    for_each_tile(shape, gather, meet_backward, dy, panel.data(), [&](std::int64_t pixel, const float* sums) {
      for (std::int64_t i = 0; i < columns; ++i)
        set_element(operands.x, c.type, pixel + group.first_input() + first + i, sums[i]);
    });
  }
}

/// A tensor as float32 [pixels, channels of a group], with room behind each pixel for whole tiles.
struct Padded {
  std::vector<float> values;
  std::int64_t width;
  Padded(const TensorShape& shape, const std::vector<float>& all, std::int64_t first, std::int64_t channels)
      : width(round_up(channels, kTileColumns) + kTileRows) {
    values.resize(static_cast<std::size_t>(shape.pixels() * width));
    for (std::int64_t pixel = 0; pixel < shape.pixels(); ++pixel)
      std::copy_n(all.begin() + pixel * shape.channels + first, channels, values.begin() + pixel * width);
  }
};

/// The pixels of y and x that meet at a tap, in order.
std::vector<std::pair<std::int64_t, std::int64_t>> meetings(const ConvolutionShape& shape, std::int64_t r,
                                                            std::int64_t s) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::int64_t line = 0; line < shape.output.batch * shape.output.height; ++line) {
    const std::int64_t row = meet_forward(shape, line % shape.output.height, r);
    if (row < 0 || row >= shape.input.height) continue;
    for (std::int64_t q = 0; q < shape.output.width; ++q) {
      const std::int64_t column = meet_forward(shape, q, s);
      if (column < 0 || column >= shape.input.width) continue;
      pairs.emplace_back(line * shape.output.width + q,
                         (line / shape.output.height * shape.input.height + row) * shape.input.width + column);
    }
  }
  return pairs;
}

/// The longer side of each tap's matrix [outputs, inputs] goes along the vectors.
void backward_weights(const Convolution& c, const Group& group, const std::vector<float>& x,
                      const std::vector<float>& dy, const ConvolutionOperands& operands) {
  const ConvolutionShape& shape = c.shape;
  const Padded inputs(shape.input, x, group.first_input(), group.inputs());
  const Padded outputs(shape.output, dy, group.first_output(), group.outputs());
  const bool by_outputs = group.inputs() < kTileColumns && group.outputs() > group.inputs();
  const Padded& a = by_outputs ? inputs : outputs;
  const Padded& b = by_outputs ? outputs : inputs;
  const std::int64_t rows = by_outputs ? group.inputs() : group.outputs();
  const std::int64_t columns = by_outputs ? group.outputs() : group.inputs();
  for (std::int64_t tap = 0; tap < group.taps(); ++tap) {
    auto pairs = meetings(shape, tap / shape.kernel, tap % shape.kernel);
    for (auto& [of_y, of_x] : pairs)
      std::tie(of_y, of_x) =
          by_outputs ? std::pair(of_x * a.width, of_y * b.width) : std::pair(of_y * a.width, of_x * b.width);
    for (std::int64_t top = 0; top < rows; top += kTileRows)
      for (std::int64_t first = 0; first < columns; first += kTileColumns) {
        Tile sums{};
        tile_loops().outer(a.values.data() + top, b.values.data() + first, pairs, sums);
        for (std::int64_t r = 0; r < std::min<std::int64_t>(kTileRows, rows - top); ++r)
          for (std::int64_t k = 0; k < std::min<std::int64_t>(kTileColumns, columns - first); ++k) {
            const std::int64_t output = by_outputs ? first + k : top + r;
            const std::int64_t input = by_outputs ? top + r : first + k;
            set_element(operands.w, c.weight_gradient, group.weight(output, tap, input), sums[r][k]);
          }
      }
  }
}

}  // namespace

void convolve(const Convolution& c, const ConvolutionOperands& operands) {
  std::vector<float> x;
  std::vector<float> y;
  if (c.direction != Direction::backward_data) x = elements(operands.x, c.type, c.shape.input.size(), c.math);
  if (c.direction != Direction::forward) y = elements(operands.y, c.type, c.shape.output.size(), c.math);
  for (std::int64_t number = 0; number < c.shape.groups; ++number) {
    const Group group{c.shape, number};
    switch (c.direction) {
      case Direction::forward: forward(c, group, x.data(), operands); break;
      case Direction::backward_data: backward_data(c, group, y.data(), operands); break;
      case Direction::backward_weights: backward_weights(c, group, x, y, operands); break;
    }
  }
  if (c.statistics) add_statistics(c, operands);
}

}  // namespace troupe::gpu::host
