#include "experiment/exchange_plan.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe::experiment {

namespace {

using exchange::Algorithm;
using nlohmann::json;

constexpr auto kKey = "exchange";
constexpr auto kArithmeticKey = "arithmetic";
constexpr std::array<std::pair<std::string_view, core::HalfKind>, 2> kHalves{
    {{"fp16", core::HalfKind::fp16}, {"bf16", core::HalfKind::bf16}}};

std::string wire_name(std::optional<core::HalfKind> wire) {
  for (const auto& [name, half] : kHalves)
    if (wire == half) return std::string(name);
  return "fp32";
}

std::optional<core::HalfKind> wire_of(const std::string& name) {
  for (const auto& [known, half] : kHalves)
    if (name == known) return half;
  if (name == "fp32") return {};
  throw std::out_of_range("no wire is called " + name);
}

json to_object(const ExchangePlan& plan) {
  auto reductions = json::array();
  for (const auto& [floats, algorithm] : plan.reductions) {
    json one{{"algorithm", exchange::name(algorithm)}};
    if (floats) one["up_to_floats"] = *floats;
    reductions.push_back(std::move(one));
  }
  auto measured = json::array();
  for (const auto& [floats, algorithm, seconds] : plan.measured)
    measured.push_back({{"floats", floats}, {"algorithm", exchange::name(algorithm)}, {"seconds", seconds}});
  json object{{"endpoint", plan.endpoint},           {"wire", wire_name(plan.wire)},
              {"worker_sites", plan.worker_sites},   {"server_sites", plan.server_sites},
              {"site_hosts", plan.site_hosts},       {"packed", plan.packed},
              {"reductions", std::move(reductions)}, {"measured", std::move(measured)}};
  if (plan.on_devices) object["on_devices"] = true;  // the text of plans without devices stays as it was
  if (plan.mapped) object["mapped"] = true;
  return object;
}

std::vector<exchange::Choice> reductions_of(const json& list) {
  std::vector<exchange::Choice> reductions;
  for (const auto& one : list) {
    auto& reduction = reductions.emplace_back();
    reduction.algorithm = exchange::algorithm_of(one.at("algorithm").get<std::string>());
    if (reduction.algorithm == Algorithm::automatic) throw std::out_of_range("\"auto\" is no algorithm");
    if (one.contains("up_to_floats")) reduction.up_to_floats = one.at("up_to_floats").get<std::size_t>();
  }
  const bool ordered = std::ranges::is_sorted(reductions, {}, [](const auto& reduction) {
    return reduction.up_to_floats.value_or(std::numeric_limits<std::size_t>::max());
  });
  if (reductions.empty() || reductions.back().up_to_floats || !ordered)
    throw std::out_of_range("reductions that are not ascending, or do not end with one for all sizes");
  return reductions;
}

ExchangePlan from_object(const json& object) {
  ExchangePlan plan;
  object.at("endpoint").get_to(plan.endpoint);
  plan.wire = wire_of(object.at("wire").get<std::string>());
  object.at("worker_sites").get_to(plan.worker_sites);
  object.at("server_sites").get_to(plan.server_sites);
  object.at("site_hosts").get_to(plan.site_hosts);
  object.at("packed").get_to(plan.packed);
  plan.on_devices = object.value("on_devices", false);
  plan.mapped = object.value("mapped", false);
  plan.reductions = reductions_of(object.at("reductions"));
  for (const auto& one : object.value("measured", json::array()))
    plan.measured.push_back({one.at("floats").get<std::size_t>(),
                             exchange::algorithm_of(one.at("algorithm").get<std::string>()),
                             one.at("seconds").get<double>()});
  for (const auto* sites : {&plan.worker_sites, &plan.server_sites})
    for (const auto site : *sites)
      if (!plan.site_hosts.empty() && site >= plan.site_hosts.size())
        throw std::out_of_range(fmt::format("site {} is on no host", site));
  return plan;
}

core::Error corrupt(const std::string& origin, const std::string& why) {
  return {core::Errc::corrupt, fmt::format("{}: not what a run writes: {}", origin, why)};
}

}  // namespace

bool ExchangePlan::on_one_host(std::uint32_t site, std::uint32_t other) const {
  return site_hosts.empty() || site_hosts.at(site) == site_hosts.at(other);
}

bool ExchangePlan::on_one_host() const {
  return std::ranges::adjacent_find(site_hosts, std::not_equal_to()) == site_hosts.end();
}

bool ExchangePlan::has_neighbours(std::uint32_t site) const {
  const auto any_member = [&](const auto& at) {
    return std::ranges::any_of(worker_sites, at) || std::ranges::any_of(server_sites, at);
  };
  return any_member([&](std::uint32_t other) { return other == site; }) &&
         any_member([&](std::uint32_t other) { return other != site && on_one_host(site, other); });
}

Algorithm ExchangePlan::reduction(std::size_t floats, core::Rounding rounding) const {
  const auto fits = [floats](const exchange::Choice& reduction) {
    return !reduction.up_to_floats || floats <= *reduction.up_to_floats;
  };
  const auto algorithm = std::ranges::find_if(reductions, fits)->algorithm;
  const bool must_not = rounding == core::Rounding::none && !rounds_masters;
  return algorithm == Algorithm::asa16 && must_not ? Algorithm::asa : algorithm;
}

float ExchangePlan::largest_usable() const noexcept {
  const bool rounds = !in_place() && (wire || std::ranges::find(reductions, Algorithm::asa16,
                                                                &exchange::Choice::algorithm) != reductions.end());
  return rounds && half() == core::HalfKind::fp16 ? core::kLargestFp16 : core::kLargestUsable;
}

std::shared_ptr<const exchange::Packing> packing_of(const nn::Layout& layout) {
  std::vector<float> marks(layout.arena_floats());
  layout.from_canonical(std::vector<float>(layout.canonical_floats(), 1.F), marks);
  return std::make_shared<const exchange::Packing>(marks);
}

std::string to_json(const RunPlan& plan) {
  auto whole = plan.backend.json.empty() ? json::object() : json::parse(plan.backend.json);
  whole[kArithmeticKey] = plan.arithmetic;
  if (!plan.exchange.in_place()) whole[kKey] = to_object(plan.exchange);
  return whole.dump();
}

core::Result<RunPlan> parse_plan(std::string_view text, const std::string& origin) {
  try {
    auto whole = json::parse(text);
    RunPlan plan;
    plan.arithmetic = whole.value(kArithmeticKey, 1);
    if (plan.arithmetic < 1 || plan.arithmetic > kArithmetic)
      return core::fail(core::Errc::config, fmt::format("{}: {} = {} was written by a newer version; use that version",
                                                        origin, kArithmeticKey, plan.arithmetic));
    if (whole.contains(kKey)) {
      plan.exchange = from_object(whole.at(kKey));
      plan.exchange.rounds_masters = plan.arithmetic < 2;
    }
    const bool more = whole.erase(kKey) + whole.erase(kArithmeticKey) > 0;
    if (!whole.empty()) plan.backend.json = more ? whole.dump() : std::string(text);
    return plan;
  } catch (const std::exception& why) {
    return tl::unexpected(corrupt(origin, why.what()));
  }
}

std::string to_json(const ExchangePlan& plan) { return plan.in_place() ? std::string() : to_object(plan).dump(); }

core::Result<ExchangePlan> parse_exchange(std::string_view text, const std::string& origin) {
  if (text.empty()) return ExchangePlan{};
  try {
    return from_object(json::parse(text));
  } catch (const std::exception& why) {
    return tl::unexpected(corrupt(origin, why.what()));
  }
}

}  // namespace troupe::experiment
