#include "nn/device_names.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include <nlohmann/json.hpp>

namespace troupe::nn {
namespace {

constexpr auto kBackend = "backend";
constexpr auto kParts = "parts";
constexpr auto kDevice = "device";
constexpr auto kMixed = "mixed";
constexpr int kMostDevices = 1024;

std::string text_in(const nlohmann::json& plan, const char* key) {
  const auto found = plan.is_object() ? plan.find(key) : plan.end();
  return found != plan.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string backend_in(const nlohmann::json& plan) { return text_in(plan, kBackend); }

/// The choices of one backend for one model of device; empty: for all.
struct Part {
  nlohmann::json json;
  std::string backend;
  std::string device;
  [[nodiscard]] bool is_for(std::string_view of, std::string_view model) const {
    return backend == of && (device.empty() || model.empty() || device == model);
  }
};

/// In their order: parts are named so that the first of a backend comes first.
std::vector<Part> parts_of(const nlohmann::json& plan) {
  std::vector<Part> parts;
  const auto add = [&](const nlohmann::json& json) {
    parts.push_back({json, backend_in(json), text_in(json, kDevice)});
  };
  if (backend_in(plan) != kMixed)
    add(plan);
  else if (plan.contains(kParts) && plan.at(kParts).is_object())
    for (const auto& [name, part] : plan.at(kParts).items()) add(part);
  return parts;
}

Plan plan_of(const std::vector<Part>& parts) {
  if (parts.size() == 1) return {parts.front().json.dump()};
  nlohmann::json mixed{{kBackend, kMixed}, {kParts, nlohmann::json::object()}};
  for (const auto& part : parts) {
    const bool first = !mixed[kParts].contains(part.backend);
    mixed[kParts].emplace(first ? part.backend : part.backend + ": " + part.device, part.json);
  }
  return {mixed.dump()};
}

/// Whether a backend of ours wrote it, or several did.
bool is_known(const nlohmann::json& plan) {
  const auto written = backend_in(plan);
  if (written == kMixed) return plan.contains(kParts) && plan.at(kParts).is_object();
  return written == backend_of(DeviceKind::cpu) || written == backend_of(DeviceKind::cuda);
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
  if (backend_in(other).empty() || backend_in(known).empty()) return *plan;
  auto parts = parts_of(known);
  const auto had = parts.size();
  for (auto& part : parts_of(other)) {
    const auto same = [&](const auto& one) { return one.is_for(part.backend, part.device); };
    if (std::ranges::none_of(parts, same)) parts.push_back(std::move(part));
  }
  return parts.size() == had ? *plan : plan_of(parts);
}

std::optional<Plan> part_for(const Plan& plan, std::string_view backend, std::string_view model) {
  const auto json = nlohmann::json::parse(plan.json, nullptr, false);
  if (!is_known(json)) return plan;
  for (const auto& part : parts_of(json))
    if (part.is_for(backend, model)) return Plan{part.json.dump()};
  return std::nullopt;
}

std::optional<Plan> part_for(const Plan& plan, std::string_view backend) {
  const auto json = nlohmann::json::parse(plan.json, nullptr, false);
  if (!is_known(json)) return plan;
  auto parts = parts_of(json);
  std::erase_if(parts, [&](const Part& part) { return part.backend != backend; });
  return parts.empty() ? std::nullopt : std::optional(plan_of(parts));
}

}  // namespace troupe::nn
