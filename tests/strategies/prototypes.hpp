/// Two strategies in miniature that use what BSP and EASGD do not: holding requests, pushes and pulls apart, membership, and mail
/// between peers. Only here to show that hosts and virtual cluster carry them; the real ones are in strategies/.
#pragma once

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "strategies/strategy.hpp"

namespace troupe::strategies::prototypes {

/// Stale-synchronous: push the update of every step, then pull; a shard holds a pull until the slowest is within `bound`.
class SspWorker final : public WorkerHalf {
 public:
  void on(const StepDone& event, const WorkerContext&, WorkerActions& then) override {
    then.apply(optimize_delta(kParams, kGrads, kVelocity, event.optimizer));
    then.apply(copy(kAcc, kGrads));
    then.push(2 * event.step, kAcc);
    then.pull(2 * event.step + 1, kParams);
  }
  void on(const ExchangeDone& event, const WorkerContext&, WorkerActions& then) override {
    done_ += event.exchange % 2 == 0 ? 1 : 2;
    if (done_ < 3) return;  // both, in either order
    done_ = 0;
    then.compute();
  }

 private:
  int done_ = 0;
};

class SspServer final : public ServerHalf {
 public:
  SspServer(std::uint32_t workers, Step bound) : bound_(bound) {
    for (WorkerId w = 0; w < workers; ++w) clocks_[w] = 0;
  }
  void on(const Request& request, const ServerContext&, ServerActions& then) override {
    if (request.kind == Transfer::push) {
      then.apply(axpy(kCenter, 1, kPayload), request.id);
      then.reply(request.id);
      if (const auto clock = clocks_.find(request.worker); clock != clocks_.end()) clock->second = request.clock;
      return release(then);
    }
    if (const auto clock = clocks_.find(request.worker); clock != clocks_.end() && clock->second != request.clock) {
      throw std::logic_error("a pull overtook the push before it");
    }
    held_.push_back(request);
    then.hold(request.id);
    release(then);
  }
  void on(const MembershipChanged& change, const ServerContext&, ServerActions& then) override {
    const auto& live = change.membership.workers;
    std::erase_if(clocks_,
                  [&](const auto& entry) { return !std::binary_search(live.begin(), live.end(), entry.first); });
    release(then);
  }

 private:
  void release(ServerActions& then) {
    Step minimum = ~Step{0};
    for (const auto& [worker, clock] : clocks_) minimum = std::min(minimum, clock);
    std::erase_if(held_, [&](const Request& request) {
      if (request.clock > minimum && request.clock - minimum > bound_) return false;
      then.apply(copy(kPayload, kCenter), request.id);
      then.reply(request.id, minimum);
      return true;
    });
  }
  Step bound_;
  std::map<WorkerId, Step> clocks_;  // of the living
  std::vector<Request> held_;
};

class Ssp final : public Strategy {
 public:
  Ssp(std::uint32_t workers, Step bound) : workers_(workers), bound_(bound) {}
  Needs needs() const override { return {.servers = true, .worker_slots = {kAcc}}; }
  std::unique_ptr<WorkerHalf> worker() const override { return std::make_unique<SspWorker>(); }
  std::unique_ptr<ServerHalf> server() const override { return std::make_unique<SspServer>(workers_, bound_); }

 private:
  std::uint32_t workers_;
  Step bound_;
};

/// Gossip: after its local step a worker mixes in what came, and every second time sends half of its weight to someone.
class GossipWorker final : public WorkerHalf {
 public:
  explicit GossipWorker(std::uint32_t workers) : weight_(1.0 / workers) {}
  [[nodiscard]] double weight() const noexcept { return weight_; }

  void on(const StepDone& event, const WorkerContext& context, WorkerActions& then) override {
    then.apply(optimize(kParams, kGrads, kVelocity, event.optimizer));
    drain(then);
    auto random = context.random();
    std::vector<WorkerId> peers = context.membership.workers;
    std::erase(peers, context.self);
    if (!peers.empty() && random.uniform() < 0.5) {
      weight_ /= 2;
      then.send(peers[random.below(peers.size())], kParams, weight_);
    }
    then.compute();
  }
  void on(const Stopped&, const WorkerContext&, WorkerActions& then) override {
    stopped_ = true;
    drain(then);
  }
  void on(const PeerMail& mail, const WorkerContext&, WorkerActions& then) override {
    inbox_.push_back(mail);
    if (stopped_) drain(then);
  }
  void on(const SendSkipped& skipped, const WorkerContext&, WorkerActions&) override { weight_ += skipped.weight; }

 private:
  void drain(WorkerActions& then) {
    for (const auto& mail : std::exchange(inbox_, {})) {
      const double sum = weight_ + mail.weight;
      then.apply(
          scale_add(kParams, static_cast<float>(weight_ / sum), static_cast<float>(mail.weight / sum), mail.slot));
      weight_ = sum;
    }
  }
  double weight_;
  bool stopped_ = false;
  std::vector<PeerMail> inbox_;
};

class Gossip final : public Strategy {
 public:
  explicit Gossip(std::uint32_t workers) : workers_(workers) {}
  Needs needs() const override { return {.peers = true, .model = ModelHome::any_worker}; }
  std::unique_ptr<WorkerHalf> worker() const override { return std::make_unique<GossipWorker>(workers_); }
  std::unique_ptr<ServerHalf> server() const override { return nullptr; }

 private:
  std::uint32_t workers_;
};

}  // namespace troupe::strategies::prototypes
