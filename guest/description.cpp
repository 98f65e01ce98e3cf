#include "guest/description.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "guest/frames.hpp"

namespace troupe::guest {
namespace {

using nlohmann::json;

constexpr std::size_t kMostTensors = 1 << 20;

std::vector<nn::GivenTensor> tensors_in(const json& list, std::vector<int>& places) {
  if (list.size() > kMostTensors) throw json::out_of_range::create(401, "too many tensors", nullptr);
  std::vector<nn::GivenTensor> tensors;
  for (const json& entry : list) {
    nn::GivenTensor tensor{entry.at(0).get<std::string>(), entry.at(1).get<std::vector<std::int64_t>>()};
    const bool empty = std::ranges::find(tensor.shape, 0) != tensor.shape.end();
    places.push_back(empty ? -1 : static_cast<int>(tensors.size()));
    if (!empty) tensors.push_back(std::move(tensor));
  }
  return tensors;
}

/// `read` takes a JSON object: its exceptions become errors.
template <class Read>
auto parsed(std::string_view frame, std::string_view text, const Read& read)
    -> core::Result<decltype(read(std::declval<const json&>()))> {
  const auto refuse = [&](std::string_view why) {
    return core::fail(core::Errc::data, fmt::format("the guest's {} is not as the protocol says: {}", frame, why));
  };
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return refuse("no JSON object");
  try {
    return read(object);
  } catch (const json::exception& error) {
    return refuse(error.what());
  }
}

}  // namespace

core::Result<Introduction> parse_hello(std::string_view text) {
  return parsed("HELLO", text, [](const json& hello) {
    if (const auto version = hello.at("protocol").get<std::uint32_t>(); version != kProtocol)
      throw json::out_of_range::create(401, fmt::format("protocol {}, and this program speaks {}", version, kProtocol),
                                       nullptr);
    Introduction said;
    said.token = hello.at("token").get<std::string>();
    said.tensors = tensors_in(hello.at("tensors"), said.places);
    said.statistics = tensors_in(hello.at("statistics"), said.statistics_places);
    said.has_optimizer = hello.contains("optimizer") && hello["optimizer"].is_string();
    said.mirrors = hello.value("mirrors", false);
    return said;
  });
}

core::Result<TrainingPlan> parse_plan(std::string_view text) {
  auto plan = parsed("PLAN", text, [](const json& object) {
    return TrainingPlan{object.at("samples").get<std::int64_t>(), object.at("batch").get<std::int64_t>(),
                        object.value("epochs", std::int64_t{1})};
  });
  if (!plan) return plan;
  if (plan->samples < 1 || plan->samples > std::numeric_limits<std::int32_t>::max() || plan->batch < 1 ||
      plan->batch > plan->samples || plan->epochs < 1)
    return core::fail(core::Errc::data,
                      fmt::format("run.batches({}, {}, {}): samples are 1 to 2147483647, a batch is 1 to as many, and "
                                  "epochs are 1 or more",
                                  plan->samples, plan->batch, plan->epochs));
  return plan;
}

}  // namespace troupe::guest
