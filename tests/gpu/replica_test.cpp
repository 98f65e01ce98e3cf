// What a replica on a device does besides nn/backend.hpp: captured steps, host arenas as mirrors, streams that need no luck.
#include "gpu/replica.hpp"

#include <gtest/gtest.h>

#include "gpu/device/faulty_device.hpp"
#include "tests/gpu/idle_device.hpp"
#include "tests/gpu/model.hpp"

namespace troupe::gpu::testing {
namespace {

using Numbers = std::vector<std::vector<float>>;

/// Losses and parameters of some steps, with evaluations in between.
Numbers train(TrainedModel& model, int steps, bool with_buckets = false) {
  Numbers all;
  for (int i = 0; i < steps; ++i) {
    const auto lease = static_cast<std::uint64_t>(i);
    const auto on_bucket = [&](int b) {  // an exchange that halves every gradient
      const nn::Bucket& bucket = model.replica->buckets()[static_cast<std::size_t>(b)];
      for (float& g : model.replica->gradients().subspan(bucket.offset, bucket.count)) g *= 0.5F;
    };
    const auto result =
        with_buckets ? model.replica->step(model.batch(lease), on_bucket) : model.replica->step(model.batch(lease), {});
    EXPECT_TRUE(result) << result.error().message;
    if (!result) return all;
    all.push_back({static_cast<float>(result->loss), static_cast<float>(result->top1)});
    const auto outputs = model.replica->outputs();
    all.emplace_back(outputs.begin(), outputs.end());
    all.push_back(model.gradients());
    model.replica->apply({.kind = core::OptimizerKind::momentum, .lr = 0.01F, .momentum = 0.9F, .clip_norm = 0.5F},
                         model.velocity.view());
    const auto evaluated = model.replica->evaluate(model.batch());
    EXPECT_TRUE(evaluated);
    if (evaluated) all.push_back({static_cast<float>(evaluated->loss)});
    all.push_back(model.parameters());
    const auto statistics = model.replica->statistics();
    all.emplace_back(statistics.begin(), statistics.end());
  }
  return all;
}

/// Two buckets of gradients. When the first is ready, backward still has to write where the images were.
nn::Graph wide_net() {
  return nn::Graph::sequential("wide", {3, 8, 8},
                               {nn::Conv2dLayer{8, 3, 1, 1, {}}, nn::ActivationLayer{}, nn::LinearLayer{300, {}},
                                nn::ActivationLayer{}, nn::LinearLayer{10, {}}},
                               nn::Loss::softmax_cross_entropy)
      .value();
}

std::shared_ptr<HostDevice> scheduled(std::uint64_t seed) {
  return std::make_shared<HostDevice>(HostDeviceOptions{.schedule_seed = seed});
}

class OnDevice : public ::testing::TestWithParam<nn::Precision> {
 protected:
  [[nodiscard]] static nn::CompileOptions options() { return {.batch = 4, .precision = GetParam(), .seed = 3}; }
};

// HostDevice executes everything later, in random orders that streams and events allow.
TEST_P(OnDevice, StepsDoNotDependOnTheOrderInWhichStreamsAreExecuted) {
  for (const bool with_buckets : {false, true}) {
    TrainedModel at_once(std::make_shared<HostDevice>(), branching_net(), options());
    const Numbers want = train(at_once, 4, with_buckets);
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      TrainedModel later(scheduled(seed), branching_net(), options());
      EXPECT_EQ(train(later, 4, with_buckets), want) << "schedule " << seed;
    }
  }
}

TEST_P(OnDevice, ArenasInDeviceMemoryGiveTheBitsOfMirroredOnes) {
  auto device = std::make_shared<HostDevice>();
  TrainedModel mirrored(device, branching_net(), options());
  const Numbers want = train(mirrored, 4);
  auto with = options();
  with.arenas = &device->memory();
  TrainedModel direct(device, branching_net(), with);
  EXPECT_EQ(train(direct, 4), want);
  EXPECT_TRUE(device->device_memory().contains(direct.replica->gradients().data(), 4));
  with.arenas = &device->pinned();
  TrainedModel pinned(device, branching_net(), with);
  EXPECT_EQ(train(pinned, 4), want);
  auto later = scheduled(5);
  with.arenas = &later->pinned();
  TrainedModel pinned_later(later, branching_net(), with);
  EXPECT_EQ(train(pinned_later, 4), want);
}

TEST_P(OnDevice, SteadyStepsAreCaptured) {
  auto host = std::make_shared<HostDevice>();
  auto device = std::make_shared<FaultyDevice>(*host);
  TrainedModel model(device, branching_net(), options());
  EXPECT_FALSE(model.gpu().is_captured());
  for (std::uint64_t lease = 0; lease < 2; ++lease) model.momentum_step(lease);
  EXPECT_TRUE(model.gpu().is_captured());
  device->set({});  // counts anew
  (void)model.step(7);
  EXPECT_EQ(device->calls(CallKind::graph), 2u);  // forward and backward
  EXPECT_EQ(device->calls(CallKind::run), 0u);
  EXPECT_LE(device->calls(CallKind::launch), 2u);  // images, working copies
  EXPECT_EQ(device->calls(CallKind::allocation), 0u);
  EXPECT_EQ(device->calls(CallKind::pinned_allocation), 0u);
  EXPECT_EQ(device->calls(CallKind::capture), 0u);
  EXPECT_EQ(device->calls(CallKind::stream) + device->calls(CallKind::event), 0u);
}

TEST_P(OnDevice, WithoutACaptureStepsGiveTheSameBits) {
  auto host = std::make_shared<HostDevice>();
  TrainedModel captured(host, branching_net(), options());
  const Numbers want = train(captured, 4);
  for (std::uint64_t failing = 1; failing <= 3; ++failing) {  // begin or end of the first captures
    auto device = std::make_shared<FaultyDevice>(*host);
    TrainedModel model(device, branching_net(), options());
    device->set(Fault{.kind = CallKind::capture, .number = failing});
    EXPECT_EQ(train(model, 4), want);
    EXPECT_TRUE(device->struck());
    EXPECT_FALSE(model.gpu().is_captured());
  }
}

TEST_P(OnDevice, ASteadyStepWaitsForTheDeviceOnceWhenArenasAreOnIt) {
  auto host = std::make_shared<HostDevice>();
  auto device = std::make_shared<FaultyDevice>(*host);
  auto with = options();
  with.arenas = &device->memory();
  TrainedModel model(device, branching_net(), with);
  for (std::uint64_t lease = 0; lease < 3; ++lease) model.momentum_step(lease);
  device->set({});
  const auto batch = model.batch(9);
  ASSERT_TRUE(model.replica->step(batch, {}));
  // One wait at the end. The images fit into the two pieces of the staging: before each is filled again the host waits for its last copy.
  EXPECT_LE(device->calls(CallKind::synchronize), 3u);
  const auto waits = device->calls(CallKind::synchronize);
  model.replica->apply({.lr = 0.1F}, {});
  EXPECT_LE(device->calls(CallKind::synchronize), waits + 1);
}

TEST_P(OnDevice, AStepThatACallbackLeavesDoesNotDisturbTheNextOne) {
  TrainedModel undisturbed(std::make_shared<HostDevice>(), wide_net(), options());
  const double want = undisturbed.replica->evaluate(undisturbed.batch(7)).value().loss;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    TrainedModel model(scheduled(seed), wide_net(), options());
    ASSERT_GT(model.replica->buckets().size(), 1u);
    const auto leave = [](int) { throw std::runtime_error("the exchange was interrupted"); };
    EXPECT_THROW((void)model.replica->step(model.batch(1), leave), std::runtime_error);
    EXPECT_EQ(model.replica->evaluate(model.batch(7)).value().loss, want) << "schedule " << seed;
  }
}

