#include "guest/description.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "guest/frames.hpp"
#include "guest/lines.hpp"

namespace troupe::guest {
namespace {

using nlohmann::json;

constexpr std::size_t kMostTensors = 1 << 20;
constexpr std::size_t kLongestName = 1000;  // bytes

[[noreturn]] void refuse(const std::string& why) { throw json::out_of_range::create(401, why, nullptr); }

std::int64_t whole(const json& value) {
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{1} << 62))
    refuse("an integer is due, and not " + value.dump().substr(0, 40));
  return value.get<std::int64_t>();
}

std::string name_in(const json& value) {
  auto name = value.get<std::string>();
  if (name.empty() || name.size() > kLongestName || printable(name) != name)
    refuse("a name has 1 to 1000 bytes, and no control characters");
  return name;
}

std::vector<nn::GivenTensor> tensors_in(const json& list, std::vector<int>& places) {
  if (!list.is_array() || list.size() > kMostTensors) refuse("tensors are a list of at most 1048576");
  std::vector<nn::GivenTensor> tensors;
  for (const json& entry : list) {
    nn::GivenTensor tensor{name_in(entry.at(0)), {}};
    if (!entry.at(1).is_array()) refuse("a shape is a list of integers");
    for (const json& extent : entry.at(1)) tensor.shape.push_back(whole(extent));
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
    const std::string_view why(error.what());  // "[json.exception.type_error.302] type must be string, …"
    return refuse(why.substr(why.find("] ") == std::string_view::npos ? 0 : why.find("] ") + 2));
  }
}

}  // namespace

core::Result<Introduction> parse_hello(std::string_view text) {
  return parsed("HELLO", text, [](const json& hello) {
    if (const auto version = whole(hello.at("protocol")); version != kProtocol)
      refuse(fmt::format("protocol {}, and this program speaks {}", version, kProtocol));
    Introduction said;
    said.token = hello.at("token").get<std::string>();
    said.tensors = tensors_in(hello.at("tensors"), said.places);
    said.statistics = tensors_in(hello.at("statistics"), said.statistics_places);
    said.program = hello.value("program", std::string());
    said.has_optimizer = hello.contains("optimizer") && hello["optimizer"].is_string();
    said.mirrors = hello.value("mirrors", false);
    return said;
  });
}

core::Result<TrainingPlan> parse_plan(std::string_view text) {
  auto plan = parsed("PLAN", text, [](const json& object) {
    return TrainingPlan{whole(object.at("samples")), whole(object.at("batch")),
                        object.contains("epochs") ? whole(object["epochs"]) : 1};
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
