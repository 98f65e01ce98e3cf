/// Where the live state of a run comes from: its directory on this host, or a service. A thread of its own reads; the one that shows never
/// waits for it.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "apps/client/service_client.hpp"
#include "apps/top/screen.hpp"
#include "core/error.hpp"
#include "core/file_descriptor.hpp"

namespace troupe::apps {

/// The newest view, and a descriptor that becomes readable when there is a newer one. Thread-safe.
class LatestView {
 public:
  LatestView();
  void put(LiveView view);
  /// Keeps the state and changes what is wrong.
  void put_problem(const std::string& run, std::string problem);
  /// No newer view will come, for good.
  void fail(core::Error error);
  [[nodiscard]] LiveView get() const;
  [[nodiscard]] std::optional<core::Error> failure() const;
  [[nodiscard]] int waker() const noexcept { return waker_.get(); }

 private:
  void wake() const;
  mutable std::mutex mutex_;
  LiveView view_;
  std::optional<core::Error> failure_;
  core::FileDescriptor waker_;
};

class LiveSource {
 public:
  virtual ~LiveSource() = default;
  /// The state now. Blocks for as long as it takes to read it.
  [[nodiscard]] virtual core::Result<LiveView> once() = 0;
  /// Puts views into `latest` until `stop`.
  virtual void follow(LatestView& latest, const std::stop_token& stop) = 0;
};

/// The run `run` in `directory`, by its metrics.jsonl.
[[nodiscard]] std::unique_ptr<LiveSource> local_source(const std::string& directory, const std::string& run);

/// The run `run` of a service; empty: the newest one that runs there. A lost connection is made again for as long as it takes.
[[nodiscard]] std::unique_ptr<LiveSource> service_source(ServiceAddress address, const std::string& run);

}  // namespace troupe::apps
