// Compiling for a device: descriptions of the zoo's layers, plans, too little memory, errors on every path.
#include "gpu/compile.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gpu/device/faulty_device.hpp"
#include "gpu/program/graph_lowering.hpp"
#include "nn/zoo/models.hpp"
#include "tests/gpu/model.hpp"

namespace troupe::gpu::testing {
namespace {

std::set<std::string> engines_of(const nn::Plan& plan) {
  std::set<std::string> descriptions;
  const auto json = nlohmann::json::parse(plan.json);
  for (const auto& [description, engine] : json.at("engines").items()) descriptions.insert(description);
  return descriptions;
}

/// The descriptions for which a graph's lowering asks; no memory is needed.
std::set<std::string> descriptions_of(const nn::Graph& graph, std::int64_t batch, Type type, bool training = true) {
  HostDevice device;
  const nn::CompileOptions options{.batch = batch, .training = training};
  ProgramBuilder builder(graph.parameters().size(), type);
  Choices choices(device, type == Type::bf16 ? nn::Precision::bf16 : nn::Precision::fp32, false);
  Lowering lowering{graph, options, builder, choices, type};
  (void)GraphLowering(lowering).run();
  return engines_of(choices.to_plan());
}

std::string shape_text(std::int64_t channels, const nn::Shape& shape) {
  return fmt::format("{}x{}x{}", channels, shape.height, shape.width);
}

bool is_relu(const nn::Graph& graph, int node) {
  const auto& readers = graph.readers(node);
  if (readers.size() != 1) return false;
  const auto* layer = std::get_if<nn::ActivationLayer>(&graph.nodes()[static_cast<std::size_t>(readers[0])].layer);
  return layer != nullptr && layer->kind == nn::Activation::relu;
}

/// What the layers of a graph need, from its shapes alone: relu is fused with a convolution's bias; the channels of images are padded.
std::set<std::string> expected_descriptions(const nn::Graph& graph, std::int64_t batch, Type type) {
  const std::string name = type == Type::bf16 ? "bf16" : "fp32";
  const std::string to_float = type == Type::bf16 ? ", bf16 → fp32" : ", fp32";
  const std::int64_t pad = type == Type::bf16 ? 8 : 4;
  std::set<std::string> all;
  for (int i = 0; i < static_cast<int>(graph.nodes().size()); ++i) {
    const nn::Node& node = graph.nodes()[static_cast<std::size_t>(i)];
    const bool data = graph.needs_gradient(node.inputs.front());
    const nn::Shape in = graph.inputs_of(node).front();
    const std::string relu = is_relu(graph, i) ? ", relu" : "";
    if (const auto* c = std::get_if<nn::Conv2dLayer>(&node.layer)) {
      const bool images = node.inputs.front() < 0;
      const std::int64_t channels = images ? (in.channels + pad - 1) / pad * pad : in.channels;
      const std::string what =
          fmt::format("{} {}x{} s{} p{} g{} → {}, batch {}", shape_text(channels, in), c->kernel, c->kernel, c->stride,
                      c->padding, c->groups, shape_text(node.output.channels, node.output), batch);
      all.insert(fmt::format("forward {}, {}{}, deterministic", what, name, c->bias ? ", bias" + relu : ""));
      all.insert(fmt::format("backward weights {}{}, deterministic", what, to_float));
      if (data) all.insert(fmt::format("backward data {}, {}, deterministic", what, name));
    }
    if (const auto* l = std::get_if<nn::LinearLayer>(&node.layer)) {
      const bool is_output = graph.readers(i).empty();
      const std::int64_t k = in.size();
      all.insert(fmt::format("{}x{} · {}x{}ᵀ{}, bias, deterministic", batch, k, k, l->outputs,
                             is_output ? to_float : ", " + name));
      all.insert(fmt::format("{}x{}ᵀ · {}x{}{}, deterministic", l->outputs, batch, batch, k, to_float));
      if (data) all.insert(fmt::format("{}x{} · {}x{}, {}, deterministic", batch, l->outputs, l->outputs, k, name));
    }
  }
  return all;
}

class ZooDescriptions : public ::testing::TestWithParam<std::string> {};

TEST_P(ZooDescriptions, AreThoseOfItsLayers) {
  for (const auto& entry : nn::model_zoo()) {
    if (entry.name != GetParam()) continue;
    const nn::Graph graph = zoo(entry.name, entry.input, entry.classes);
    for (const Type type : {Type::fp32, Type::bf16})
      EXPECT_EQ(descriptions_of(graph, 32, type), expected_descriptions(graph, 32, type));
  }
}

std::vector<std::string> zoo_names() {
  std::vector<std::string> names;
  for (const auto& entry : nn::model_zoo()) names.push_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooDescriptions, ::testing::ValuesIn(zoo_names()),
                         [](const auto& info) { return info.param; });

// Written out by hand: AlexNet's first and grouped convolutions (Krizhevsky et al. 2012), ResNet-50's stem and a strided block.
TEST(Descriptions, OfWellKnownLayers) {
  const auto alexnet = descriptions_of(zoo("alexnet", {3, 227, 227}, 1000), 64, Type::bf16);
  for (const char* description :
       {"forward 8x227x227 11x11 s4 p0 g1 → 96x55x55, batch 64, bf16, bias, relu, deterministic",
        "forward 96x27x27 5x5 s1 p2 g2 → 256x27x27, batch 64, bf16, bias, relu, deterministic",
        "backward weights 96x27x27 5x5 s1 p2 g2 → 256x27x27, batch 64, bf16 → fp32, deterministic",
        "64x9216 · 9216x4096ᵀ, bf16, bias, deterministic", "64x4096 · 4096x1000ᵀ, bf16 → fp32, bias, deterministic"})
    EXPECT_TRUE(alexnet.contains(description)) << description;
  const auto resnet = descriptions_of(zoo("resnet50", {3, 224, 224}, 1000), 64, Type::bf16);
  for (const char* description : {"forward 8x224x224 7x7 s2 p3 g1 → 64x112x112, batch 64, bf16, deterministic",
                                  "forward 128x56x56 3x3 s2 p1 g1 → 128x28x28, batch 64, bf16, deterministic",
                                  "forward 256x56x56 1x1 s2 p0 g1 → 512x28x28, batch 64, bf16, deterministic"})
    EXPECT_TRUE(resnet.contains(description)) << description;
}

TEST(Descriptions, EvaluatorsNeedForwardOnly) {
  for (const auto& description : descriptions_of(zoo("googlenet", {3, 224, 224}, 1000), 8, Type::fp32, false))
    EXPECT_FALSE(description.starts_with("backward")) << description;
}

/// How often operations of a pass end with `what`.
int count(const std::vector<Operation>& operations, const std::string& what, When when) {
  int number = 0;
  for (const Operation& operation : operations) {
    const auto end = operation.what.find(' ') + 1;
    if (operation.what.substr(end) == what && operation.when == when) ++number;
  }
  return number;
}

// ResNet-18: 20 convolutions with batch norms. 8 blocks end in a sum with relu, which the batch norm in front of it computes.
TEST(Fusions, ResidualBlocksAreOnePassBehindTheirLastConvolution) {
  TrainedModel model(std::make_shared<HostDevice>(), zoo("resnet18", {3, 32, 32}, 10), {.batch = 2});
  const auto& forward = model.gpu().program().forward;
  EXPECT_EQ(count(forward, "batch norm", When::training), 20);
  EXPECT_EQ(count(forward, "batch norm", When::evaluation), 20);
  EXPECT_EQ(count(forward, "batch statistics", When::training), 20);
  EXPECT_EQ(count(forward, "sum", When::always), 0);
  EXPECT_EQ(count(forward, "activation", When::always), 0);
  const auto& backward = model.gpu().program().backward;
  EXPECT_EQ(count(backward, "activation backward", When::always), 0);
  EXPECT_EQ(count(backward, "batch norm backward", When::always), 20);
}

// Everything else of a step is a product, a pooling or a pass that joins or cuts channels.
TEST(Fusions, BiasAndReluBelongToTheConvolutionsInFrontOfThem) {
  TrainedModel model(std::make_shared<HostDevice>(), zoo("googlenet", {3, 128, 128}, 10), {.batch = 1});
  EXPECT_EQ(count(model.gpu().program().forward, "activation", When::always), 0);
  EXPECT_EQ(count(model.gpu().program().forward, "activation", When::training), 2) << "of the auxiliary heads' layers";
}

TEST(Plans, AnEngineThatDoesNotExistIsRefusedAsAPlan) {
  auto device = std::make_shared<HostDevice>();
  TrainedModel model(device, lenet(), {.batch = 2});
  auto json = nlohmann::json::parse(model.replica->plan().json);
  EXPECT_EQ(json.at("backend"), "gpu");
  EXPECT_EQ(json.at("engines").size(), 5u + 6u);  // conv1 has no data gradient: 2 + 3 and 3 + 3
  json.at("engines").begin().value() = "an engine of tomorrow";
  const nn::Plan plan{json.dump()};
  const auto refused = model.backend->compile(lenet(), {.batch = 2, .arenas = &model.host, .plan = &plan});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Errc::config);
  EXPECT_TRUE(refused.error().message.starts_with(nn::kPlanRefused)) << refused.error().message;
  EXPECT_NE(refused.error().message.find("an engine of tomorrow"), std::string::npos) << refused.error().message;
}

TEST(Plans, OfAnotherPrecisionIsRefused) {
  TrainedModel model(std::make_shared<HostDevice>(), lenet(), {.batch = 2, .precision = nn::Precision::bf16});
  const nn::Plan plan = model.replica->plan();
  const auto refused = model.backend->compile(lenet(), {.batch = 2, .arenas = &model.host, .plan = &plan});
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.starts_with(nn::kPlanRefused)) << refused.error().message;
}

