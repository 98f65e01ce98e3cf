// Linked into tests and into `troupe` in builds with ThreadSanitizer: reports to it how CAF's mailboxes order threads.
//
// Debian's libcaf_core is not instrumented, and its mailboxes are lock-free: without this file every message looks like a race.
// The definitions here replace CAF's own in the program (an executable's symbols come first), add the edge,
// and call the replaced ones. Edges are as narrow as the real ones, so that real races are still reported:
//
//   sending element e → handling e                        a message happens before its handling
//   sending to a → cleanup of a                           cleanup drops unhandled messages
//   end of handling by a, end of resume(a) → start of resume(a)
//                                                         one thread after the other runs an actor; the next may begin
//                                                         once a's mailbox is seen to be empty, before resume returns
//   launch(a) → start of resume(a)                        the actor sees what its spawner did
//   reading a remote message → handling or dropping it    any thread may deliver it: a message that is too early waits
//   handing element e to the clock → sending it           its queue is lock-free, too
//   every release of a reference → the release that destroys
//
// For sanitised builds of CAF 0.17 only; tests/tsan.supp silences allocations and locks of the library itself.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include <caf/all.hpp>
#include <caf/detail/thread_safe_actor_clock.hpp>
#include <caf/io/basp/message_queue.hpp>

extern "C" {
void __tsan_acquire(void* address);  // NOLINT(bugprone-reserved-identifier): ThreadSanitizer's interface
void __tsan_release(void* address);  // NOLINT(bugprone-reserved-identifier)
}

namespace {

template <class Function>
Function* replaced(const char* symbol) {
  void* found = ::dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) {
    std::fprintf(stderr, "tsan_caf: this CAF has no %s: adapt tests/tsan_caf.cpp\n", symbol);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

/// An address inside the actor that stands for its mailbox; the actor's own address stands for its turns.
void* mailbox_of(caf::scheduled_actor* actor) { return reinterpret_cast<char*>(actor) + sizeof(void*); }

}  // namespace

namespace caf {

void scheduled_actor::enqueue(mailbox_element_ptr element, execution_unit* unit) {
  static const auto next = replaced<void(scheduled_actor*, mailbox_element_ptr, execution_unit*)>(
      "_ZN3caf15scheduled_actor7enqueueESt10unique_ptrINS_15mailbox_elementENS_6detail8disposerEEPNS_14execution_"
      "unitE");
  __tsan_acquire(element.get());  // of a remote message: if this actor has ended, it is destroyed here
  __tsan_release(element.get());
  __tsan_release(mailbox_of(this));
  next(this, std::move(element), unit);
}

bool scheduled_actor::cleanup(error&& reason, execution_unit* unit) {
  static const auto next = replaced<bool(scheduled_actor*, error&&, execution_unit*)>(
      "_ZN3caf15scheduled_actor7cleanupEONS_5errorEPNS_14execution_unitE");
  __tsan_acquire(mailbox_of(this));
  return next(this, std::move(reason), unit);
}

void blocking_actor::enqueue(mailbox_element_ptr element, execution_unit* unit) {
  static const auto next = replaced<void(blocking_actor*, mailbox_element_ptr, execution_unit*)>(
      "_ZN3caf14blocking_actor7enqueueESt10unique_ptrINS_15mailbox_elementENS_6detail8disposerEEPNS_14execution_unitE");
  __tsan_release(element.get());
  next(this, std::move(element), unit);
}

scheduled_actor::activation_result scheduled_actor::reactivate(mailbox_element& element) {
  static const auto next = replaced<activation_result(scheduled_actor*, mailbox_element&)>(
      "_ZN3caf15scheduled_actor10reactivateERNS_15mailbox_elementE");
  __tsan_acquire(&element);
  const auto result = next(this, element);
  __tsan_release(this);
  return result;
}

intrusive::task_result blocking_actor::mailbox_visitor::operator()(mailbox_element& element) {
  static const auto next = replaced<intrusive::task_result(mailbox_visitor*, mailbox_element&)>(
      "_ZN3caf14blocking_actor15mailbox_visitorclERNS_15mailbox_elementE");
  __tsan_acquire(&element);
  return next(this, element);
}

void scheduled_actor::launch(execution_unit* unit, bool lazy, bool hide) {
  static const auto next = replaced<void(scheduled_actor*, execution_unit*, bool, bool)>(
      "_ZN3caf15scheduled_actor6launchEPNS_14execution_unitEbb");
  __tsan_release(this);
  next(this, unit, lazy, hide);
}

resumable::resume_result scheduled_actor::resume(execution_unit* unit, size_t most) {
  static const auto next = replaced<resume_result(scheduled_actor*, execution_unit*, size_t)>(
      "_ZN3caf15scheduled_actor6resumeEPNS_14execution_unitEm");
  __tsan_acquire(this);
  const resume_result result = next(this, unit, most);
  __tsan_release(this);
  return result;
}

void detail::thread_safe_actor_clock::schedule_message(time_point time, strong_actor_ptr receiver,
                                                       mailbox_element_ptr element) {
  static const auto next = replaced<void(thread_safe_actor_clock*, time_point, strong_actor_ptr, mailbox_element_ptr)>(
      "_ZN3caf6detail23thread_safe_actor_clock16schedule_messageENSt6chrono10time_pointINS2_3_V212steady_clockENS2_"
      "8durationIlSt5ratioILl1ELl1000000000EEEEEENS_13intrusive_ptrINS_19actor_control_blockEEESt10unique_ptrINS_"
      "15mailbox_elementENS0_8disposerEE");
  __tsan_release(element.get());
  next(this, time, std::move(receiver), std::move(element));
}

/// The clock sends by it.
void actor_control_block::enqueue(mailbox_element_ptr element, execution_unit* unit) {
  static const auto next = replaced<void(actor_control_block*, mailbox_element_ptr, execution_unit*)>(
      "_ZN3caf19actor_control_block7enqueueESt10unique_ptrINS_15mailbox_elementENS_6detail8disposerEEPNS_14execution_"
      "unitE");
  __tsan_acquire(element.get());
  next(this, std::move(element), unit);
}

void intrusive_ptr_release(actor_control_block* block) {
  static const auto next =
      replaced<void(actor_control_block*)>("_ZN3caf21intrusive_ptr_releaseEPNS_19actor_control_blockE");
  __tsan_release(block);
  __tsan_acquire(block);
  next(block);
}

void intrusive_ptr_release_weak(actor_control_block* block) {
  static const auto next =
      replaced<void(actor_control_block*)>("_ZN3caf26intrusive_ptr_release_weakEPNS_19actor_control_blockE");
  __tsan_release(block);
  __tsan_acquire(block);
  next(block);
}

void io::basp::message_queue::push(execution_unit* unit, uint64_t id, strong_actor_ptr receiver,
                                   mailbox_element_ptr element) {
  static const auto next =
      replaced<void(message_queue*, execution_unit*, uint64_t, strong_actor_ptr, mailbox_element_ptr)>(
          "_ZN3caf2io4basp13message_queue4pushEPNS_14execution_unitEmNS_13intrusive_ptrINS_19actor_"
          "control_blockEEESt10unique_ptrINS_15mailbox_elementENS_6detail8disposerEE");
  if (element) __tsan_release(element.get());  // none: a dropped message
  next(this, unit, id, std::move(receiver), std::move(element));
}

}  // namespace caf
