#include "nn/device_names.hpp"

#include <array>
#include <charconv>

#include <nlohmann/json.hpp>

namespace troupe::nn {
namespace {

constexpr auto kBackend = "backend";
constexpr auto kParts = "parts";
constexpr auto kMixed = "mixed";
constexpr int kMostDevices = 1024;

std::string backend_in(const nlohmann::json& plan) {
  const auto found = plan.is_object() ? plan.find(kBackend) : plan.end();
  return found != plan.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::optional<DeviceName> parse_device_name(std::string_view name) {
  if (name == "cpu") return DeviceName{};
  const auto colon = name.find(':');
  const auto kind = name.substr(0, colon);
  if (kind != "cuda" && kind != "cuda_on_host") return std::nullopt;
  DeviceName device{kind == "cuda" ? DeviceKind::cuda : DeviceKind::cuda_on_host};
  if (colon == std::string_view::npos) return device;
  const auto number = name.substr(colon + 1);
  if (number == "local") return device;
  int ordinal = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), ordinal);
  if (error != std::errc{} || end != number.data() + number.size() || ordinal < 0 || ordinal >= kMostDevices)
    return std::nullopt;
  device.ordinal = ordinal;
  return device;
}

std::string_view backend_of(DeviceKind kind) noexcept { return kind == DeviceKind::cpu ? "cpu" : "gpu"; }

Plan joined(const std::optional<Plan>& plan, const Plan& more) {
  if (!plan || plan->json.empty()) return more;
  const auto known = nlohmann::json::parse(plan->json, nullptr, false);
  const auto other = nlohmann::json::parse(more.json, nullptr, false);
  const auto known_backend = backend_in(known);
  const auto other_backend = backend_in(other);
  if (other_backend.empty() || known_backend.empty() || known_backend == other_backend) return *plan;
  nlohmann::json mixed{{kBackend, kMixed}, {kParts, nlohmann::json::object()}};
  for (const auto* from : {&known, &other}) {
    const auto backend = backend_in(*from);
    if (backend != kMixed)
      mixed[kParts].emplace(backend, *from);
    else if (from->contains(kParts) && from->at(kParts).is_object())
      for (const auto& [name, part] : from->at(kParts).items()) mixed[kParts].emplace(name, part);
  }
  return {mixed.dump()};
}

std::optional<Plan> part_for(const Plan& plan, std::string_view backend) {
  const auto json = nlohmann::json::parse(plan.json, nullptr, false);
  const auto written = backend_in(json);
  if (written == kMixed) {
    const auto parts = json.find(kParts);
    if (parts == json.end() || !parts->is_object()) return plan;
    const auto part = parts->find(backend);
    return part == parts->end() ? std::nullopt : std::optional(Plan{part->dump()});
  }
  for (const auto other : {backend_of(DeviceKind::cpu), backend_of(DeviceKind::cuda)})
    if (written == other && other != backend) return std::nullopt;
  return plan;
}

}  // namespace troupe::nn