TEST(Plans, AreFollowed) {
  auto device = std::make_shared<HostDevice>();
  TrainedModel model(device, lenet(), {.batch = 2});
  auto json = nlohmann::json::parse(model.replica->plan().json);
  for (auto& [description, engine] : json.at("engines").items()) {
    EXPECT_EQ(engine, "host staged");  // the device's first
    engine = "host direct";
  }
  const nn::Plan plan{json.dump()};
  TrainedModel planned(device, lenet(), {.batch = 2, .plan = &plan});
  EXPECT_EQ(nlohmann::json::parse(planned.replica->plan().json), json);
}

// Everything of this net is small beside the workspace of an engine.
TEST(Memory, EnginesWithLessWorkspaceAreTakenWhereItRunsOut) {
  const auto graph =
      nn::Graph::sequential("small", {8, 1, 1}, {nn::LinearLayer{5, {}}}, nn::Loss::softmax_cross_entropy);
  const auto engines_with = [&](std::size_t memory) {
    auto device = std::make_shared<HostDevice>(HostDeviceOptions{.memory = memory});
    const TrainedModel model(device, *graph, {.batch = 2});
    const auto json = nlohmann::json::parse(model.replica->plan().json);
    std::set<std::string> engines;
    for (const auto& [description, engine] : json.at("engines").items()) engines.insert(engine.get<std::string>());
    return std::pair(engines, device->live_bytes());
  };
  const auto [usual, needed] = engines_with(1 << 20);
  EXPECT_EQ(usual, std::set<std::string>{"host staged"});
  EXPECT_EQ(engines_with(needed).first, usual);
  EXPECT_EQ(engines_with(needed - 1).first, std::set<std::string>{"host direct"});
  EXPECT_EQ(engines_with(needed - kHostWorkspace / 2).first, std::set<std::string>{"host direct"});
  EXPECT_THROW((void)engines_with(needed / 4), std::runtime_error);
}

