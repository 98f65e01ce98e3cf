#include "tests/gpu/kernels/testing.hpp"

#include <algorithm>
#include <cmath>

#include "core/half.hpp"
#include "gpu/device/host_launch.hpp"

namespace troupe::gpu::testing {
namespace {

constexpr std::size_t kAligned = 256;
constexpr std::uint8_t kPattern = 0xC3;

core::HalfKind half_of(Type type) { return type == Type::bf16 ? core::HalfKind::bf16 : core::HalfKind::fp16; }

double through(Type type, double value) {
  const auto wide = static_cast<float>(value);
  return type == Type::fp32 ? wide : core::from_half(core::to_half(wide, half_of(type)), half_of(type));
}

}  // namespace

double rounding(Type type) {
  switch (type) {
    case Type::fp32: return 0x1p-24;
    case Type::bf16: return 0x1p-9;
    case Type::fp16: return 0x1p-12;
  }
  return 0;
}

Tensor::Tensor(Type type, std::int64_t count, std::int64_t shift)
    : type_(type),
      count_(count),
      bytes_(static_cast<std::size_t>(count + shift) * bytes_of(type) + 2 * kAligned, kPattern) {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
  begin_ = (kAligned - address % kAligned) % kAligned + static_cast<std::size_t>(shift) * bytes_of(type);
}

Tensor::Tensor(Type type, const std::vector<double>& values, std::int64_t shift)
    : Tensor(type, static_cast<std::int64_t>(values.size()), shift) {
  for (std::size_t i = 0; i < values.size(); ++i) set(static_cast<std::int64_t>(i), values[i]);
}

double Tensor::operator[](std::int64_t index) const {
  const std::uint8_t* at = bytes_.data() + begin_ + static_cast<std::size_t>(index) * bytes_of(type_);
  if (type_ == Type::fp32) {
    float value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint16_t half = 0;
  std::memcpy(&half, at, sizeof half);
  return core::from_half(half, half_of(type_));
}

void Tensor::set(std::int64_t index, double value) {
  std::uint8_t* at = bytes_.data() + begin_ + static_cast<std::size_t>(index) * bytes_of(type_);
  const auto wide = static_cast<float>(value);
  if (type_ == Type::fp32) {
    std::memcpy(at, &wide, sizeof wide);
    return;
  }
  const std::uint16_t half = core::to_half(wide, half_of(type_));
  std::memcpy(at, &half, sizeof half);
}

std::vector<double> Tensor::values() const {
  std::vector<double> result;
  for (std::int64_t i = 0; i < count_; ++i) result.push_back((*this)[i]);
  return result;
}

std::vector<std::uint8_t> Tensor::bits() const {
  const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(begin_);
  return {begin, begin + count_ * static_cast<std::ptrdiff_t>(bytes_of(type_))};
}

bool Tensor::is_intact() const {
  const auto end = begin_ + static_cast<std::size_t>(count_) * bytes_of(type_);
  const auto untouched = [](std::uint8_t byte) { return byte == kPattern; };
  return std::all_of(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_), untouched) &&
         std::all_of(bytes_.begin() + static_cast<std::ptrdiff_t>(end), bytes_.end(), untouched);
}

std::vector<double> random_values(Type type, std::int64_t count, std::uint64_t stream) {
  core::Random random(7, core::Purpose::test, stream);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = through(type, random.uniform(-2, 2));
  return values;
}

void run(const Kernel& kernel) { host::execute(kernel, host::ThreadOrder::ascending); }

void expect_near(const Tensor& found, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(found.size(), static_cast<std::int64_t>(expected.size()));
  EXPECT_TRUE(found.is_intact()) << "something was written outside the tensor";
  for (std::int64_t i = 0; i < found.size(); ++i) {
    const double value = expected[static_cast<std::size_t>(i)];
    ASSERT_NEAR(found[i], value, tolerance * std::max(1.0, std::abs(value)))
        << "element " << i << " of " << found.size() << ", " << name_of(found.type());
  }
}

std::vector<double> to_nhwc(const TensorShape& s, const std::vector<double>& planes) {
  std::vector<double> result(planes.size());
  std::size_t from = 0;
  for (std::int64_t n = 0; n < s.batch; ++n)
    for (std::int64_t c = 0; c < s.channels; ++c)
      for (std::int64_t h = 0; h < s.height; ++h)
        for (std::int64_t w = 0; w < s.width; ++w)
          result[static_cast<std::size_t>(nhwc(s, n, c, h, w))] = planes[from++];
  return result;
}

std::vector<double> to_planes(const TensorShape& s, const std::vector<double>& images) {
  std::vector<double> result;
  for (std::int64_t n = 0; n < s.batch; ++n)
    for (std::int64_t c = 0; c < s.channels; ++c)
      for (std::int64_t h = 0; h < s.height; ++h)
        for (std::int64_t w = 0; w < s.width; ++w)
          result.push_back(images[static_cast<std::size_t>(nhwc(s, n, c, h, w))]);
  return result;
}

}  // namespace troupe::gpu::testing
