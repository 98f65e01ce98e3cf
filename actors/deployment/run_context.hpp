/// The objects that all sites of one run in a node's process share. The first site makes them: several workers of a node open the data
/// set once.
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

struct RunContext {
  RunSpec spec;
  std::uint64_t data = 0;  // fingerprint of the data set
  std::unique_ptr<nn::Backend> backend;
  core::HostAllocator memory;
  core::SteadyClock clock;

  [[nodiscard]] SiteContext of(caf::actor_system& system) { return {&system, &spec, backend.get(), &memory, &clock}; }
};

/// Thread-safe. A caller waits while its context is being made, and for no other context.
class RunContextCache {
 public:
  using MakeBackend = std::function<core::Result<std::unique_ptr<nn::Backend>>(const experiment::Settings&)>;
  /// `staged`: data::DataConfig::staged of this process.
  explicit RunContextCache(MakeBackend make_backend, std::string staged = {})
      : make_backend_(std::move(make_backend)), staged_(std::move(staged)) {}

  /// The context of the run with this `secret`. The callers own it together. Errors: those of core::Config::parse, experiment::resolve
  /// and build_run_spec, data::fingerprint, and the backend.
  [[nodiscard]] core::Result<std::shared_ptr<RunContext>> of(const std::string& secret, const std::string& config);

 private:
  struct CacheEntry {
    std::mutex making;
    std::weak_ptr<RunContext> context;
  };
  [[nodiscard]] core::Result<std::shared_ptr<RunContext>> make(const std::string& config) const;

  const MakeBackend make_backend_;
  const std::string staged_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<CacheEntry>> entries_;  // by secret
};

}  // namespace troupe::actors
