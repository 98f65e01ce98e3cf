// Batches on their way to a device: the numbers that arrive, and that no copy is early or late. HostDevice executes everything later, in random
// orders that streams and events allow.
#include "gpu/input_buffers.hpp"

#include <cstring>

#include <gtest/gtest.h>

#include "gpu/device/faulty_device.hpp"
#include "gpu/device/host_device.hpp"
#include "tests/gpu/byte_batches.hpp"
#include "tests/gpu/model.hpp"

namespace troupe::gpu::testing {
namespace {

constexpr std::int64_t kSamples = 4;

/// What a compiled step has for its images and labels, and nothing else.
class InputOfAStep {
 public:
  InputOfAStep(Device& device, const data::BatchBuilder& builder, Type type, bool is_plain, bool takes_bytes = true)
      : preparation_(preparation_of(builder)),
        stream(device.make_stream().value()),
        staging_(Staging::make(device, 256).value()) {
    const auto shape = builder.image_shape();
    graph_ = nn::Graph::sequential("images", {shape.channels, shape.height, shape.width}, {nn::LinearLayer{10, {}}},
                                   nn::Loss::softmax_cross_entropy)
                 .value();
    nn::CompileOptions options{.batch = kSamples};
    if (takes_bytes) options.bytes = &preparation_;
    const std::int64_t channels = is_plain ? shape.channels : 8;
    const TensorShape there{kSamples, shape.height, shape.width, channels};
    const auto floats = core::align_floats(static_cast<std::size_t>(there.size()));
    images_ = core::Buffer::allocate(device.memory(), floats).value();
    input_ = core::Buffer::allocate(device.memory(), 32).value();
    compiled_.program.images = {images_.data(), there, type, is_plain};
    compiled_.program.input = reinterpret_cast<std::byte*>(input_.data());
    compiled_.inputs = InputBuffers::allocate(device, *graph_, options).value();
    bytes = static_cast<std::size_t>(there.size()) * bytes_of(type);
    buffers = InputBuffers::make(device, *staging_, compiled_, *graph_, options).value();
  }
  InputOfAStep(const InputOfAStep&) = delete;
  InputOfAStep& operator=(const InputOfAStep&) = delete;
  ~InputOfAStep() { EXPECT_TRUE(stream->synchronize()); }  // before the memory that its work names goes

  /// The images that a step would read.
  [[nodiscard]] std::vector<std::byte> brought(const nn::Batch& batch) {
    buffers->check(batch, kSamples);
    EXPECT_TRUE(buffers->begin(*stream, batch, kSamples));
    EXPECT_TRUE(stream->synchronize());
    buffers->ended();
    const auto* first = reinterpret_cast<const std::byte*>(images_.data());
    return {first, first + bytes};
  }
  [[nodiscard]] const float* images() const { return images_.data(); }
  [[nodiscard]] const std::byte* input() const { return reinterpret_cast<const std::byte*>(input_.data()); }
  [[nodiscard]] Compiled& compiled() { return compiled_; }

 private:
  nn::BytePreparation preparation_;

 public:
  std::unique_ptr<Stream> stream;
  std::size_t bytes = 0;  // of the images of a step

 private:
  std::unique_ptr<Staging> staging_;
  std::optional<nn::Graph> graph_;
  Compiled compiled_;
  core::Buffer images_;
  core::Buffer input_;

