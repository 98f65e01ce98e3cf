/// The guest's side of the guest protocol, written from docs/formats/guest.md alone: it shares no code with the engine's. Blocking; one thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace troupe::guest::scripted {

/// Types of frames by name.
extern const std::map<std::string, std::uint16_t> kTypes;
[[nodiscard]] std::string name_of_type(std::uint16_t type);

struct Heard {
  std::uint16_t type = 0;
  std::string payload;
  template <class T>
  [[nodiscard]] T at(std::size_t offset) const {
    T value{};
    if (offset + sizeof(T) <= payload.size()) std::memcpy(&value, payload.data() + offset, sizeof(T));
    return value;
  }
};

template <class T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

class Wire {
 public:
  /// Connects to TROUPE_GUEST. Ends the process with 75 where there is none.
  Wire();
  /// The bytes of a frame.
  [[nodiscard]] static std::string frame(std::uint16_t type, std::string_view payload);
  /// False: the engine has closed the connection.
  bool write(std::string_view bytes) const;
  /// Ends the process with 75 when the connection is closed. Keeps descriptors that come with it in `files`.
  [[nodiscard]] Heard read();
  void shut() const;
  /// Sends one byte with a descriptor, which the protocol does not allow.
  void write_with_descriptor(std::string_view bytes) const;

  int files[3] = {-1, -1, -1};

 private:
  void fill(char* into, std::size_t count);
  int socket_ = -1;
};

}  // namespace troupe::guest::scripted
