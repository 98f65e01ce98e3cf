/// Work-helping: an actor that would wait for an idle pooled actor executes that actor itself, on its own thread. The request then wakes no
/// sleeping thread, takes no other core, and finds the borrowed memory in the cache of the core that wrote it. Messages of other senders
/// are handled in mailbox order, as always. Work that remains when the helper has its answer goes to the pool. Thread rule: the helping
/// actor's thread.
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

  /// Sends, and keeps the receiver for help() if the message woke it. Of several receivers the last is kept; the pool executes the others
  /// at the same time. REQUIRES help() or leave() before the sender's handler ends.
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

  /// Executes the kept receiver for as many messages as were sent since it was kept; the pool does the rest. Without a kept receiver it
  /// does nothing.
  void help();
  /// Gives the kept receiver to the pool, because the sender has other work.
  void leave();

  void exec_later(caf::resumable* job) override;

 private:
  void to_pool(caf::resumable* job) { scoped_execution_unit::exec_later(job); }

  caf::resumable* kept_ = nullptr;  // with the reference that the sender took for its execution
  std::size_t messages_ = 0;        // sent since it was kept
  bool keeping_ = false;
};

}  // namespace troupe::actors
