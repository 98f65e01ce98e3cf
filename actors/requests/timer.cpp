#include "actors/requests/timer.hpp"

#include <utility>

namespace troupe::actors {
namespace {

/// Has no thread, no mailbox and no end of its own, as CAF's decorators. Others must hold an actor that only waits for its timer.
class WeakReference final : public caf::monitorable_actor {
 public:
  explicit WeakReference(caf::weak_actor_ptr target)
      : monitorable_actor(caf::actor_config{}.add_flag(is_hidden_flag)), target_(std::move(target)) {}

  void enqueue(caf::mailbox_element_ptr message, caf::execution_unit* context) override {
    const auto target = target_.lock();
    if (!target) return;
    message->sender = target;
    target->enqueue(std::move(message), context);
  }

 private:
  caf::weak_actor_ptr target_;
};

}  // namespace

Timer::Timer(caf::local_actor* self)
    : weak_self_(caf::make_actor<WeakReference, caf::actor>(self->home_system().next_actor_id(),
                                                            self->home_system().node(), &self->home_system(),
                                                            caf::weak_actor_ptr(self->ctrl()))) {}

}  // namespace troupe::actors
