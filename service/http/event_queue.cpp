#include "service/http/event_queue.hpp"

#include <utility>

#include <fmt/format.h>

namespace troupe::service {

Event make_event(std::string_view name, std::string_view data, std::string_view id, bool droppable) {
  auto text = fmt::format("event: {}\ndata: {}\n", name, data);
  if (!id.empty()) text += fmt::format("id: {}\n", id);
  text += "\n";
  return {std::make_shared<const std::string>(std::move(text)), droppable};
}

void EventQueue::drop_for(std::size_t bytes) {
  std::deque<Event> kept;
  for (auto& event : events_) {
    if (event.droppable && bytes_ + bytes > most_) {
      bytes_ -= event.text->size();
      ++dropped_;
    } else {
      kept.push_back(std::move(event));
    }
  }
  events_ = std::move(kept);
}

void EventQueue::add(const Event& event) {
  const auto bytes = event.text->size();
  if (bytes_ + bytes > most_) drop_for(bytes);
  if (bytes_ + bytes <= most_ || events_.empty()) {
    bytes_ += bytes;
    events_.push_back(event);
  } else if (event.droppable) {
    ++dropped_;
  } else {
    ended_ = true;  // the session sends what is here, and ends: the client resumes behind it
  }
}

bool EventQueue::push(std::span<const Event> events) {
  const std::scoped_lock lock(mutex_);
  if (abandoned_ || ended_) return false;
  for (std::size_t i = 0; i < events.size() && !ended_; ++i) add(events[i]);
  if (ready_ && (ended_ || !events_.empty())) ready_();
  return !ended_;
}

void EventQueue::end() {
  const std::scoped_lock lock(mutex_);
  ended_ = true;
  if (ready_) ready_();
}

std::size_t EventQueue::free_bytes() const {
  const std::scoped_lock lock(mutex_);
  return bytes_ < most_ ? most_ - bytes_ : 0;
}

bool EventQueue::abandoned() const {
  const std::scoped_lock lock(mutex_);
  return abandoned_;
}

std::uint64_t EventQueue::dropped() const {
  const std::scoped_lock lock(mutex_);
  return dropped_;
}

void EventQueue::on_ready(std::function<void()> ready) {
  const std::scoped_lock lock(mutex_);
  ready_ = std::move(ready);
}

std::string EventQueue::take(std::size_t most_bytes) {
  const std::scoped_lock lock(mutex_);
  std::string text;
  while (!events_.empty() && (text.empty() || text.size() + events_.front().text->size() <= most_bytes)) {
    text += *events_.front().text;
    bytes_ -= events_.front().text->size();
    events_.pop_front();
  }
  return text;
}

bool EventQueue::ended() const {
  const std::scoped_lock lock(mutex_);
  return ended_ && events_.empty();
}

void EventQueue::abandon() {
  const std::scoped_lock lock(mutex_);
  abandoned_ = true;
  events_.clear();
  bytes_ = 0;
  ready_ = nullptr;
}

}  // namespace troupe::service