/// Else a library without such a product could compute no network in 16 bits.
TEST(Linear, AnOutputOfFloat32IsCastWhereTheLibraryDoesNotAddItsBias) {
  const auto images = random_floats(2 * 784, 1.0, 1);
  const auto loss_on = [&](bool mixes_types) {
    auto backend = make_backend({std::make_shared<HostDevice>(HostDeviceOptions{.mixes_types = mixes_types})}, "gpu");
    core::HostAllocator host;
    auto replica = backend->compile(lenet(), {.batch = 2, .precision = nn::Precision::bf16, .arenas = &host});
    EXPECT_TRUE(replica) << replica.error().message;
    (*replica)->import_canonical(random_floats((*replica)->layout()->canonical_floats(), 0.1, 2));
    return (*replica)->step({images, std::vector<std::int32_t>{3, 7}, 0, 2}, {}).value().loss;
  };
  const double mixed = loss_on(true), cast = loss_on(false);
  EXPECT_NE(mixed, cast);
  EXPECT_NEAR(mixed, cast, 0.01 * mixed);
}

TEST(Memory, ARefusalSaysWhatIsNeededAndWhatThereIs) {
  const auto device = std::make_shared<HostDevice>(HostDeviceOptions{.memory = 2'000'000});
  core::HostAllocator host;
  auto backend = make_backend({device}, "gpu");
  const auto refused = backend->compile(lenet(), {.batch = 64, .arenas = &host});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Errc::out_of_memory);
  for (const char* part :
       {"lenet", "batch 64", "3.5 MB for its parameters", "5.6 MB for a step", "2.0 MB", "smaller batch"})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  EXPECT_EQ(device->live_bytes(), 0u);
  EXPECT_EQ(device->live_pinned_bytes(), 0u);
}