 public:
  std::unique_ptr<InputBuffers> buffers;
};

data::Lease lease_of(std::uint64_t index, std::uint32_t epoch, std::int64_t first) {
  return {index, epoch, first, kSamples, 0};
}

/// Every sample of two epochs, by (seed, epoch, sample): the loader's floats, and the bytes that the device prepares.
TEST(BytesOfABatch, GiveEveryBitOfTheLoadersFloats) {
  for (const auto& [source, crop] : {std::pair{data::ImageShape{3, 9, 7}, std::int64_t{6}},
                                     {data::ImageShape{1, 8, 8}, std::int64_t{0}},
                                     {data::ImageShape{5, 1, 1}, std::int64_t{0}},
                                     {data::ImageShape{3, 4, 5}, std::int64_t{0}}}) {
    const auto builder = numbered_batches(source, crop);
    for (const auto& [type, is_plain] : {std::pair{Type::fp32, true}, {Type::fp32, false}, {Type::bf16, false}}) {
      HostDevice device;
      InputOfAStep step(device, builder, type, is_plain);
      const auto pixels = static_cast<std::size_t>(builder.image_shape().height * builder.image_shape().width);
      const auto channels = static_cast<std::size_t>(builder.image_shape().channels);
      for (std::uint32_t epoch = 0; epoch < 2; ++epoch)
        for (std::int64_t first = 0; first < builder.size(); first += kSamples) {
          LeasedBatch batch(builder, lease_of(1, epoch, first), nullptr);
          const auto from_floats = step.brought(batch.floats());
          ASSERT_EQ(step.brought(batch.bytes()), from_floats) << "epoch " << epoch << ", sample " << first;
          if (type != Type::fp32) continue;
          for (std::size_t i = 0; i < batch.images().size(); ++i) {
            const std::size_t n = i / (channels * pixels), c = i / pixels % channels, p = i % pixels;
            ASSERT_EQ(step.images()[is_plain ? i : (n * pixels + p) * 8 + c], batch.images()[i]) << i;
          }
        }
    }
  }
}

TEST(InputBuffers, EachStepReadsItsBatchInEveryOrderOfStreams) {
  const auto builder = numbered_batches({1, 4, 4}, 0);
  constexpr std::size_t kSteps = 8;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    HostDevice device({.schedule_seed = seed});
    InputOfAStep step(device, builder, Type::fp32, true);
    std::vector<std::unique_ptr<LeasedBatch>> batches;
    std::vector<core::Buffer> seen, inputs;
    for (std::size_t i = 0; i < kSteps; ++i) {
      batches.push_back(
          std::make_unique<LeasedBatch>(builder, lease_of(i, 0, static_cast<std::int64_t>(3 * i)), &device.pinned()));
      seen.push_back(core::Buffer::allocate(device.pinned(), step.bytes / sizeof(float)).value());
      inputs.push_back(core::Buffer::allocate(device.pinned(), 20).value());
    }
    step.buffers->prefetch(batches[0]->bytes());
    step.buffers->prefetch(batches[1]->bytes());
    for (std::size_t i = 0; i < kSteps; ++i) {
      ASSERT_TRUE(step.buffers->begin(*step.stream, batches[i]->bytes(), kSamples));
      ASSERT_TRUE(step.stream->copy_to_host(seen[i].data(), step.images(), step.bytes));
      ASSERT_TRUE(step.stream->copy_to_host(inputs[i].data(), step.input(), kLabelsOffset + kSamples * 4));
      if (i + 2 < kSteps) step.buffers->prefetch(batches[i + 2]->bytes());  // where this step's batch was
    }
    ASSERT_TRUE(step.stream->synchronize());
    step.buffers->ended();
    for (std::size_t i = 0; i < kSteps; ++i) {
      ASSERT_TRUE(std::ranges::equal(seen[i].view(), batches[i]->images())) << "schedule " << seed << ", step " << i;
      StepInput input;
      std::memcpy(static_cast<void*>(&input), inputs[i].data(), sizeof(input));
      EXPECT_EQ(input.key.lease, i);
      EXPECT_EQ(input.samples, kSamples);
      EXPECT_EQ(std::memcmp(inputs[i].data() + kLabelsOffset / 4, batches[i]->bytes().labels.data(), kSamples * 4), 0)
          << "schedule " << seed << ", step " << i;
    }
  }
}

enum class Left : std::uint8_t { discarded, before_it_began, after_it_began };

/// Also one that an error left.
TEST(InputBuffers, NothingReadsABatchThatWasLeft) {
  const auto builder = numbered_batches({1, 4, 4}, 0);
  for (const Left left : {Left::discarded, Left::before_it_began, Left::after_it_began})
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      HostDevice device({.schedule_seed = seed});
      InputOfAStep step(device, builder, Type::fp32, true, false);
      LeasedBatch batch(builder, lease_of(1, 0, 0), &device.pinned());
      const std::vector<float> before(batch.images().begin(), batch.images().end());
      step.buffers->prefetch(batch.floats());
      if (left == Left::after_it_began) {
        ASSERT_TRUE(step.buffers->begin(*step.stream, batch.floats(), kSamples));
      }
      left == Left::discarded ? step.buffers->discard(batch.floats()) : step.buffers->leave(batch.floats());
      std::ranges::fill(batch.images(), 99.0F);
      step.buffers.reset();  // all copies are done
      const core::ConstSpan slot = step.compiled().inputs[0].view();
      EXPECT_TRUE(std::ranges::search(slot, before).begin() != slot.end()) << "schedule " << seed;
    }
}

