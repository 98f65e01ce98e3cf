#include "actors/worker/loader.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "actors/protocol/supervision.hpp"
#include "actors/requests/deadlines.hpp"
#include "actors/worker/decoder.hpp"
#include "data/order/lease_lookahead.hpp"

namespace troupe::actors {

class LoaderBody {
 public:
  LoaderBody(LoaderActor::stateful_pointer<LoaderState> self, LoaderSetup setup)
      : self_(self), setup_(std::move(setup)), thread_(setup_.cpus, *setup_.clock) {
    for (std::int64_t k = 0; k <= setup_.batches_ahead; ++k) {
      buffers_.push_back(std::make_shared<StagingBuffer>(setup_.form, *setup_.builder, setup_.batch));
      free_.push_back(static_cast<std::uint32_t>(k));
    }
    for (std::size_t k = 0; k < setup_.decoders.size(); ++k) idle_.push_back(k);
  }

  void begin(const ActorDirectory& actors) {
    actors_ = actors;
    request();
  }

  void granted(const LeaseGrant& grant) {
    // The coordinator may be in another process: a lease must lie within the data set and the buffers.
    if (grant.leases.size() > lookahead_.pending() ||
        !std::ranges::all_of(grant.leases, [this](const data::Lease& lease) {
          return lease.count == setup_.batch && lease.first >= 0 && lease.first < setup_.builder->size() &&
                 std::isfinite(lease.epoch_position) && lease.lr_factor > 0 && std::isfinite(lease.lr_factor);
        }))
      return run_error(core::Errc::data, "invalid leases");
    const auto now = setup_.clock->now();
    lookahead_.granted(grant.leases.size(), now, grant.after_pause);
    for (const auto& lease : grant.leases) stock_.push_back({lease, grant.after_pause ? now.count() : 0});
    build();
  }

  void returned(std::uint32_t buffer) {
    free_.push_back(buffer);
    lookahead_.used(setup_.clock->now(), free_.size() == buffers_.size());
    build();
    request();
  }

 private:
  struct Granted {
    data::Lease lease;
    core::Duration::rep granted_ns = 0;  // after a pause; else 0
  };
  struct Ordered {
    BatchReady ready;
    bool decoded = false;
    core::Duration begun{0};
  };

  BorrowedBatch lend(std::uint32_t buffer) { return StagingBuffer::lend(buffers_[buffer]); }

  /// Asks for the leases that it may have, less those held or requested; several at once, to save messages, where steps are fast.
  void request() {
    const auto most = lookahead_.most(buffers_.size()), in_buffers = buffers_.size() - free_.size();
    const auto has = in_buffers + stock_.size() + lookahead_.pending();
    if (most <= has || (most >= buffers_.size() && (most - has) * 2 < buffers_.size())) return;
    const auto leases = static_cast<std::uint32_t>(most - has);
    lookahead_.asked(leases, setup_.clock->now());
    self_->send(actors_.coordinator, LeaseRequest{setup_.worker, leases});
  }

  void build() {
    while (!stock_.empty() && !free_.empty() && (setup_.decoders.empty() || !idle_.empty())) {
      const auto [lease, granted_ns] = stock_.front();
      stock_.pop_front();
      const auto buffer = free_.front();
      free_.pop_front();
      order_.push_back({{buffer, lease, granted_ns, 0}, false, setup_.clock->now()});
      if (setup_.decoders.empty()) {
        thread_.stay_off_workers();
        decoded(decode(*setup_.builder, {buffer, lease}, lend(buffer)));
      } else {
        send_to_decoder(buffer, lease);
      }
    }
  }

  void send_to_decoder(std::uint32_t buffer, const data::Lease& lease) {
    const auto decoder = idle_.front();
    idle_.pop_front();
    const auto deadline = decode_deadline(setup_.batch, static_cast<std::int64_t>(setup_.loaders));
    self_->request(setup_.decoders[decoder], deadline, DecodeOrder{buffer, lease}, lend(buffer))
        .then(
            [this, decoder](const Decoded& result) {
              idle_.push_back(decoder);
              decoded(result);
              build();
            },
            [this](const caf::error& error) {
              const bool late = error == caf::sec::request_timeout;
              run_error(late ? core::Errc::timeout : core::Errc::internal,
                        "decoding failed: " + self_->system().render(error));
            });
  }

  /// Sends the decoded batches at the front of the order: the worker gets its leases in order.
  void decoded(const Decoded& result) {
    if (!result.error.empty()) return run_error(result.code, result.error);
    for (auto& entry : order_) {
      if (entry.ready.buffer != result.buffer) continue;
      entry.decoded = true;
      lookahead_.made(setup_.clock->now() - entry.begun);
      entry.ready.replaced = result.replaced;
    }
    while (!order_.empty() && order_.front().decoded) {
      const auto ready = order_.front().ready;
      order_.pop_front();
      self_->send(actors_.workers[setup_.worker], ready, lend(ready.buffer));
    }
  }

  void run_error(core::Errc code, const std::string& text) {
    self_->send(actors_.coordinator, RunError{code, text, actors_.site});
  }

  LoaderActor::stateful_pointer<LoaderState> self_;
  LoaderSetup setup_;
  DecodingThread thread_;
  ActorDirectory actors_;
  std::vector<std::shared_ptr<StagingBuffer>> buffers_;
  std::deque<std::uint32_t> free_;
  std::deque<Granted> stock_;  // leases without a buffer
  std::deque<Ordered> order_;  // leases with a buffer, in order, not yet sent
  data::LeaseLookahead lookahead_;
  std::deque<std::size_t> idle_;  // decoders without an order of this loader
};

LoaderState::LoaderState() = default;
LoaderState::~LoaderState() = default;

LoaderActor::behavior_type loader(LoaderActor::stateful_pointer<LoaderState> self, LoaderSetup setup) {
  const auto name = "loader " + std::to_string(setup.worker);
  self->state.body = std::make_unique<LoaderBody>(self, std::move(setup));
  self->set_default_handler(caf::drop);
  return {
      [self, name](const ActorDirectory& actors) {
        report_exceptions(self, name, actors);
        self->state.body->begin(actors);
      },
      [self](const LeaseGrant& grant) { self->state.body->granted(grant); },
      [self](const BatchReturn& back) { self->state.body->returned(back.buffer); },
      [self](const Halt&) { self->quit(); },
  };
}

}  // namespace troupe::actors
