#include "gpu/device/host_queue.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>
#include <vector>

namespace troupe::gpu::host {
namespace {

void reach(EventState& event) {
  event.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  ++event.reached;
}

}  // namespace

HostQueue::HostQueue(std::optional<std::uint64_t> seed, bool lazy)
    : lazy_(lazy), later_(lazy || seed.has_value()), random_(seed.value_or(0), core::Purpose::schedule, 0) {}

HostQueue::StreamId HostQueue::add_stream() {
  const std::lock_guard lock(mutex_);
  waiting_[next_];
  return next_++;
}

void HostQueue::remove_stream(StreamId stream) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(stream);
}

void HostQueue::add(StreamId stream, Work work) {
  if (later_)
    put(stream, {.work = std::move(work)});
  else
    work();
}

void HostQueue::record(StreamId stream, const std::shared_ptr<EventState>& event) {
  ++event->recorded;
  if (later_)
    put(stream, {.work = [event] { reach(*event); }, .records = event.get()});
  else
    reach(*event);
}

void HostQueue::wait(StreamId stream, const std::shared_ptr<EventState>& event) {
  if (later_) put(stream, {.work = [] {}, .event = event, .target = event->recorded});
}

void HostQueue::put(StreamId stream, Item item) {
  const std::lock_guard lock(mutex_);
  waiting_.at(stream).push_back(std::move(item));
  if (!lazy_ && random_.below(4) == 0) advance();  // the device works while the host goes on
}

void HostQueue::drain(StreamId stream) {
  if (!later_) return;
  const std::lock_guard lock(mutex_);
  auto& items = waiting_.at(stream);
  while (!items.empty())
    if (lazy_)
      execute_first(items);
    else
      advance();
}

void HostQueue::execute_first(std::deque<Item>& items) {
  while (items.front().event && items.front().event->reached < items.front().target) {
    const auto recording = std::ranges::find_if(waiting_, [&](const auto& other) {
      return std::ranges::any_of(other.second, [&](const Item& i) { return i.records == items.front().event.get(); });
    });
    if (recording == waiting_.end() || &recording->second == &items)
      throw std::logic_error("streams wait for each other");
    execute_first(recording->second);
  }
  const Item item = std::move(items.front());
  items.pop_front();
  item.work();
}

void HostQueue::advance() {
  std::vector<std::deque<Item>*> ready;
  bool any = false;
  for (auto& [stream, items] : waiting_) {
    any = any || !items.empty();
    if (!items.empty() && (!items.front().event || items.front().event->reached >= items.front().target))
      ready.push_back(&items);
  }
  if (ready.empty()) {
    // A wait is for a record that was queued before it: something can always be executed.
    if (any) throw std::logic_error("streams wait for each other");
    return;
  }
  auto& items = *ready[random_.below(ready.size())];
  const Item item = std::move(items.front());
  items.pop_front();
  item.work();
}

}  // namespace troupe::gpu::host