TEST(InputBuffers, ADiscardedBatchIsCopiedAnew) {
  const auto builder = numbered_batches({1, 4, 4}, 0);
  HostDevice device({.schedule_seed = 1});
  InputOfAStep step(device, builder, Type::fp32, true, false);
  LeasedBatch batch(builder, lease_of(1, 0, 0), &device.pinned());
  step.buffers->prefetch(batch.floats());
  step.buffers->discard(batch.floats());
  std::ranges::fill(batch.images(), 99.0F);
  (void)step.brought(batch.floats());
  EXPECT_EQ(step.images()[5], 99.0F);
}

/// A worker may be told to compute another batch than those that are on their way.
TEST(InputBuffers, ABatchTakesTheBufferOfTheOldestThatIsNotComputed) {
  const auto builder = numbered_batches({1, 4, 4}, 0);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    HostDevice device({.schedule_seed = seed});
    InputOfAStep step(device, builder, Type::fp32, true);
    std::vector<std::unique_ptr<LeasedBatch>> batches;
    for (std::uint64_t i = 0; i < 4; ++i)
      batches.push_back(
          std::make_unique<LeasedBatch>(builder, lease_of(i, 0, static_cast<std::int64_t>(4 * i)), &device.pinned()));
    for (const std::size_t i : {0U, 1U, 2U}) step.buffers->prefetch(batches[i]->bytes());  // the third has no room
    for (const std::size_t i : {3U, 1U, 2U, 0U}) {
      (void)step.brought(batches[i]->bytes());
      EXPECT_TRUE(std::equal(batches[i]->images().begin(), batches[i]->images().end(), step.images())) << i;
    }
  }
}

TEST(InputBuffers, PageableMemoryIsNotCopiedAhead) {
  const auto builder = numbered_batches({1, 4, 4}, 0);
  HostDevice host;
  FaultyDevice device(host);
  InputOfAStep step(device, builder, Type::fp32, true);
  const LeasedBatch pageable(builder, lease_of(1, 0, 0), nullptr);
  const LeasedBatch pinned(builder, lease_of(2, 0, 4), &device.pinned());
  device.set({});
  step.buffers->prefetch(pageable.bytes());
  EXPECT_EQ(device.calls(CallKind::copy), 0U);
  step.buffers->prefetch(pinned.bytes());
  step.buffers->prefetch(pinned.bytes());
  EXPECT_EQ(device.calls(CallKind::copy), 2U);  // once: labels with cuts, and bytes
}

TEST(InputBuffers, RefuseBatchesOfAnotherForm) {
  const auto builder = numbered_batches({1, 4, 4}, 0);
  HostDevice device;
  InputOfAStep for_floats(device, builder, Type::fp32, true, false);
  const LeasedBatch batch(builder, lease_of(1, 0, 0), &device.pinned());
  EXPECT_THROW(for_floats.buffers->prefetch(batch.bytes()), std::invalid_argument);
  InputOfAStep for_bytes(device, builder, Type::fp32, true);
  nn::Batch without_cuts = batch.bytes();
  without_cuts.cuts = {};
  EXPECT_THROW(for_bytes.buffers->check(without_cuts, kSamples), std::invalid_argument);
  nn::Batch short_of_bytes = batch.bytes();
  short_of_bytes.bytes = short_of_bytes.bytes.first(8);
  EXPECT_THROW(for_bytes.buffers->check(short_of_bytes, kSamples), std::invalid_argument);
  EXPECT_THROW(for_bytes.buffers->check(batch.bytes(), kSamples + 1), std::invalid_argument);
}

// ---- a replica

nn::Graph vector_net() {
  return nn::Graph::sequential("vectors", {3, 6, 6},
                               {nn::LinearLayer{12, {}}, nn::ActivationLayer{}, nn::LinearLayer{10, {}}},
                               nn::Loss::softmax_cross_entropy)
      .value();
}

/// A net with the images that it is given: a crop of them, or (0) the whole.
struct Pictured {
  nn::Graph graph;
  data::ImageShape source;
  std::int64_t crop = 0;
};
std::vector<Pictured> pictured() {
  return {{lenet(), {1, 30, 32}, 28}, {zoo("lenet", {3, 16, 16}, 10), {3, 16, 16}, 0}, {vector_net(), {3, 8, 7}, 6}};
}

