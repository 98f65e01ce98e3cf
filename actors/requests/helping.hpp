/// Work-helping: an actor that is about to wait for an idle pooled actor executes it itself, on its own thread. A request then
/// costs no wake-up of a sleeping thread, takes no core from anyone else, and finds the lent memory in the cache of the core
/// that wrote it. Whoever else writes to the actor meanwhile is served in the mailbox's order, as always; what is left of its
/// work when the helper's answer is there goes to the pool. One thread: the helping actor's.
#pragma once

#include <utility>

#include <caf/all.hpp>
#include <caf/scoped_execution_unit.hpp>

namespace troupe::actors {

class HelpingUnit final : public caf::scoped_execution_unit {
 public:
  explicit HelpingUnit(caf::actor_system& system) : scoped_execution_unit(&system) {}
  HelpingUnit(const HelpingUnit&) = delete;
  HelpingUnit& operator=(const HelpingUnit&) = delete;
  ~HelpingUnit() override;

  /// Sends, and keeps the receiver for help() if the message woke it up. Of several receivers the last is kept; the pool
  /// executes the others at the same time. Call help() or leave() before the sender's handler ends.
  template <class Self, class Receiver, class... Ts>
  void send(Self* self, const Receiver& receiver, Ts&&... message) {
    auto* const usual = self->context();
    self->context(this);
    keeping_ = true;
    self->send(receiver, std::forward<Ts>(message)...);
    keeping_ = false;
    ++messages_;
    self->context(usual);
  }

  /// Executes the kept receiver for as many messages as were sent since it was kept; the pool does the rest. Does nothing if
  /// none is kept.
  void help();
  /// The sender has something else to do: the pool executes the kept receiver.
  void leave();

  void exec_later(caf::resumable* job) override;

 private:
  void to_pool(caf::resumable* job) { scoped_execution_unit::exec_later(job); }

  caf::resumable* kept_ = nullptr;  // with the reference that the sender took for whoever executes it
  std::size_t messages_ = 0;        // sent since it was kept
  bool keeping_ = false;
};

}  // namespace troupe::actors
