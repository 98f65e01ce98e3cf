/// Server-sent events from the text of their stream (WHATWG HTML, section 9.2). Pure. Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::apps {

struct ServerEvent {
  std::string kind = "message";
  std::string data;
  std::string id;  // the last one that the stream has named
};

class EventText {
 public:
  /// An event of more bytes is left out.
  static constexpr std::size_t kLongest = std::size_t{64} << 20;

  /// `id`: the last one of an earlier connection.
  explicit EventText(std::string id = {}) : id_(std::move(id)) {}

  /// Calls `on_event(const ServerEvent&)` for each event that ends in `piece`. Lines may end in any piece.
  template <class OnEvent>
  void read(std::string_view piece, const OnEvent& on_event) {
    for (const char c : piece)
      if (take(c)) on_event(end());
  }
  [[nodiscard]] const std::string& id() const noexcept { return id_; }

 private:
  /// Whether an event ends here.
  [[nodiscard]] bool take(char c);
  [[nodiscard]] bool end_of_line();
  [[nodiscard]] ServerEvent end();

  std::string line_, kind_, data_, id_;
  bool has_data_ = false, after_return_ = false, too_long_ = false;
};

}  // namespace troupe::apps
