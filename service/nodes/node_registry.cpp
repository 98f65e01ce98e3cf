#include "service/nodes/node_registry.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/read_text.hpp"
#include "nn/checkpoint/file_system.hpp"
#include "transport/net/address.hpp"

namespace troupe::service {

core::Result<std::unique_ptr<NodeRegistry>> NodeRegistry::open(NodeOptions options) {
  std::unique_ptr<NodeRegistry> registry(new NodeRegistry(std::move(options)));
  const auto& file = registry->options_.file;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    if (error) return tl::unexpected(core::from_errno(error.value(), "look for", file));
    return registry;
  }
  const auto text = core::read_text("list of nodes", file);
  if (!text) return core::fail(core::Errc::io, text.error().message);
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("nodes") || !json["nodes"].is_array())
    return core::fail(core::Errc::corrupt, fmt::format("{} is not {{\"nodes\": [addresses]}}: remove it", file));
  const std::scoped_lock lock(registry->mutex_);
  for (const auto& address : json["nodes"])
    if (address.is_string() && !registry->nodes_.contains(address.get<std::string>()))
      registry->start(address.get<std::string>());
  return registry;
}

NodeRegistry::~NodeRegistry() {
  std::map<std::string, Node> nodes;
  {
    const std::scoped_lock lock(mutex_);
    for (auto& [address, node] : nodes_) node.thread.request_stop();
    nodes = std::move(nodes_);  // the threads look for themselves there, and need the mutex
    nodes_.clear();
  }
}

void NodeRegistry::start(const std::string& address) {
  auto& node = nodes_[address];
  node.thread = std::jthread([this, address](const std::stop_token& stop) { follow(address, stop); });
}

void NodeRegistry::follow(const std::string& address, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    auto report = options_.ask(address, stop);
    if (stop.stop_requested()) return;
    NodeRow row;
    {
      std::unique_lock lock(mutex_);
      const auto place = nodes_.find(address);
      if (stop.stop_requested() || place == nodes_.end()) return;
      auto& node = place->second;
      node.refused = !report && report.error().code == core::Errc::peer_lost;
      node.error = report ? std::string() : report.error().message;
      if (report) node.heard = options_.clock->now();
      if (report) node.report = std::move(*report);
      row = row_of(address, node);
    }
    if (options_.on_change) options_.on_change(row);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, options_.period, [] { return false; });
  }
}

NodeRow NodeRegistry::row_of(const std::string& address, const Node& node) const {
  NodeRow row{address, false, std::nullopt, node.report, node.error};
  if (node.heard) {
    const auto silence = options_.clock->now() - *node.heard;
    row.heard_s = core::seconds(silence);
    row.alive = !node.refused && silence < kDeadAfter;
  }
  if (!row.alive && row.report) row.report->runs.clear();
  return row;
}

core::Result<NodeRow> NodeRegistry::add(const std::string& address) {
  if (auto parsed = transport::parse_host_port(address); !parsed) return tl::unexpected(std::move(parsed.error()));
  const std::scoped_lock lock(mutex_);
  if (nodes_.contains(address)) return core::fail(core::Errc::config, fmt::format("{} is known already", address));
  if (nodes_.size() >= kMostNodes)
    return core::fail(core::Errc::config, fmt::format("there are {} nodes already: remove some", kMostNodes));
  auto all = addresses();
  all.push_back(address);
  if (auto written = write(all); !written) return tl::unexpected(std::move(written.error()));
  start(address);
  return row_of(address, nodes_.at(address));
}

core::Result<bool> NodeRegistry::remove(const std::string& address) {
  Node removed;
  {
    const std::scoped_lock lock(mutex_);
    const auto place = nodes_.find(address);
    if (place == nodes_.end()) return false;
    auto all = addresses();
    std::erase(all, address);
    if (auto written = write(all); !written) return tl::unexpected(std::move(written.error()));
    place->second.thread.request_stop();
    removed = std::move(place->second);
    nodes_.erase(place);
  }
  return true;  // its thread ends without the lock
}

std::vector<NodeRow> NodeRegistry::rows() const {
  const std::scoped_lock lock(mutex_);
  std::vector<NodeRow> rows;
  for (const auto& [address, node] : nodes_) rows.push_back(row_of(address, node));
  return rows;
}

std::vector<std::string> NodeRegistry::addresses() const {
  std::vector<std::string> all;
  for (const auto& [address, node] : nodes_) all.push_back(address);
  return all;
}

core::Result<void> NodeRegistry::write(const std::vector<std::string>& addresses) const {
  const auto text = nlohmann::json{{"nodes", addresses}}.dump() + "\n";
  const std::filesystem::path path(options_.file);
  const std::array parts{std::as_bytes(std::span(text))};
  return nn::replace_file(nn::system_files(), path.parent_path().string(), path.filename().string(), parts);
}

}  // namespace troupe::service
