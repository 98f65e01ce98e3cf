/// What the sites of one run in a node's process work with, made for the first of them and shared by the others: several workers of a
/// node open the data set once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "actors/deployment/site.hpp"
#include "core/buffer.hpp"
#include "core/clock.hpp"

namespace troupe::actors {

struct NodeGround {
  Blueprint plan;
  std::uint64_t data = 0;  // fingerprint of the data set
  std::unique_ptr<nn::Backend> backend;
  core::HostAllocator memory;
  core::SteadyClock clock;

  [[nodiscard]] SiteGround of(caf::actor_system& system) { return {&system, &plan, backend.get(), &memory, &clock}; }
};

/// Thread-safe. Whoever asks for a ground that is being made waits for it, and for no other.
class NodeGrounds {
 public:
  using MakeBackend = std::function<core::Result<std::unique_ptr<nn::Backend>>(const std::string& device)>;
  explicit NodeGrounds(MakeBackend make_backend) : make_backend_(std::move(make_backend)) {}

  /// The ground of the run that `secret` belongs to, for as long as somebody holds it. Errors: as of core::Config::parse,
  /// experiment::resolve and draw, data::fingerprint, and the backend's.
  [[nodiscard]] core::Result<std::shared_ptr<NodeGround>> of(const std::string& secret, const std::string& config);

 private:
  struct Place {
    std::mutex making;
    std::weak_ptr<NodeGround> ground;
  };
  [[nodiscard]] core::Result<std::shared_ptr<NodeGround>> make(const std::string& config) const;

  const MakeBackend make_backend_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Place>> places_;  // by secret
};

}  // namespace troupe::actors