/// Compiles, steps, updates, evaluates: the losses. `struck`: a call failed before the replica was freed.
core::Result<std::vector<double>> use(const FaultyDevice& device, nn::Backend& backend, core::Allocator& arenas,
                                      bool with_buckets, bool& struck) {
  auto replica = backend.compile(branching_net(), {.batch = 2, .precision = nn::Precision::bf16, .arenas = &arenas});
  struck = device.struck();
  if (!replica) return tl::unexpected(std::move(replica.error()));
  const auto images = random_floats(2 * 360, 1.0, 1);
  const std::vector<std::int32_t> labels{1, 2};
  const nn::Batch batch{images, labels, 1, 2};
  std::vector<double> losses;
  for (int i = 0; i < 3; ++i) {
    auto stepped = with_buckets ? (*replica)->step(batch, [](int) {}) : (*replica)->step(batch, {});
    struck = device.struck();
    if (!stepped) return tl::unexpected(std::move(stepped.error()));
    losses.push_back(stepped->loss);
    (*replica)->apply({.lr = 0.1F, .clip_value = 1, .clip_norm = 1}, {});
  }
  auto evaluated = (*replica)->evaluate(batch);
  struck = device.struck();
  if (!evaluated) return tl::unexpected(std::move(evaluated.error()));
  losses.push_back(evaluated->loss);
  return losses;
}

class EveryFault : public ::testing::TestWithParam<CallKind> {};

TEST_P(EveryFault, IsAnErrorOrHasNoEffectAndLeavesNothingBehind) {
  const CallKind kind = GetParam();
  HostDevice host;
  core::HostAllocator arenas;
  std::vector<double> want;  // without a fault
  {
    const FaultyDevice device(host);
    bool struck = false;
    auto backend = make_backend({std::make_shared<HostDevice>()}, "gpu");
    want = use(device, *backend, arenas, false, struck).value();
  }
  for (const bool with_buckets : {false, true}) {
    for (const bool lost : {false, true}) {
      std::uint64_t number = 1;
      for (bool struck = true; struck; number = number < 8 ? number + 1 : number + number / 4) {
        auto device = std::make_shared<FaultyDevice>(host);
        {
          auto backend = make_backend({device}, "gpu");
          device->set(Fault{.kind = kind, .number = number, .code = core::Errc::io, .lost = lost});
          const auto used = use(*device, *backend, arenas, with_buckets, struck);
          // What fails in a capture, or is one, is done without it. Whatever else fails is reported.
          const bool may_be_captured = kind == CallKind::capture || kind == CallKind::launch || kind == CallKind::run;
          if (used) {
            EXPECT_TRUE(!struck || (may_be_captured && !lost)) << to_string(kind) << " " << number;
            EXPECT_EQ(*used, want);
          } else {
            EXPECT_TRUE(struck);
            EXPECT_EQ(used.error().code, core::Errc::io) << used.error().message;
          }
        }
        EXPECT_EQ(device->live_objects(), 0);
        device.reset();
        ASSERT_EQ(host.live_bytes(), 0u) << to_string(kind) << " " << number;
        ASSERT_EQ(host.live_pinned_bytes(), 0u) << to_string(kind) << " " << number;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, EveryFault,
                         ::testing::Values(CallKind::allocation, CallKind::pinned_allocation, CallKind::stream,
                                           CallKind::event, CallKind::plan, CallKind::copy, CallKind::launch,
                                           CallKind::run, CallKind::record, CallKind::wait, CallKind::synchronize,
                                           CallKind::capture, CallKind::graph),
                         kind_name);

}  // namespace
}  // namespace troupe::gpu::testing
