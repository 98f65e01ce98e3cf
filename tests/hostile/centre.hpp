/// Site 0 of a run: exchanger, servers and stand-ins are the real ones, and the other sites are endpoints in the test's hands, each with a
/// certificate or secret that is good. What the run's supervisors are told, the test is told. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/call_headers.hpp"
#include "actors/deployment/site.hpp"
#include "actors/control/system.hpp"
#include "transport/exchange/calls.hpp"
#include "transport/exchange/envelope.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::hostile {

/// A site elsewhere: worker k is at site k + 1.
struct RawSite {
  std::shared_ptr<transport::Endpoint> endpoint;
  std::unique_ptr<exchange::Courier> courier;
  std::unique_ptr<exchange::Calls> calls;  // none: whatever it sends is the test's
  transport::Peer centre{};
};

/// How a vector travels.
struct Wire {
  std::optional<core::HalfKind> half{};
  core::Rounding rounding = core::Rounding::both;
};

class Centre {
 public:
  struct Options {
    std::vector<std::string> settings{};  // of a SmallRun
    std::uint32_t workers = 2;
    std::vector<std::uint32_t> server_sites{0};   // by shard
    std::vector<strategies::WorkerId> members{};  // none: all
    std::string endpoint = "inproc";
    std::vector<std::uint32_t> raw{};  // sites without Calls
  };
  explicit Centre(const Options& options);
  ~Centre();
  Centre(const Centre&) = delete;
  Centre& operator=(const Centre&) = delete;

  [[nodiscard]] RawSite& site(std::uint32_t number) { return sites_.at(number - 1); }
  [[nodiscard]] std::size_t arena_floats() const { return layout_->arena_floats(); }
  [[nodiscard]] std::uint32_t shards() const { return static_cast<std::uint32_t>(company_.servers.size()); }
  [[nodiscard]] std::size_t shard_floats(strategies::ShardId shard) const;
  [[nodiscard]] caf::actor_system& system() { return system_; }

  /// `worker`'s.
  [[nodiscard]] static actors::ShardMessage request(strategies::WorkerId worker, strategies::Transfer kind,
                                                    strategies::Step clock = 1, strategies::ShardId shard = 0);
  template <class Message>
  [[nodiscard]] std::string header(actors::What what, const Message& message) {
    return actors::pack_header(system_, what, message);
  }
  /// Makes the call from that site, and waits for its answer.
  core::Result<std::string> call(std::uint32_t from, const std::string& header, core::Span vector, exchange::Lend lend);
  /// Makes it and does not wait; what it lends lives until then.
  void call_on(std::uint32_t from, const std::string& header, std::vector<float> vector, exchange::Lend lend,
               Wire wire = {});
  [[nodiscard]] std::size_t open() const { return open_; }

  /// An honest worker's pull: the shard as it is now.
  [[nodiscard]] std::vector<float> pull(strategies::WorkerId worker, strategies::ShardId shard = 0);
  /// And its push, to all shards.
  void push(strategies::WorkerId worker, float value, strategies::Step clock);

  /// Ends the connection of that site, whose worker is no member any more: what a coordinator does when one is lost.
  void lose(std::uint32_t number);

  // What members here ask of a server elsewhere; on_call answers for it.
  std::function<void(std::uint32_t site, exchange::Calls::Incoming call)> on_call{};
  /// The answer is for a worker that is elsewhere, too, and goes nowhere.
  void ask(const actors::ShardMessage& message);
  [[nodiscard]] core::Result<actors::SnapshotTaken> snapshot(strategies::ShardId shard, std::uint64_t id);

  /// Delivers what has completed at the other sites until `done`, or a test failure.
  void drive(const std::function<bool()>& done);
  /// The same, where actors here say when it is done. Throws after a long time.
  void await(const std::function<bool()>& done);
  void poll();

  /// What coordinator and recorder have been told so far.
  struct Told {
    std::vector<actors::Trouble> troubles;
    std::vector<actors::SiteLost> losses;
    std::vector<std::string> notes;
  };
  [[nodiscard]] const Told& told();

 private:
  void deliver(const std::vector<transport::Completion>& completions);

  tests::SmallRun run_;
  experiment::Blueprint plan_;
  core::SteadyClock clock_;
  core::HostAllocator memory_;
  std::shared_ptr<const nn::Layout> layout_;
  std::shared_ptr<transport::CompletionQueue> queue_;
  actors::SystemConfig config_;
  caf::actor_system system_{config_};
  caf::scoped_actor self_{system_};
  std::unique_ptr<actors::Site> site_;
  actors::Company company_;  // as site 0 sees it
  std::vector<RawSite> sites_;
  std::vector<transport::OperationId> establishing_;
  std::size_t open_ = 0;
  strategies::ExchangeId exchanges_ = 1'000'000;  // of honest workers
  Told told_;
};

}  // namespace troupe::hostile
