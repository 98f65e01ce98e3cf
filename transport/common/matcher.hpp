/// Matches the messages of one sender with the receives posted for it: equal tags, oldest first. The core of every
/// endpoint that frames its own messages. Receive and Message are small values with a member `OperationId operation`.
/// Not thread-safe. Cost: O(log n) per call, n = what waits.
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
  /// A message is here: its receive, or nothing and the message waits.
  [[nodiscard]] std::optional<Receive> arrive(Tag tag, Message message) {
    return match(tag, receives_, messages_, std::move(message));
  }
  /// A receive is posted: its message, or nothing and the receive waits.
  [[nodiscard]] std::optional<Message> post(Tag tag, Receive receive) {
    return match(tag, messages_, receives_, std::move(receive));
  }
  /// The oldest receive that waits for this tag, taken; nothing: none does. For whoever will not keep the message.
  [[nodiscard]] std::optional<Receive> take_receive(Tag tag) {
    const auto oldest = receives_.lower_bound(tag);
    if (oldest == receives_.end() || oldest->first != tag) return std::nullopt;
    return std::move(receives_.extract(oldest).mapped());
  }
  /// Undoes take_receive(): it is the oldest of its tag again.
  void give_back(Tag tag, Receive receive) {
    receives_.emplace_hint(receives_.lower_bound(tag), tag, std::move(receive));
  }
  /// Takes back what waits, for cancel; nothing when it does not wait (any more).
  std::optional<Message> remove_message(Tag tag, OperationId operation) { return remove(messages_, tag, operation); }
  std::optional<Receive> remove_receive(Tag tag, OperationId operation) { return remove(receives_, tag, operation); }

  /// Empties it, for a loss: every waiting receive and message, by tag and then in order, goes to the functions.
  template <class OnReceive, class OnMessage>
  void drain(OnReceive on_receive, OnMessage on_message) {
    for (auto& [tag, receive] : std::exchange(receives_, {})) on_receive(tag, receive);
    for (auto& [tag, message] : std::exchange(messages_, {})) on_message(tag, message);
  }

  [[nodiscard]] std::size_t waiting_messages() const noexcept { return messages_.size(); }
  [[nodiscard]] std::size_t waiting_receives() const noexcept { return receives_.size(); }

 private:
  // multimap keeps equal keys in the order of their insertion: that is the order within a tag.
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