std::shared_ptr<HostDevice> lazy() { return std::make_shared<HostDevice>(HostDeviceOptions{.executes_lazily = true}); }

/// On a device that executes nothing before the host waits for it: when a bucket is given out and checked, the kernels of the next ones have
/// not run yet.
TEST_P(OnDevice, ABucketIsGivenOutAndCheckedBeforeTheRestOfBackwardIsExecuted) {
  TrainedModel reference(std::make_shared<HostDevice>(), wide_net(), options());
  const auto is_same = [](float g, float wanted) { return g == wanted || (g == 7 && wanted == 0); };  // 7: padding
  for (const bool captured : {false, true}) {
    (void)reference.step(1);
    const auto want = reference.gradients();
    auto device = lazy();
    auto with = options();
    with.arenas = &device->memory();
    TrainedModel model(device, wide_net(), with);
    for (int warm = 0; captured && warm < 2; ++warm) {
      ASSERT_TRUE(model.replica->step(model.batch(1), [](int) {}));
    }
    const auto& buckets = model.replica->buckets();
    ASSERT_GT(buckets.size(), 1u);
    const core::Kernels& kernels = model.replica->kernels();
    kernels.fill(model.replica->gradients(), 7);
    std::vector<int> order;
    ASSERT_TRUE(model.replica->step(model.batch(1), [&](int b) {
      order.push_back(b);
      const nn::Bucket& bucket = buckets[static_cast<std::size_t>(b)];
      const auto gradient = model.replica->gradients().subspan(bucket.offset, bucket.count);
      EXPECT_TRUE(kernels.all_within(gradient, 1e6F));  // waits for the device
      EXPECT_TRUE(std::ranges::equal(gradient, std::span(want).subspan(bucket.offset, bucket.count), is_same))
          << "bucket " << b;
      const auto later = model.replica->gradients().first(bucket.offset);
      EXPECT_TRUE(std::ranges::all_of(later, [](float g) { return g == 7; })) << "behind bucket " << b;
    }));
    EXPECT_EQ(order.size(), buckets.size());
    EXPECT_TRUE(std::ranges::is_sorted(order));
    EXPECT_TRUE(std::ranges::equal(model.gradients(), want, is_same));
  }
}

