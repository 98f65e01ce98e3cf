/// Matches the messages of one sender with the receives posted for it: equal tags, oldest first. Every endpoint that frames its own
/// messages uses it. Receive and Message are small values with a member `OperationId operation`. Not thread-safe. Cost: O(log n)
/// per call for n waiting items; remove_*() also walks the items of its tag, drain() all.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "transport/completion_queue.hpp"
#include "transport/tag.hpp"

namespace troupe::transport {

template <class Receive, class Message>
class Matcher {
 public:
  /// A message arrived. Returns its receive; or nothing, and the message waits.
  [[nodiscard]] std::optional<Receive> arrive(Tag tag, Message message) {
    return match(tag, receives_, messages_, std::move(message));
  }
  /// A receive is posted. Returns its message; or nothing, and the receive waits.
  [[nodiscard]] std::optional<Message> post(Tag tag, Receive receive) {
    return match(tag, messages_, receives_, std::move(receive));
  }
  /// Removes and returns the oldest receive of this tag, or nothing. For callers that do not keep the message here.
  [[nodiscard]] std::optional<Receive> take_receive(Tag tag) {
    const auto oldest = receives_.lower_bound(tag);
    if (oldest == receives_.end() || oldest->first != tag) return std::nullopt;
    return std::move(receives_.extract(oldest).mapped());
  }
  /// Undoes take_receive(): the receive is the oldest of its tag again.
  void give_back(Tag tag, Receive receive) {
    receives_.emplace_hint(receives_.lower_bound(tag), tag, std::move(receive));
  }
  /// For cancel: removes and returns a waiting item; nothing when it does not wait (any more).
  std::optional<Message> remove_message(Tag tag, OperationId operation) { return remove(messages_, tag, operation); }
  std::optional<Receive> remove_receive(Tag tag, OperationId operation) { return remove(receives_, tag, operation); }

  /// For a loss: empties the matcher. Every waiting receive and message, by tag and then in order, goes to the functions.
  template <class OnReceive, class OnMessage>
  void drain(OnReceive on_receive, OnMessage on_message) {
    for (auto& [tag, receive] : std::exchange(receives_, {})) on_receive(tag, receive);
    for (auto& [tag, message] : std::exchange(messages_, {})) on_message(tag, message);
  }

  [[nodiscard]] std::size_t waiting_messages() const noexcept { return messages_.size(); }
  [[nodiscard]] std::size_t waiting_receives() const noexcept { return receives_.size(); }

 private:
  // A multimap keeps equal keys in insertion order: that is the order within a tag.
  template <class Wanted, class Offered>
  static std::optional<Wanted> match(Tag tag, std::multimap<Tag, Wanted>& wanted, std::multimap<Tag, Offered>& offered,
                                     Offered item) {
    const auto oldest = wanted.lower_bound(tag);
    if (oldest == wanted.end() || oldest->first != tag) {
      offered.emplace(tag, std::move(item));
      return std::nullopt;
    }
    return std::move(wanted.extract(oldest).mapped());
  }
  template <class Item>
  static std::optional<Item> remove(std::multimap<Tag, Item>& items, Tag tag, OperationId operation) {
    const auto [first, last] = items.equal_range(tag);
    for (auto i = first; i != last; ++i)
      if (i->second.operation == operation) return std::move(items.extract(i).mapped());
    return std::nullopt;
  }

  std::multimap<Tag, Receive> receives_;
  std::multimap<Tag, Message> messages_;
};

}  // namespace troupe::transport
