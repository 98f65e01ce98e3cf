/// Calls of the HDF5 library: one thread at a time, silent, and without leaks. Only for sources of the module troupe_hdf5.so.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

namespace troupe::data {

/// Held around all calls of the library, and around the life of every Handle. It also keeps the library from printing its errors, and from
/// loading plug-ins that a file asks for. One mutex per process.
class Hdf5Lock {
 public:
  Hdf5Lock();

 private:
  std::lock_guard<std::mutex> lock_;
};

/// Owns one identifier of the library.
class Handle {
 public:
  using Close = herr_t(hid_t);
  Handle(hid_t id, Close* close) noexcept : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  [[nodiscard]] explicit operator bool() const noexcept { return id_ >= 0; }
  [[nodiscard]] hid_t id() const noexcept { return id_; }

 private:
  hid_t id_;
  Close* close_;
};

/// Why the last call failed, as the library says it: one line of printable characters.
[[nodiscard]] std::string hdf5_reason();

}  // namespace troupe::data