/// The same with mirrors: a bucket is copied to the host before the rest is computed.
TEST_P(OnDevice, ABucketIsMirroredBeforeTheRestOfBackwardIsExecuted) {
  TrainedModel model(lazy(), wide_net(), options());
  std::ranges::fill(model.replica->gradients(), 7.0F);
  ASSERT_TRUE(model.replica->step(model.batch(1), [&](int b) {
    const nn::Bucket& bucket = model.replica->buckets()[static_cast<std::size_t>(b)];
    EXPECT_NE(model.replica->gradients()[bucket.offset], 7);
    EXPECT_TRUE(std::ranges::all_of(model.replica->gradients().first(bucket.offset), [](float g) { return g == 7; }));
  }));
}

/// Steps need no operation that the host never waits for.
TEST_P(OnDevice, StepsOnALazyDeviceGiveTheSameBits) {
  for (const bool with_buckets : {false, true}) {
    TrainedModel at_once(std::make_shared<HostDevice>(), branching_net(), options());
    TrainedModel model(lazy(), branching_net(), options());
    EXPECT_EQ(train(model, 4, with_buckets), train(at_once, 4, with_buckets));
  }
}

TEST_P(OnDevice, WithBucketsBackwardIsAGraphForEach) {
  auto host = std::make_shared<HostDevice>();
  auto device = std::make_shared<FaultyDevice>(*host);
  TrainedModel model(device, wide_net(), options());
  for (std::uint64_t lease = 0; lease < 3; ++lease) ASSERT_TRUE(model.replica->step(model.batch(lease), [](int) {}));
  device->set({});
  ASSERT_TRUE(model.replica->step(model.batch(3), [](int) {}));
  const auto buckets = model.replica->buckets().size();
  EXPECT_GE(device->calls(CallKind::graph), 1 + buckets);  // forward, each bucket, perhaps what follows the last
  EXPECT_LE(device->calls(CallKind::graph), 2 + buckets);
  EXPECT_EQ(device->calls(CallKind::run), 0u);
  for (std::uint64_t lease = 0; lease < 3; ++lease) (void)model.step(lease);
  device->set({});
  (void)model.step(7);
  EXPECT_EQ(device->calls(CallKind::graph), 2u);
}

