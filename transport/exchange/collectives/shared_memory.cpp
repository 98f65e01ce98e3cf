// In place over mapped arenas: each member sends the place of its vector, which is then ready, sums its slice of all vectors into all of
// them, and sends a confirmation.
#include <chrono>
#include <string>
#include <thread>

#include "transport/exchange/arenas.hpp"
#include "transport/exchange/collectives/task.hpp"
#include "transport/exchange/reduce.hpp"

namespace troupe::exchange {
namespace {

using transport::TagKind;

constexpr int kAgain = 3;
constexpr std::chrono::milliseconds kPause{20};

class SharedMemory final : public Task {
 public:
  using Task::Task;

 private:
  enum Signal : std::size_t { ready, written };

  void begin() override {
    own_ = task_.arenas->place_of(task_.vector);
    places_.resize(ranks());
    vectors_.assign(ranks(), transport::Mapping(task_.vector, nullptr));
    missing_ = ranks() - 1;
    if (missing_ == 0) return work();
    for (const auto other : others()) {
      auto& place = places_[other];
      receive(other, TagKind::signal, ready, {reinterpret_cast<std::byte*>(&place), sizeof place},
              [this, other] { take(other); });
      send(other, TagKind::signal, ready, {reinterpret_cast<const std::byte*>(&own_), sizeof own_}, [] {});
    }
  }

  void take(std::size_t other) {
    const auto owner = group_.peers[other];
    auto vector = task_.arenas->vector_at(owner, places_[other], task_.vector.size());
    // The owner may refuse one of many simultaneous calls: retry.
    for (int again = 0; again < kAgain && !vector && vector.error().code == core::Errc::peer_lost; ++again) {
      std::this_thread::sleep_for(kPause);
      vector = task_.arenas->vector_at(owner, places_[other], task_.vector.size());
    }
    if (!vector) {
      const auto why = "the vector of rank " + std::to_string(other) + ": " + vector.error().message;
      const bool lost = vector.error().code == core::Errc::peer_lost || vector.error().code == core::Errc::timeout;
      if (lost) operations_.give_up(owner, why);  // all exchanges must receive the loss, not only this one
      return fail({lost ? core::Errc::peer_lost : vector.error().code, why});
    }
    vectors_[other] = std::move(*vector);
    if (--missing_ == 0) work();
  }

  void work() {
    std::vector<core::Span> spans;
    for (const auto& vector : vectors_) spans.push_back(vector.view());
    if (task_.root)
      exchange::broadcast_slice(kernels_, spans, rank(), *task_.root);
    else
      exchange::reduce_slice(kernels_, spans, rank(), task_.scale);
    for (const auto other : others()) {
      receive(other, TagKind::signal, written, {}, [] {});
      send(other, TagKind::signal, written, {}, [] {});
    }
  }

  ArenaPlace own_;
  std::vector<ArenaPlace> places_;           // by rank
  std::vector<transport::Mapping> vectors_;  // by rank; held because an owner may be lost
  std::size_t missing_ = 0;
};

}  // namespace

std::unique_ptr<Collective> make_shared_memory(OperationQueue& operations, const core::Kernels& kernels, Group group,
                                               CollectiveTask task, Collective::Done done) {
  return std::make_unique<SharedMemory>(operations, kernels, std::move(group), std::move(task), std::move(done));
}

}  // namespace troupe::exchange