/// Losses, gradients and parameters of some steps: on prefetched bytes, or on floats in pageable memory.
std::vector<std::vector<float>> trained(const std::shared_ptr<Device>& device, const Pictured& on,
                                        nn::Precision precision, bool ahead) {
  const auto builder = numbered_batches(on.source, on.crop);
  const nn::BytePreparation preparation = preparation_of(builder);
  std::vector<std::unique_ptr<LeasedBatch>> batches;  // outlive the replica
  constexpr std::uint64_t kSteps = 6;
  for (std::uint64_t i = 0; i < kSteps; ++i)
    batches.push_back(std::make_unique<LeasedBatch>(
        builder, lease_of(i, i > 3 ? 1 : 0, static_cast<std::int64_t>(5 * i)), ahead ? &device->pinned() : nullptr));
  nn::CompileOptions options{.batch = kSamples, .precision = precision};
  if (ahead) options.bytes = &preparation;
  TrainedModel model(device, on.graph, options);
  std::vector<std::vector<float>> all;
  for (std::uint64_t i = 0; i < kSteps; ++i) {
    const auto batch = [&](std::uint64_t k) { return ahead ? batches[k]->bytes() : batches[k]->floats(); };
    if (i == 3) model.replica->discard(batch(i));  // it is copied again
    model.replica->prefetch(batch(i));
    if (i + 1 < kSteps) model.replica->prefetch(batch(i + 1));
    const auto result = model.replica->step(batch(i), {});
    if (!result) throw std::runtime_error(result.error().message);
    all.push_back({static_cast<float>(result->loss)});
    all.push_back(model.gradients());
    model.replica->apply({.kind = core::OptimizerKind::momentum, .lr = 0.01F, .momentum = 0.9F}, model.velocity.view());
    all.push_back(model.parameters());
    if (i == 2) {  // floats in between
      const auto evaluated = model.replica->evaluate(batches[5]->floats());
      if (!evaluated) throw std::runtime_error(evaluated.error().message);
      all.push_back({static_cast<float>(evaluated->loss)});
    }
  }
  return all;
}

TEST(PrefetchedBytes, TrainAsFloatsDoInEveryOrderOfStreams) {
  for (const Pictured& on : pictured())
    for (const auto precision : {nn::Precision::fp32, nn::Precision::bf16}) {
      const auto want = trained(std::make_shared<HostDevice>(), on, precision, false);
      EXPECT_EQ(trained(std::make_shared<HostDevice>(), on, precision, true), want) << on.graph.name();
      for (std::uint64_t seed = 0; seed < 6; ++seed)
        EXPECT_EQ(trained(std::make_shared<HostDevice>(HostDeviceOptions{.schedule_seed = seed}), on, precision, true),
                  want)
            << on.graph.name() << ", schedule " << seed;
    }
}

TEST(PrefetchedBytes, AFaultIsAnErrorOfTheStepOrHasNoEffect) {
  const Pictured on{vector_net(), {3, 8, 7}, 6};
  auto want = trained(std::make_shared<HostDevice>(), on, nn::Precision::fp32, true);
  want.pop_back();  // the error of an update is that of the next step: the last one has none
  HostDevice host;
  for (const auto kind : {CallKind::allocation, CallKind::pinned_allocation, CallKind::copy, CallKind::launch,
                          CallKind::record, CallKind::wait, CallKind::synchronize})
    for (std::uint64_t number = 1, struck = 1; struck != 0; number += 1 + number / 8) {
      const auto device = std::make_shared<FaultyDevice>(host);
      device->set(Fault{.kind = kind, .number = number});
      try {
        auto got = trained(device, on, nn::Precision::fp32, true);
        got.pop_back();
        EXPECT_TRUE(got == want) << to_string(kind) << " " << number;
      } catch (const std::exception&) {
        EXPECT_TRUE(device->struck());
      }
      struck = device->struck() ? 1 : 0;
      ASSERT_EQ(host.live_bytes(), 0U) << to_string(kind) << " " << number;
    }
}

TEST(PrefetchedBytes, ImagesOfOtherChannelsAreRefused) {
  const auto builder = numbered_batches({3, 28, 28}, 0);
  const nn::BytePreparation preparation = preparation_of(builder);
  core::HostAllocator allocator;
  nn::CompileOptions options{.batch = kSamples, .arenas = &allocator};
  options.bytes = &preparation;
  const auto refused = make_backend_on_host()->compile(lenet(), options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("3 channels"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace troupe::gpu::testing