INSTANTIATE_TEST_SUITE_P(Precisions, OnDevice,
                         ::testing::Values(nn::Precision::fp32, nn::Precision::bf16, nn::Precision::tf32),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(Mirrors, ParametersGoToTheDeviceWhenTheyWereWritten) {
  TrainedModel model(scheduled(1), branching_net(), {.batch = 3});
  TrainedModel other(scheduled(2), branching_net(), {.batch = 3});
  for (float& x : model.replica->parameters()) x *= 0.5F;
  model.replica->parameters_written();
  for (float& x : other.replica->parameters()) x *= 0.5F;
  other.replica->parameters_written();
  EXPECT_EQ(model.step().loss, other.step().loss);
  TrainedModel unchanged(scheduled(3), branching_net(), {.batch = 3});
  EXPECT_NE(model.step().loss, unchanged.step().loss);
}

TEST(Mirrors, AnUpdateTakesTheGradientsAndTheStateOfTheCaller) {
  TrainedModel model(scheduled(1), branching_net(), {.batch = 3});
  (void)model.step();
  const auto before = model.parameters();
  const auto g = random_floats(before.size(), 1.0, 50);
  const auto v = random_floats(before.size(), 1.0, 51);
  std::ranges::copy(g, model.replica->gradients().begin());
  std::ranges::copy(v, model.velocity.view().begin());
  model.replica->apply({core::OptimizerKind::momentum, 0.5F, 0.9F, 0}, model.velocity.view());
  const auto after = model.parameters();
  for (std::size_t i = 0; i < before.size(); ++i) {  // v ← 0.9 v − 0.5 g; x ← x + v
    const float moved = 0.9F * v[i] - 0.5F * g[i];
    ASSERT_FLOAT_EQ(model.velocity.view()[i], moved);
    ASSERT_FLOAT_EQ(after[i], before[i] + moved);
  }
}

TEST(Mirrors, AnUpdateWithoutAStepTakesWrittenParameters) {
  TrainedModel model(scheduled(1), branching_net(), {.batch = 3});
  for (float& x : model.replica->parameters()) x = 2;
  model.replica->parameters_written();
  for (float& g : model.replica->gradients()) g = 1;
  model.replica->apply({.lr = 0.5F}, {});
  for (const float x : model.replica->parameters()) ASSERT_EQ(x, 1.5F);
}

TEST(Mirrors, StatisticsMayBeWrittenBetweenPasses) {
  TrainedModel model(scheduled(1), branching_net(), {.batch = 3});
  const double loss = model.replica->evaluate(model.batch()).value().loss;
  const std::vector<float> kept(model.replica->statistics().begin(), model.replica->statistics().end());
  for (float& s : model.replica->statistics()) s *= 9;
  EXPECT_NE(model.replica->evaluate(model.batch()).value().loss, loss);
  std::ranges::copy(kept, model.replica->statistics().begin());
  EXPECT_EQ(model.replica->evaluate(model.batch()).value().loss, loss);
}

TEST(ArenasOfTheCaller, DecideWhichKernelsABackendHas) {
  const auto device = std::make_shared<HostDevice>();
  for (const auto space : {core::MemorySpace::host, core::MemorySpace::device}) {
    const auto backend = make_backend({device}, "gpu", space);
    EXPECT_EQ(backend->capabilities().arena_space, space);
    EXPECT_EQ(backend->kernels().space(), space);
  }
}

TEST(ArenasOfTheCaller, AreInTheMemoryOfTheReplicasDevice) {
  const std::vector<std::shared_ptr<Device>> devices{
      std::make_shared<HostDevice>(HostDeviceOptions{.hides_memory = true}),
      std::make_shared<HostDevice>(HostDeviceOptions{.hides_memory = true})};
  const auto backend = make_backend(devices, "gpu", core::MemorySpace::device);
  std::vector<std::vector<float>> gradients;
  for (int d = 0; d < 2; ++d) {
    auto& memory = backend->arenas({.device = d});
    EXPECT_EQ(&memory, &devices[static_cast<std::size_t>(d)]->memory());
    const auto replica = backend->compile(lenet(), {.batch = 2, .device = d, .arenas = &memory}).value();
    EXPECT_EQ(&replica->kernels(), &backend->kernels_for(memory));
    replica->import_canonical(random_floats(replica->layout()->canonical_floats(), 0.1, 1));
    const auto images = random_floats(2 * 784, 1, 2);
    ASSERT_TRUE(replica->step({images, std::vector<std::int32_t>{3, 7}, 0, 2}, {}));
    gradients.emplace_back(replica->gradients().size());
    replica->kernels().download(gradients.back(), replica->gradients());
  }
  EXPECT_NE(&backend->kernels_for(backend->arenas({.device = 0})),
            &backend->kernels_for(backend->arenas({.device = 1})));
  EXPECT_EQ(gradients[0], gradients[1]);
}

/// What profilers show: each begins and ends in its pass.
TEST(Ranges, NameThePassesOfAStep) {
  auto device = std::make_shared<IdleDevice>();
  TrainedModel model(device, lenet(), {.batch = 2});
  std::string ranges;
  device->on_range = [&](const char* name) { ranges += name ? std::string(name) + "(" : ") "; };
  auto pinned = core::Buffer::allocate(device->pinned(), model.images.size()).value();
  nn::Batch next = model.batch(1);
  next.images = pinned.view();
  next.space = core::MemorySpace::host_pinned;
  model.replica->prefetch(next);
  ASSERT_TRUE(model.replica->step(model.batch(0), [](int) {}));
  model.replica->apply({.lr = 0.1F}, {});
  ASSERT_TRUE(model.replica->evaluate(model.batch(0)));
  EXPECT_EQ(ranges, "prefetch() forward() backward() optimizer() forward() ");
  model.replica->discard(next);
}

TEST(Threads, ReplicasOfOneThreadShareItsStream) {
  auto host = std::make_shared<HostDevice>();
  auto device = std::make_shared<FaultyDevice>(*host);
  auto backend = make_backend({device}, "gpu");
  core::HostAllocator allocator;
  const nn::CompileOptions options{.batch = 2, .arenas = &allocator};
  const auto first = backend->compile(lenet(), options);
  const auto streams = device->calls(CallKind::stream);
  const auto second = backend->compile(lenet(), options);
  EXPECT_EQ(device->calls(CallKind::stream) - streams, streams - 1);
}

}  // namespace
}  // namespace troupe::gpu::testing
